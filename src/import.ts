export type { OldCookie, OldSession, OldSessionId, OldSessions } from './import/from.ts'
export { type ImportMiddleware, type SessionImporter, sessionImporter } from './import/importer.ts'
export type { OldLogin, OldVisitor, SessionImporterOptions, WhoseSession } from './import/options.ts'
export {
  type BetterAuthSession,
  type FromBetterAuthOptions,
  fromBetterAuth,
} from './import/readers/better-auth.ts'
export {
  type CallbackStore,
  type FromExpressSessionOptions,
  type FromFastifySessionOptions,
  fromExpressSession,
  fromFastifySession,
} from './import/readers/callback-store.ts'
export { type FromCookieSessionOptions, fromCookieSession } from './import/readers/cookie-session.ts'
export { type FromIronSessionOptions, fromIronSession } from './import/readers/iron-session.ts'
export { type FromKoaSessionOptions, fromKoaSession, type KoaStore } from './import/readers/koa-session.ts'
export { type FromLuciaOptions, fromLucia, type LuciaAdapter } from './import/readers/lucia.ts'
export {
  type FromNextAuthOptions,
  fromNextAuth,
  type NextAuthAdapter,
  type NextAuthToken,
} from './import/readers/next-auth.ts'
export { type Secret, signedId } from './import/readers/signature.ts'
