export { SessionError, type SessionErrorCode, SessionStoreError, type StoreOperation } from './contract/errors.ts'
export { corruption } from './contract/record.ts'
export {
  CLOCK_TOLERANCE,
  type Corrupt,
  type CreateOptions,
  type CreateResult,
  type DeleteUserOptions,
  FORWARD_LIFETIME,
  type Forward,
  type ReadAnswer,
  type RecordChange,
  type ReplaceResult,
  type ScanPage,
  type SessionLimit,
  type SessionRecord,
  type Store,
  type StoreCall,
  SWEEP_MARGIN,
} from './contract/store.ts'
export type { Change } from './data/change.ts'
export type { Codec } from './data/codec.ts'
export type { Frozen, SchemaResult, StandardSchemaV1 } from './data/schema.ts'
export {
  type CookieOptions,
  type ParsedCookie,
  type ResponseCookie,
  SessionCookie,
  withCookies,
} from './visits/cookie.ts'
export type { HeadRules } from './visits/head-rules.ts'
export { openVisit } from './visits/open-visit.ts'
export type { ClearSiteData, NodeVisitsOptions, VisitOptions } from './visits/setup.ts'
export type { Visit, VisitLogin, VisitOf, VisitRequest } from './visits/visit.ts'
export type { InvalidateAllOptions, InvalidateAllProgress } from './manager/invalidate-all.ts'
export type { SessionEvent } from './manager/events.ts'
export { SessionManager, type SessionOf } from './manager/manager.ts'
export { DEFAULTS, presets, type SessionOptions } from './manager/options.ts'
export type { Redeemed } from './manager/remember.ts'
export { type SessionId, type SessionKey, sessionId } from './session/id.ts'
export type { Current, Session, SessionInfo, StoredSession, User, UserSession } from './session/session.ts'
export type { UserId, UserIdInput, UserIds } from './session/user-id.ts'
export type { Login } from './session/users.ts'
export type { Duration } from './text/duration.ts'
export { replacer, stringify } from './text/json.ts'
