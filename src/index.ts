export { type CookieOptions, SessionCookie } from './cookie.ts'
export type { Change } from './data/change.ts'
export type { Codec } from './data/codec.ts'
export type { Frozen, SchemaResult, StandardSchemaV1 } from './data/schema.ts'
export type { Duration } from './duration.ts'
export {
  type ClearSiteData,
  type EdgeOptions,
  openVisit,
  type Visit,
  type VisitOptions,
  type VisitRequest,
} from './edge/visit.ts'
export { SessionError, type SessionErrorCode, SessionStoreError, type StoreOperation } from './errors.ts'
export type { SessionEvent } from './events.ts'
export type { SessionId, SessionKey } from './id.ts'
export { replacer, stringify } from './json.ts'
export { SessionManager, type SessionOf } from './manager.ts'
export { DEFAULTS, presets, type SessionOptions } from './options.ts'
export { corruption } from './record.ts'
export type { Recalled } from './remember.ts'
export type { Current, Session, SessionInfo, User, UserSession } from './session.ts'
export {
  CLOCK_TOLERANCE,
  type Corrupt,
  type CreateOptions,
  type CreateResult,
  type DeleteUserOptions,
  FORWARD_LIFETIME,
  type Forward,
  type RecordChange,
  type ReplaceResult,
  type SessionLimit,
  type SessionRecord,
  type Store,
  SWEEP_MARGIN,
} from './store.ts'
export type { UserId, UserIdInput, UserIds } from './user-id.ts'
export type { Login } from './users.ts'
