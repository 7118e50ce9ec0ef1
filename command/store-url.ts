// What a store URL says. It contains a password: no message here repeats any part of it but the host, the port, the
// database and the file.
import { UsageError } from './exit.ts'

export type StoreKind = 'redis' | 'redis-cluster' | 'postgres' | 'mysql' | 'sqlite'

export interface StoreUrl {
  readonly kind: StoreKind
  /** For people: the database, and where it is. */
  readonly name: string
  /** What the driver gets: a URL, or the file. '' where the driver looks into the environment (PGHOST and others). */
  readonly url: string
  /** Of a cluster. */
  readonly nodes: readonly { readonly host: string; readonly port: number }[]
  readonly username: string
  readonly password: string
  readonly tls: boolean
  /** Texts that no output may contain. */
  readonly secrets: readonly string[]
}

interface Scheme {
  readonly kind: StoreKind
  readonly product: string
  /** The scheme that every driver knows. */
  readonly scheme: string
  readonly form: string
}
const redis: Scheme = { kind: 'redis', product: 'Redis', scheme: 'redis', form: 'redis://HOST:PORT' }
const cluster: Scheme = {
  kind: 'redis-cluster',
  product: 'Redis Cluster',
  scheme: 'redis+cluster',
  form: 'redis+cluster://HOST:PORT,HOST:PORT',
}
const postgres: Scheme = {
  kind: 'postgres',
  product: 'PostgreSQL',
  scheme: 'postgres',
  form: 'postgres://USER:PASSWORD@HOST:PORT/DATABASE',
}
const mysql: Scheme = {
  kind: 'mysql',
  product: 'MySQL',
  scheme: 'mysql',
  form: 'mysql://USER:PASSWORD@HOST:PORT/DATABASE',
}
const SCHEMES = new Map<string, Scheme>([
  ['redis', redis],
  ['rediss', { ...redis, scheme: 'rediss' }],
  ['redis+cluster', cluster],
  ['rediss+cluster', { ...cluster, scheme: 'rediss+cluster' }],
  ['postgres', postgres],
  ['postgresql', postgres],
  ['mysql', mysql],
  ['mariadb', { ...mysql, product: 'MariaDB' }],
  ['sqlite', { kind: 'sqlite', product: 'SQLite', scheme: 'sqlite', form: 'sqlite:FILE' }],
])
const EXPECTED =
  'expected redis://, rediss://, redis+cluster://, rediss+cluster://, postgres://, postgresql://, mysql://, mariadb:// or sqlite:FILE'
const ENCODING = 'in a user name or password % @ : / ? # are written %25 %40 %3A %2F %3F %23'

const NO_CONNECTION = { nodes: [], username: '', password: '', tls: false, secrets: [] }

function decoded(text: string, what: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new UsageError(`${what} cannot be read: a % that begins no escape is written %25`)
  }
}

/** `host:port`, `host`, `[::1]:port`. */
function hostFrom(text: string, source: string, { form }: Scheme): { host: string; port: number | null } {
  const [, host = '', port] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/.exec(text) ?? []
  if (port !== undefined && port !== '' && !(/^\d{1,5}$/.test(port) && Number(port) > 0 && Number(port) < 65536))
    throw new UsageError(`${source}: the port is no number from 1 to 65535: expected ${form}; ${ENCODING}`)
  const bare = /^\[(.*)\]$/.exec(host)?.[1] ?? host
  if (bare === '') throw new UsageError(`${source}: the host is missing: expected ${form}`)
  if (/[[\]]/.test(bare))
    throw new UsageError(`${source}: the host is malformed: an IPv6 address is written [::1]: expected ${form}`)
  return { host: bare, port: port ? Number(port) : null }
}

/** The scheme alone: all that `schema` needs. */
export function schemeOf(text: string, source: string): Scheme {
  const [, name = '', slashes] = /^([A-Za-z][A-Za-z0-9+.-]*):(\/\/)?/.exec(text) ?? []
  const scheme = SCHEMES.get(name.toLowerCase())
  if (scheme !== undefined) return scheme
  if (name.toLowerCase() === 'memory')
    throw new UsageError(
      `${source}: memory: is inside the application's own process, where no command reaches it; sessions.count(), all() and invalidateAll() do`,
    )
  throw new UsageError(
    `${source}: ${slashes === undefined ? 'this is no URL of a store' : `${name}:// is no store`}: ${EXPECTED}`,
  )
}

