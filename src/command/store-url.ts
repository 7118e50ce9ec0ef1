// Reads a store URL. It contains a password, perhaps in the wrong place: no message repeats any part of it but the host
// and the file.
import { UsageError } from './errors.ts'

export type StoreKind = 'redis' | 'redis-cluster' | 'postgres' | 'mysql' | 'sqlite'

export interface StoreUrl {
  readonly kind: StoreKind
  readonly product: string
  /** For people: the product, and its host or file. */
  readonly name: string
  /** For the driver: a URL, or the file. '' if the driver looks into the environment (PGHOST and others). */
  readonly url: string
  /** Of a cluster. */
  readonly nodes: readonly { readonly host: string; readonly port: number }[]
  readonly username: string
  readonly password: string
  readonly tls: boolean
  /** Texts that no output may contain. */
  readonly secrets: readonly string[]
}

const LOGIN = '//USER:PASSWORD@HOST:PORT/DATABASE'
/** The store and the product of each scheme, and what follows it. */
const SCHEMES = new Map<string, readonly [kind: StoreKind, product: string, form: string]>([
  ['redis', ['redis', 'Redis', '//HOST:PORT/NUMBER']],
  ['rediss', ['redis', 'Redis', '//HOST:PORT/NUMBER']],
  ['redis+cluster', ['redis-cluster', 'Redis Cluster', '//HOST:PORT,HOST:PORT']],
  ['rediss+cluster', ['redis-cluster', 'Redis Cluster', '//HOST:PORT,HOST:PORT']],
  ['postgres', ['postgres', 'PostgreSQL', LOGIN]],
  ['postgresql', ['postgres', 'PostgreSQL', LOGIN]],
  ['mysql', ['mysql', 'MySQL', LOGIN]],
  ['mariadb', ['mysql', 'MariaDB', LOGIN]],
  ['sqlite', ['sqlite', 'SQLite', 'FILE']],
])
const ENCODING = 'in a user name or password % @ : / ? # are written %25 %40 %3A %2F %3F %23'

function schemeOf(text: string, source: string) {
  const name = /^([A-Za-z][A-Za-z0-9+]*):/.exec(text)?.[1]?.toLowerCase() ?? ''
  const found = SCHEMES.get(name)
  if (found !== undefined) return [name, ...found] as const
  const inside =
    name === 'memory' ? " (memory: is inside the application's own process, where no command reaches it)" : ''
  throw new UsageError(
    `${source}: this is no URL of a store${inside}: expected ${[...SCHEMES.keys()].join('://, ')}:FILE`,
  )
}

/** The kind alone: all that `ddl` needs. */
export const kindIn = (text: string, source: string): StoreKind => schemeOf(text, source)[1]

const NO_CONNECTION = { nodes: [], username: '', password: '', tls: false, secrets: [] }

/**
 * `schema`: the option, which names the database of MySQL too.
 * @throws UsageError that says what is expected
 */
export function parseStoreUrl(
  text: string,
  source: string,
  { schema = '', env = {} }: { readonly schema?: string; readonly env?: NodeJS.Dict<string> } = {},
): StoreUrl {
  const [scheme, kind, product, form] = schemeOf(text, source)
  const rest = text.slice(text.indexOf(':') + 1)
  const wrong = (what: string): UsageError => new UsageError(`${source}: ${what}: expected ${scheme}:${form}`)
  if (kind === 'sqlite') {
    // What follows may be a key, and the name of the file is shown.
    if (rest.includes('?')) throw wrong('a file has no parameters')
    const file = decoded(rest.replace(/^\/\/(?=\/)/, ''), () => wrong('the file cannot be read'))
    if (file === '' || file.startsWith('//') || file === ':memory:' || file.includes('\0'))
      throw wrong('this is no file of an application')
    return { kind, product, name: `SQLite in ${file}`, url: file, ...NO_CONNECTION }
  }
  if (kind === 'postgres' && rest === '') {
    const secrets = env.PGPASSWORD ? [env.PGPASSWORD] : []
    const name = 'PostgreSQL, as the environment says (PGHOST and others)'
    return { kind, product, name, url: '', ...NO_CONNECTION, secrets }
  }
  const [, authority = '', path = '', query = ''] = /^\/\/([^/?#]*)([^?#]*)(.*)$/s.exec(rest) ?? []
  // If a password has a / in it, the part before it would be looked up as a host.
  if (/[@#]/.test(path + query)) throw wrong(`there is an @ or a # after the host; ${ENCODING}`)
  const at = authority.lastIndexOf('@')
  const [, user = '', pass = ''] = /^([^:]*):?(.*)$/s.exec(authority.slice(0, Math.max(at, 0))) ?? []
  const hosts = authority.slice(at + 1)
  const [username, password, database] = [user, pass, path.slice(1)].map(part =>
    decoded(part, () => wrong(`it cannot be read; ${ENCODING}`)),
  ) as [string, string, string]
  const isTls = scheme.startsWith('rediss')
  const isCluster = kind === 'redis-cluster'
  // PostgreSQL on this machine is also reached by a socket: postgres:///DATABASE.
  const isSocket = kind === 'postgres' && hosts === ''
  const nodes = isSocket ? [] : (isCluster ? hosts.split(',') : [hosts]).map(hostFrom)
  if (nodes.includes(null)) throw wrong(`this is no host with a port from 1 to 65535; ${ENCODING}`)
  if (isCluster && database !== '') throw wrong('a cluster has no databases')
  if (kind === 'redis' && !/^\d{0,5}$/.test(database)) throw wrong('the database of Redis is a number')
  if (kind === 'mysql' && database === '' && schema === '') throw wrong('the database is missing')
  const secrets = new Set([pass, password, ...secretsIn(query)].filter(Boolean))
  // As a whole it is in messages of drivers that cannot read it.
  if (secrets.size > 0) secrets.add(text)
  return {
    kind,
    product,
    // The host alone: app:2024/s3cret may be a user and the password.
    name: `${product} at ${nodes.map(node => node!.host).join() || 'its socket'}`,
    // With a scheme that every driver knows.
    url: `${isTls ? 'rediss' : kind}:${rest}`,
    nodes: isCluster ? nodes.map(node => node!) : [],
    username,
    password,
    tls: isTls,
    secrets: [...secrets],
  }
}

function decoded(text: string, wrong: () => UsageError): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw wrong()
  }
}

/** `host:port`, `host`, `[::1]:port`; `null` for anything else. */
function hostFrom(text: string): { host: string; port: number } | null {
  const [, six, four, port = '6379'] = /^(?:\[([^[\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  const host = six ?? four
  return host === undefined || Number(port) < 1 || Number(port) > 65535 ? null : { host, port: Number(port) }
}

/** Values of the parameters that contain passwords, as PostgreSQL's `?password=`, in both forms. */
const secretsIn = (query: string): string[] =>
  [...query.matchAll(/[?&][^=&]*(?:pass|pwd|secret|token|key)[^=&]*=([^&]*)/gi)].flatMap(([, value = '']) => [
    value,
    new URLSearchParams(`v=${value}`).get('v')!,
  ])
