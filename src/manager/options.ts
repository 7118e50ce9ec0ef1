import type { SessionLimit, Store } from '../contract/store.ts'
import type { Codec } from '../data/codec.ts'
import type { StandardSchemaV1 } from '../data/schema.ts'
import type { Lifetimes } from '../session/expiry.ts'
import type { UserId, UserIds } from '../session/user-id.ts'
import { checkOptionNames } from '../text/check-options.ts'
import { type Duration, milliseconds } from '../text/duration.ts'
import { quote } from '../text/quote.ts'
import type { SessionEvent } from './events.ts'
import { MANAGER_HINTS, MANAGER_OPTIONS } from './hints.ts'

export interface SessionOptions<D extends object, I extends UserIds, In extends object> {
  /** Where the sessions are. There is no default: a memory store is a choice to be made. */
  store: Store
  /** How long without a request until a session ends. @default '30m' */
  idleTimeout?: Duration
  /** How long after the login a session ends in any case. @default '12h' */
  absoluteTimeout?: Duration
  /** How often at most a visit is written down. @default a tenth of idleTimeout */
  touchInterval?: Duration
  /** How long a call waits for the store, all its commands and waiting in our own queue included. @default '2s' */
  storeTimeout?: Duration
  /** Calls of one store under way, given up or not; what comes beyond is refused at once. @default 5000 */
  maxPendingCalls?: number
  /** What user IDs look like; all three are canonical text in the store. @default 'u64' */
  userIds?: I
  /** Any Standard Schema (zod, valibot, arktype, …), synchronous, that accepts its own output. */
  schema?: StandardSchemaV1<In, D>
  /** The data of a new session, called for each. @default () => ({}) */
  initial?: () => D
  /** Bytes of encoded data. @default 16384 */
  maxDataBytes?: number
  /** Text form of the data. @default JSON that refuses what JSON would silently change */
  codec?: Codec
  /** The user's password version now; compared at each `get`, a session that is older is refused. */
  passwordVersion?: (userId: UserId<I>) => number | Promise<number>
  /** Sessions of one user at a time. `onLimit` @default 'end-oldest' */
  limit?: { max: number; onLimit?: SessionLimit['onLimit'] }
  /** Life of a remember token, at most '400d' (RFC 6265bis, section 5.5). Off unless set; '30d' is usual. */
  remember?: Duration
  /** What dies where a remember token was stolen: the device's series and its sessions, or everything of the user. @default 'end-device' */
  onTheft?: 'end-device' | 'end-user'
  /** How often expired records are removed; `false`: never by this manager. @default '5m' where the store has no TTL of its own */
  sweepInterval?: Duration | false
  /** Hears what happens; also published on `node:diagnostics_channel` 'coatcheck'. */
  onEvent?: (event: SessionEvent<I>) => void
  /** Epoch ms. @default () => Date.now(), looked up at each call */
  now?: () => number
}

function deepFrozen<T extends object>(value: T): T {
  for (const inner of Object.values(value)) if (typeof inner === 'object' && inner !== null) deepFrozen(inner)
  return Object.freeze(value)
}

/** All defaults in one place: of the manager, of an edge and its cookie, of `cors` and `requireHttps`. */
export const DEFAULTS = deepFrozen({
  idleTimeout: '30m',
  absoluteTimeout: '12h',
  /** A tenth of idleTimeout, whatever that is. */
  touchInterval: '3m',
  storeTimeout: '2s',
  maxPendingCalls: 5000,
  userIds: 'u64',
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
  cors: { methods: ['PUT', 'PATCH', 'DELETE'], headers: ['content-type'], exposeHeaders: [], maxAge: '10m' },
  https: { insecure: 'refuse' },
} as const)

/**
 * Timeouts for the documented scenarios, to spread into the options: `{ store, ...presets.aal2 }`.
 * OWASP Session Management Cheat Sheet ("Session Expiration") and NIST SP 800-63B-4, sections 2.2.3 and 2.3.3.
 */
