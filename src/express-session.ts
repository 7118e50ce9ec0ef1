export { type ExpressSession, expressSession } from './express-session/middleware.ts'
export type { BridgedData, BridgedUser, ExpressSessionOptions, LoginOptions } from './express-session/options.ts'
export type {
  CookieView,
  RequestSession,
  RequestSessionMembers,
  SessionCallback,
} from './express-session/request-session.ts'
