import { DEFAULT_STORE_TIMEOUT, MAX_DATA_BYTES, type Store } from '../contract/store.ts'
import type { Codec } from '../data/codec.ts'
import { deepFreeze, type StandardSchemaV1 } from '../data/schema.ts'
import type { SessionEvent } from '../session/events.ts'
import { LOGIN, type UserId, type UserIds } from '../session/users.ts'
import {
  aBoolean,
  aFunction,
  checkOptions,
  givenOf,
  type OptionsOf,
  oneOf,
  type Rule,
  refuse,
  rule,
  wholeNumber,
} from '../text/check-options.ts'
import { aDuration, type Duration, durationUpTo, milliseconds } from '../text/duration.ts'
import { OPTION_HINTS } from '../text/option-hints.ts'
import { quote } from '../text/quote.ts'

/** Options of a `SessionManager`. Lengths of time are text with a unit, such as `'30m'`. */
export interface SessionOptions<
  Data extends object = Record<string, unknown>,
  Ids extends UserIds = 'bigint',
  Input extends object = Data,
> {
  /** Where sessions are kept, such as `new MemoryStore()`. There is no default: memory forgets when the process ends. */
  store: Store
  /** Ends a session that has had no request for this long. @default '30m' */
  idleTimeout?: Duration
  /** Ends every session this long after its login, used or not. @default '12h' */
  absoluteTimeout?: Duration
  /** Writes down that a session is in use at most this often. @default a tenth of idleTimeout */
  touchInterval?: Duration
  /** Fails a call (503) if the store has not answered in this time, all its commands and waiting in our own queue included. @default '2s' */
  storeTimeout?: Duration
  // A store that hangs must not fill the memory with calls.
  /** Calls of one store under way, given up or not; those beyond are refused at once, in a burst too. @default 5000 */
  maxPendingCalls?: number
  /** What your user IDs are in JavaScript. Said here alone, no store has to know. @default 'bigint' */
  userIds?: Ids
  /** Checks the data, and is its type: any Standard Schema (zod, valibot, arktype, …) that is synchronous and accepts its own output. */
  schema?: StandardSchemaV1<Input, Data>
  /** Makes the data of a new session, and is its type. @default () => ({}) */
  initial?: () => Data
  /** Bytes of encoded data, at most 1048576. @default 16384 */
  maxDataBytes?: number
  /** Text form of the data. @default JSON that refuses values that JSON would silently change */
  codec?: Codec
  /** Looks up the user's password version; older sessions are refused at every `get`. Costs your lookup per request. */
  getPasswordVersion?: (userId: UserId<Ids>) => number | Promise<number>
  /** Allows this many sessions per user. `onLimit` @default 'end-oldest' */
  limit?: { max: number; onLimit?: 'refuse' | 'end-oldest' }
  /** Turns "remember me" on; a browser is remembered for this long, at most '400d' (RFC 6265bis, section 5.5); '30d' is usual. @default off */
  rememberFor?: Duration
  /** What to end when a remember token was used twice: the device's sessions, or everything of the user. @default 'end-device' */
  onTheft?: 'end-device' | 'invalidate-user'
  /** How often expired records are removed; `false`: never by this manager. @default '5m' if the store has no TTL of its own */
  sweepInterval?: Duration | false
  /** Receives logins, logouts, refusals and failures; also published on `node:diagnostics_channel` 'coatcheck'. Holds keys, never session IDs: safe to log. */
  onEvent?: (event: SessionEvent<Ids>) => void
  /** Epoch ms. @default () => Date.now(), looked up at each call */
  now?: () => number
}

/** The options of a manager in effect, for code built over it: a middleware, a store of another library, a server of your own. */
export interface ManagerOptions<Data extends object = Record<string, unknown>, Ids extends UserIds = 'bigint'> {
  readonly userIds: Ids
  /** In ms. */
  readonly idleTimeout: number
  /** In ms. */
  readonly absoluteTimeout: number
  /** The manager's clock, epoch ms. */
  now(): number
  /** The data of a new session. */
  initial(): Data
  /** Tells those who listen to this manager, and `node:diagnostics_channel` 'coatcheck'. */
  onEvent(event: SessionEvent<Ids>): void
}

// biome-ignore lint/suspicious/noExplicitAny: unknown would fit no options, since they take and give data
export type AnyOptions = SessionOptions<any, any, any>

/** All defaults in one place: of the manager, of visits and their cookies. */
export const DEFAULTS = deepFreeze({
  idleTimeout: '30m',
  absoluteTimeout: '12h',
  /** A tenth of idleTimeout, whatever that is. */
  touchInterval: '3m',
  storeTimeout: `${DEFAULT_STORE_TIMEOUT / 1000}s`,
  maxPendingCalls: 5000,
  userIds: 'bigint',
  maxDataBytes: 16_384,
  onLimit: 'end-oldest',
  onTheft: 'end-device',
  sweepInterval: '5m',
  cookie: {
    name: 'session_id',
    hostPrefix: false,
    lifetime: 'idle',
    sameSite: 'lax',
    path: '/',
    secure: true,
    partitioned: false,
  },
  rememberCookie: { name: 'remember_token' },
} as const)

/**
 * Timeouts for the documented scenarios, to spread into the options: `{ store, ...presets.aal2 }`.
 * OWASP Session Management Cheat Sheet ("Session Expiration") and NIST SP 800-63B-4, sections 2.2.3 and 2.3.3.
 */
