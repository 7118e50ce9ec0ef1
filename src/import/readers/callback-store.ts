// The readers of express-session and @fastify/session: signed cookies, and stores that call back.
import { checkOptions, type OptionsOf, type Rule, rule } from '../../text/check-options.ts'
import { answerOf, instant, isObject, lastUse, membersOf, type OldCookie, type OldSessions } from '../from.ts'
import { decoded, type Secret, secretsFrom, signedId } from './signature.ts'

/** A store of express-session or of @fastify/session, by the two methods that are used. */
export interface CallbackStore {
  get(id: string, callback: (error: unknown, session?: unknown) => void): unknown
  destroy(id: string, callback: (error?: unknown) => void): unknown
}

/** Checks the options of a reader: messages name it. */
export const checkReader = <O extends object>(of: OptionsOf<O>, options: O): void =>
  checkOptions({ ...of, prefix: `${of.where}: ` }, options)

export const withMethods = (expected: string, ...names: readonly string[]): Rule =>
  rule(expected, value => names.every(name => typeof membersOf(value)[name] === 'function'))
export const aStore = withMethods('the store that the old service has, with get(id) and destroy(id)', 'get', 'destroy')
export const aSecret: Rule = (secret, name) => void secretsFrom(name, secret as Secret)
export const aCookie = rule(
  "the name of a cookie, or { name, path, domain }, such as 'connect.sid'",
  value => typeof value === 'string' || typeof (value as OldCookie | null)?.name === 'string',
)

interface Format {
  readonly prefix: string
  readonly algorithm: string
  /** The library's keys in a record. */
  readonly own: readonly string[]
  /** Its stores prolong a record without `cookie.expires`, and its middleware does not look at that. */
  readonly isEndedByStore: boolean
}

/** Sessions whose cookie is a prefix and a signed ID, in such a store. */
function signedSessions<T>(
  cookie: string | OldCookie,
  { secret, store }: { secret: Secret | readonly Secret[]; store: CallbackStore },
  { prefix, algorithm, own, isEndedByStore }: Format,
): OldSessions<T> {
  const secrets = secretsFrom('secret', secret)
  return {
    cookie,
    isEndedByStore,
    parse(value) {
      const text = decoded(value)
      return text?.startsWith(prefix) ? signedId(text.slice(prefix.length), secrets, algorithm) : null
    },
    async read(id) {
      const found = await answerOf(callback => store.get(id, callback))
      if (!isObject(found)) return null
      const { expires, originalMaxAge } = membersOf(found.cookie)
      // `false` in old versions: it ends with the browser.
      const expiresAt = instant('cookie.expires', expires === false ? null : expires)
      // A store may leave functions for its middleware: they are no data.
      const data = Object.entries(found).filter(([name, value]) => !own.includes(name) && typeof value !== 'function')
      return { data: Object.fromEntries(data) as T, seenAt: lastUse(expiresAt, originalMaxAge), expiresAt }
    },
    destroy: async id => void (await answerOf(callback => store.destroy(id, callback))),
  }
}

const SIGNED = { secret: aSecret, store: aStore, cookie: aCookie }

/** The store of express-session's sessions, and the secret of their cookies: the options that the old service gives `session(…)`. */
export interface FromExpressSessionOptions {
  /** Its `secret`: all that still count, the newest first. */
  secret: Secret | readonly Secret[]
  /** Its `store`: of connect-redis, connect-pg-simple, memorystore, or any other one. */
  store: CallbackStore
  /** Its `name`, with `path` and `domain` of its `cookie` if it sets them. @default 'connect.sid' */
  cookie?: string | OldCookie
}

const EXPRESS: OptionsOf<FromExpressSessionOptions> = {
  where: 'fromExpressSession',
  required: ['secret', 'store'],
  hints: { name: 'it is called cookie', key: 'it is called cookie' },
  rules: SIGNED,
}

/**
 * The sessions of express-session, for `sessionImporter`. Its cookie is `s:` and the ID, a dot, and an HMAC-SHA256 of the ID in
 * base64 without padding; any other cookie is refused, and the store is not asked.
 * @throws TypeError that names the option
 */
export function fromExpressSession<T = Record<string, unknown>>(options: FromExpressSessionOptions): OldSessions<T> {
  checkReader(EXPRESS, options)
  const format = { prefix: 's:', algorithm: 'sha256', own: ['cookie'], isEndedByStore: true }
  return signedSessions(options.cookie ?? 'connect.sid', options, format)
}

/** The store of @fastify/session's sessions, and the secret of their cookies: the options that the old service registers it with. */
export interface FromFastifySessionOptions extends FromExpressSessionOptions {
  /** Its `cookieName`, with `path` and `domain` of its `cookie` if it sets them. @default 'sessionId' */
  cookie?: string | OldCookie
  /** Its `cookiePrefix`. @default '' */
  cookiePrefix?: string
  /** Its `algorithm`. @default 'sha256' */
  algorithm?: string
}

const aText = rule('text', value => typeof value === 'string')

const FASTIFY: OptionsOf<FromFastifySessionOptions> = {
  where: 'fromFastifySession',
  required: ['secret', 'store'],
  hints: { cookieName: 'it is called cookie' },
  rules: { ...SIGNED, cookiePrefix: aText, algorithm: aText },
}

/**
 * The sessions of @fastify/session, for `sessionImporter`. Its cookie is the ID, a dot, and an HMAC of the ID in base64 without
 * padding; any other cookie is refused, and the store is not asked.
 * @throws TypeError that names the option
 */
export function fromFastifySession<T = Record<string, unknown>>(options: FromFastifySessionOptions): OldSessions<T> {
  checkReader(FASTIFY, options)
  const { cookie = 'sessionId', cookiePrefix: prefix = '', algorithm = 'sha256' } = options
  const own = ['cookie', 'sessionId', 'encryptedSessionId']
  return signedSessions(cookie, options, { prefix, algorithm, own, isEndedByStore: false })
}
