// What an adapter for another server or cookie jar is made of.
export {
  type CookieOptions,
  type ResponseCookie,
  SessionCookie,
  withCookies,
} from './visits/cookie.ts'
export type { HeadRules } from './visits/head.ts'
export { openVisit } from './visits/open-visit.ts'
export type { VisitOptions } from './visits/setup.ts'
export type { Visit, VisitLogin, VisitRequest } from './visits/types.ts'