export const presets = deepFrozen({
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
const MAX_TIMER = 2 ** 31 - 1
const VERBS = ['create', 'read', 'update', 'touch', 'replace', 'delete', 'deleteUser', 'listUser'] as const

/** The options with their numbers in ms. */
export interface ResolvedOptions<I extends UserIds> extends Lifetimes {
  readonly store: Store
  readonly storeTimeout: number
  readonly maxPendingCalls: number
  readonly userIds: I
  readonly maxDataBytes: number
  readonly limit: SessionLimit | null
  readonly remember: number | null
  readonly onTheft: 'end-device' | 'end-user'
  readonly sweepInterval: number | null
  readonly floorLifetime: number
  readonly now: () => number
}

function positiveInteger(value: unknown, name: string): number {
  if (!Number.isSafeInteger(value) || (value as number) < 1)
    throw new TypeError(`${name}: expected a whole number from 1, got ${quote(value)}`)
  return value as number
}

function oneOf<T extends string>(value: unknown, choices: readonly T[], name: string): T {
  if (!choices.includes(value as T))
    throw new TypeError(`${name}: expected ${choices.map(choice => `'${choice}'`).join(' or ')}, got ${quote(value)}`)
  return value as T
}

function optionalFunction(value: unknown, name: string): void {
  if (value !== undefined && typeof value !== 'function')
    throw new TypeError(`${name}: expected a function, got ${quote(value)}`)
}

function checkStore(store: unknown): asserts store is Store {
  const missing =
    typeof store === 'object' && store !== null
      ? VERBS.filter(verb => typeof (store as Record<string, unknown>)[verb] !== 'function')
      : VERBS
  if (missing.length > 0)
    throw new TypeError(
      `store: expected a store such as new MemoryStore() from 'coatcheck/stores/memory', got ${quote(store)}${missing.length < VERBS.length ? ` without ${missing.join(', ')}` : ''}`,
    )
}

/** @throws TypeError that names the option, quotes the value and says what would be right */
export function resolveOptions<D extends object, I extends UserIds, In extends object>(
  options: SessionOptions<D, I, In>,
): ResolvedOptions<I> {
  checkOptionNames('SessionManager', options, MANAGER_OPTIONS, MANAGER_HINTS)
  const { store } = options
  checkStore(store)
  const idle = milliseconds(options.idleTimeout ?? DEFAULTS.idleTimeout, 'idleTimeout')
  const absolute = milliseconds(options.absoluteTimeout ?? DEFAULTS.absoluteTimeout, 'absoluteTimeout')
  if (idle > absolute)
    throw new TypeError(
      `idleTimeout: expected at most absoluteTimeout (${absolute} ms), got ${quote(options.idleTimeout ?? DEFAULTS.idleTimeout)}`,
    )
  const touchInterval =
    options.touchInterval === undefined
      ? Math.max(1, Math.floor(idle / 10))
      : milliseconds(options.touchInterval, 'touchInterval')
  if (touchInterval > idle / 2)
    throw new TypeError(
      `touchInterval: expected at most half of idleTimeout (${idle} ms), else sessions in use would expire, got ${quote(options.touchInterval)}`,
    )
  const storeTimeout = milliseconds(options.storeTimeout ?? DEFAULTS.storeTimeout, 'storeTimeout')
  if (storeTimeout > MAX_TIMER)
    throw new TypeError(`storeTimeout: expected at most 24 days, got ${quote(options.storeTimeout)}`)
  const remember = options.remember === undefined ? null : milliseconds(options.remember, 'remember')
  if (remember !== null && remember > 400 * DAY)
    throw new TypeError(
      `remember: expected at most '400d', longer cookies are cut by browsers, got ${quote(options.remember)}`,
    )
  const { limit } = options
  if (limit !== undefined && (typeof limit !== 'object' || limit === null))
    throw new TypeError(`limit: expected { max, onLimit }, got ${quote(limit)}`)
  if (limit !== undefined) checkOptionNames('limit', limit, ['max', 'onLimit'])
  const { sweepInterval = DEFAULTS.sweepInterval } = options
  const sweep = sweepInterval === false ? null : milliseconds(sweepInterval, 'sweepInterval')
  if (sweep !== null && sweep > MAX_TIMER / 2)
    throw new TypeError(`sweepInterval: expected at most 12 days, got ${quote(sweepInterval)}`)
  for (const name of ['initial', 'passwordVersion', 'onEvent', 'now'] as const) optionalFunction(options[name], name)
  const { codec, schema } = options
  if (codec !== undefined && !(typeof codec?.encode === 'function' && typeof codec?.decode === 'function'))
    throw new TypeError(`codec: expected { encode(data), decode(text) }, got ${quote(codec)}`)
  if (schema !== undefined && typeof schema?.['~standard']?.validate !== 'function')
    throw new TypeError(`schema: expected a Standard Schema (standardschema.dev), got ${quote(schema)}`)
  return {
    store,
    idle,
    absolute,
    touchInterval,
    storeTimeout,
    maxPendingCalls: positiveInteger(options.maxPendingCalls ?? DEFAULTS.maxPendingCalls, 'maxPendingCalls'),
    userIds: oneOf<UserIds>(options.userIds ?? DEFAULTS.userIds, ['u64', 'number', 'text'], 'userIds') as I,
    maxDataBytes: positiveInteger(options.maxDataBytes ?? DEFAULTS.maxDataBytes, 'maxDataBytes'),
    limit: limit
      ? {
          max: positiveInteger(limit.max, 'limit.max'),
          onLimit: oneOf(limit.onLimit ?? DEFAULTS.onLimit, ['refuse', 'end-oldest'], 'limit.onLimit'),
        }
      : null,
    remember,
    onTheft: oneOf(options.onTheft ?? DEFAULTS.onTheft, ['end-device', 'end-user'], 'onTheft'),
    sweepInterval: store.sweep ? sweep : null,
    // It has to outlast a login in flight, not the account.
    floorLifetime: Math.max(DAY, absolute),
    now: options.now ?? (() => Date.now()),
  }
}
