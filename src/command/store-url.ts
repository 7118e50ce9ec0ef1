// Reads a store URL. It contains a password, perhaps in the wrong place: no message repeats any part of it but the host
// and the file.
import { UsageError } from './errors.ts'

export type StoreKind = 'redis' | 'redis-cluster' | 'postgres' | 'mysql' | 'sqlite'

export interface StoreUrl {
  readonly kind: StoreKind
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

const FORMS: Readonly<Record<StoreKind, string>> = {
  redis: 'redis://HOST:PORT/NUMBER',
  'redis-cluster': 'redis+cluster://HOST:PORT,HOST:PORT',
  postgres: 'postgres://USER:PASSWORD@HOST:PORT/DATABASE',
  mysql: 'mysql://USER:PASSWORD@HOST:PORT/DATABASE',
  sqlite: 'sqlite:FILE',
}
/** The store and the product of each scheme, and the scheme that every driver knows. */
const SCHEMES = new Map<string, readonly [kind: StoreKind, product: string, scheme: string]>([
  ['redis', ['redis', 'Redis', 'redis']],
  ['rediss', ['redis', 'Redis', 'rediss']],
  ['redis+cluster', ['redis-cluster', 'Redis Cluster', 'redis']],
  ['rediss+cluster', ['redis-cluster', 'Redis Cluster', 'rediss']],
  ['postgres', ['postgres', 'PostgreSQL', 'postgres']],
  ['postgresql', ['postgres', 'PostgreSQL', 'postgres']],
  ['mysql', ['mysql', 'MySQL', 'mysql']],
  ['mariadb', ['mysql', 'MariaDB', 'mysql']],
  ['sqlite', ['sqlite', 'SQLite', 'sqlite']],
])
const ENCODING = 'in a user name or password % @ : / ? # are written %25 %40 %3A %2F %3F %23'

function schemeOf(text: string, source: string) {
  const name = /^([A-Za-z][A-Za-z0-9+]*):/.exec(text)?.[1]?.toLowerCase() ?? ''
  const scheme = SCHEMES.get(name)
  if (scheme !== undefined) return scheme
  const inside =
    name === 'memory' ? " (memory: is inside the application's own process, where no command reaches it)" : ''
  throw new UsageError(
    `${source}: this is no URL of a store${inside}: expected ${[...SCHEMES.keys()].join('://, ')}:FILE`,
  )
}

/** The kind alone: all that `ddl` needs. */
export const kindIn = (text: string, source: string): StoreKind => schemeOf(text, source)[0]

const NO_CONNECTION = { nodes: [], username: '', password: '', tls: false, secrets: [] }

interface Around {
  /** The option `schema`, which names the database of MySQL too. */
  readonly schema?: string
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** @throws UsageError that says what is expected */
export function parseStoreUrl(text: string, source: string, { schema = '', env = {} }: Around = {}): StoreUrl {
  const [kind, product, scheme] = schemeOf(text, source)
  const rest = text.slice(text.indexOf(':') + 1)
  const wrong = (what: string): UsageError => new UsageError(`${source}: ${what}: expected ${FORMS[kind]}`)
  if (kind === 'sqlite') {
    const file = decoded(rest.replace(/^\/\/(?=\/)/, ''), () => wrong('the file cannot be read'))
    if (file === '' || file.startsWith('//') || file === ':memory:' || file.includes('\0'))
      throw wrong('this is no file of an application')
    return { kind, name: `SQLite in ${file}`, url: file, ...NO_CONNECTION }
  }
  if (kind === 'postgres' && rest === '') {
    const secrets = env.PGPASSWORD ? [env.PGPASSWORD] : []
    return { kind, name: 'PostgreSQL, as the environment says (PGHOST and others)', url: '', ...NO_CONNECTION, secrets }
  }
  const [, authority = '', path = '', query = ''] = /^\/\/([^/?#]*)([^?#]*)(.*)$/s.exec(rest) ?? []
  // If a password has a / in it, the part before it would be looked up as a host.
  if (/[@#]/.test(path + query)) throw wrong(`there is an @ or a # after the host; ${ENCODING}`)
  const at = authority.lastIndexOf('@')
  const [, user = '', pass = ''] = /^([^:]*):?(.*)$/s.exec(authority.slice(0, Math.max(at, 0))) ?? []
  const place = authority.slice(at + 1)
  const [username, password, database] = [user, pass, path.slice(1)].map(part =>
    decoded(part, () => wrong(`it cannot be read; ${ENCODING}`)),
  ) as [string, string, string]
  const isCluster = kind === 'redis-cluster'
  // PostgreSQL on this machine is also reached by a socket: postgres:///DATABASE.
  const isSocket = kind === 'postgres' && place === ''
  const nodes = isSocket ? [] : (isCluster ? place.split(',') : [place]).map(hostFrom)
  if (nodes.includes(null)) throw wrong(`this is no host with a port from 1 to 65535; ${ENCODING}`)
  if (isCluster && database !== '') throw wrong('a cluster has no databases')
  if (kind === 'redis' && !/^\d{0,5}$/.test(database)) throw wrong('the database of Redis is a number')
  if (kind === 'mysql' && database === '' && schema === '') throw wrong('the database is missing')
  const secrets = new Set([pass, password, ...secretsIn(query)].filter(Boolean))
  // As a whole it is in messages of drivers that cannot read it.
  if (secrets.size > 0) secrets.add(text)
  return {
    kind,
    // The host alone: app:2024/s3cret may be a user and the password.
    name: `${product} at ${nodes.map(node => node!.host).join() || 'its socket'}`,
    url: `${scheme}:${rest}`,
    nodes: isCluster ? nodes.map(node => node!) : [],
    username,
    password,
    tls: scheme === 'rediss',
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