export const presets = deepFreeze({
  /** Banking, administration: 10 minutes idle (5 to 15 are usual), 4 hours in all. */
  highSecurity: { idleTimeout: '10m', absoluteTimeout: '4h' },
  /** Most applications: 1 hour idle (30 minutes to 2 hours are usual), 12 hours in all. */
  ordinary: { idleTimeout: '1h', absoluteTimeout: '12h' },
  /** NIST AAL2: at most 24 hours, and 1 hour idle. */
  aal2: { idleTimeout: '1h', absoluteTimeout: '24h' },
  /** NIST AAL3: at most 12 hours, and 15 minutes idle. */
  aal3: { idleTimeout: '15m', absoluteTimeout: '12h' },
} as const satisfies Record<string, { idleTimeout: Duration; absoluteTimeout: Duration }>)

const DAY = 86_400_000
const METHODS = ['create', 'read', 'update', 'touch', 'replace', 'delete', 'deleteUser', 'listUser'] as const

/** For `get`, in a manager and in a visit. */
export const GET_OPTIONS: OptionsOf<{ touch?: boolean }> = { where: 'get', rules: { touch: aBoolean } }

const LOG_IN = 'a login is logIn(session, { user }), which ends the session that was there'
/** For `regenerate`, in a manager and in a visit. */
export const REGENERATE_OPTIONS: OptionsOf<{ grace?: Duration }> = {
  where: 'regenerate',
  rules: { grace: durationUpTo('2m') },
  hints: Object.fromEntries([...LOGIN, 'remember'].map(name => [name, LOG_IN])),
}

const aStore: Rule = (value, name) => {
  const missing = METHODS.filter(method => typeof (value as Partial<Store> | null)?.[method] !== 'function')
  const lacks = missing.length === METHODS.length ? '' : ` without ${missing.join(', ')}`
  if (missing.length > 0)
    throw new TypeError(
      `${name}: expected a store such as new MemoryStore() from 'coatcheck/stores/memory', got ${quote(value)}${lacks}`,
    )
}

const LIMIT: OptionsOf<NonNullable<SessionOptions['limit']>> = {
  where: 'limit',
  prefix: 'limit.',
  required: ['max'],
  rules: { max: wholeNumber(1), onLimit: oneOf('refuse', 'end-oldest') },
}

const MANAGER: OptionsOf<AnyOptions> = {
  where: 'SessionManager',
  required: ['store'],
  hints: OPTION_HINTS,
  rules: {
    store: aStore,
    idleTimeout: aDuration,
    absoluteTimeout: aDuration,
    touchInterval: aDuration,
    // A timer of Node.js takes 2^31 - 1 ms; the sweeper waits up to 1.25 times as long.
    storeTimeout: durationUpTo('24d'),
    maxPendingCalls: wholeNumber(1),
    userIds: oneOf('bigint', 'number', 'string'),
    schema: rule(
      'a Standard Schema (standardschema.dev)',
      value => typeof (value as StandardSchemaV1 | null)?.['~standard']?.validate === 'function',
    ),
    initial: aFunction,
    maxDataBytes: wholeNumber(1, MAX_DATA_BYTES),
    codec: rule('{ encode(data), decode(text) }', value => {
      const { encode, decode } = (value ?? {}) as Partial<Codec>
      return typeof encode === 'function' && typeof decode === 'function'
    }),
    getPasswordVersion: aFunction,
    limit: value => checkOptions(LIMIT, value),
    rememberFor: durationUpTo('400d', ', longer cookies are cut by browsers'),
    onTheft: oneOf('end-device', 'invalidate-user'),
    sweepInterval: (value, name) => value === false || durationUpTo('12d')(value, name),
    onEvent: aFunction,
    now: aFunction,
  },
}

/** The checked options, with durations in ms. @throws TypeError that names the option and says what would be right */
export function resolveOptions(options: AnyOptions) {
  checkOptions(MANAGER, options)
  const given = givenOf(options)
  const { store, limit, rememberFor, touchInterval } = given
  const { idleTimeout, absoluteTimeout, storeTimeout, sweepInterval, ...others } = { ...DEFAULTS, ...given }
  const idle = milliseconds(idleTimeout, 'idleTimeout')
  const absolute = milliseconds(absoluteTimeout, 'absoluteTimeout')
  if (idle > absolute) refuse('idleTimeout', `at most absoluteTimeout (${absolute} ms)`, idleTimeout)
  const touch =
    touchInterval === undefined ? Math.max(1, Math.floor(idle / 10)) : milliseconds(touchInterval, 'touchInterval')
  if (touch > idle / 2)
    refuse(
      'touchInterval',
      `at most half of idleTimeout (${idle} ms), else sessions in use would expire`,
      touchInterval,
    )
  return {
    ...others,
    userIds: others.userIds as UserIds,
    idle,
    absolute,
    touchInterval: touch,
    storeTimeout: milliseconds(storeTimeout, 'storeTimeout'),
    limit: limit ? { max: limit.max, onLimit: limit.onLimit ?? DEFAULTS.onLimit } : null,
    rememberFor: rememberFor === undefined ? null : milliseconds(rememberFor, 'rememberFor'),
    sweepInterval: store.sweep && sweepInterval !== false ? milliseconds(sweepInterval, 'sweepInterval') : null,
    // It has to outlast a login in flight, not the account.
    minPasswordVersionLifetime: Math.max(DAY, absolute),
  }
}
export type ResolvedOptions = Readonly<ReturnType<typeof resolveOptions>>