/** @throws UsageError that names the part that is wrong */
export function parseStoreUrl(text: string, source: string, { schema = '' } = {}): StoreUrl {
  const scheme = schemeOf(text, source)
  const rest = text.slice(text.indexOf(':') + 1)
  if (scheme.kind === 'sqlite') return sqliteUrl(rest, source)
  const { kind, product, form } = scheme
  if (kind === 'postgres' && rest === '') {
    const secrets = process.env.PGPASSWORD ? [process.env.PGPASSWORD] : []
    return { kind, name: 'PostgreSQL, as the environment says (PGHOST and others)', url: '', ...NO_CONNECTION, secrets }
  }
  const match = /^\/\/([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(rest)
  if (match === null) throw new UsageError(`${source}: expected ${form}`)
  const [, authority = '', path = '', query = '', fragment] = match
  if (fragment !== undefined) throw new UsageError(`${source}: a # has no meaning in ${form}; ${ENCODING}`)
  const at = authority.lastIndexOf('@')
  const [, user = '', pass = ''] = /^([^:]*):?(.*)$/s.exec(authority.slice(0, Math.max(at, 0))) ?? []
  const username = decoded(user, `${source}: the user name`)
  const password = decoded(pass, `${source}: the password`)
  const place = authority.slice(at + 1)
  const database = decoded(path.slice(1), `${source}: the database`)
  const secrets = new Set([pass, password, ...secretParameters(query)].filter(Boolean))
  // As a whole it is in messages of drivers that cannot read it.
  if (secrets.size > 0) secrets.add(text)
  const base = { kind, username, password, tls: scheme.scheme.startsWith('rediss'), secrets: [...secrets] }
  const url = `${scheme.scheme}:${rest}`
  if (kind === 'redis-cluster') {
    if (database !== '') throw new UsageError(`${source}: a cluster has no databases: expected ${form}`)
    const nodes = place.split(',').map(node => hostFrom(node, source, scheme))
    const name = `${product} at ${place}`
    return { ...base, name, url, nodes: nodes.map(({ host, port }) => ({ host, port: port ?? 6379 })) }
  }
  // PostgreSQL on this machine is also reached by a socket: postgres:///DATABASE.
  if (place !== '' || kind !== 'postgres') hostFrom(place, source, scheme)
  if (kind === 'redis' && !/^\d{0,5}$/.test(database))
    throw new UsageError(`${source}: the database of Redis is a number: expected ${form}/0`)
  if (kind === 'mysql' && database === '' && schema === '')
    throw new UsageError(`${source}: the database is missing: expected ${form}`)
  const name = `${product} at ${place || 'its socket'}${database === '' ? '' : `, database ${database}`}`
  return { ...base, name, url, nodes: [] }
}

/** Values of the parameters that contain passwords, as PostgreSQL's `?password=`. */
function secretParameters(query: string): string[] {
  return query
    .slice(1)
    .split('&')
    .flatMap(parameter => {
      const equals = parameter.indexOf('=')
      if (equals < 0 || !/pass|pwd|secret|token|key/i.test(parameter.slice(0, equals))) return []
      const value = parameter.slice(equals + 1)
      return [value, decoded(value.replaceAll('+', ' '), 'a parameter of the URL')]
    })
}

function sqliteUrl(rest: string, source: string): StoreUrl {
  const file = decoded(rest.replace(/^\/\/(?=\/)/, ''), `${source}: the file`)
  if (file === '') throw new UsageError(`${source}: the file is missing: expected sqlite:FILE`)
  if (file.startsWith('//'))
    throw new UsageError(`${source}: a host has no meaning here: expected sqlite:FILE or sqlite:///FOLDER/FILE`)
  if (file === ':memory:' || file.includes('\0'))
    throw new UsageError(`${source}: expected the file of the application: sqlite:FILE`)
  return { kind: 'sqlite', name: `SQLite in ${file}`, url: file, ...NO_CONNECTION }
}
