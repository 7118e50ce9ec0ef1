import { aStore } from '../import/readers/callback-store.ts'
import type { UserIds } from '../session/users.ts'
import { aFunction, type OptionsOf } from '../text/check-options.ts'
import type { ConnectUser } from './identity.ts'
import type { OldConnectStore } from './old-store.ts'

/** The options of `connectStore`. */
export interface ConnectStoreOptions<Ids extends UserIds = UserIds> {
  /**
   * Who is logged in, by the data of a session; `null` if nobody is. Asked when a request changed the data. Synchronous.
   * The request is that of Express or Fastify, in Koa it is the context; without one, such as in a `set` by hand, it is `{}`.
   * @default Passport's user: `data.passport.user`, or `data.passport` of @fastify/passport, which is text, a number, or an
   * object with an `id`; name and password version are that object's, else those of `request.user`
   */
  // biome-ignore lint/suspicious/noExplicitAny: as in the types of express-session, so that a userOf needs no casts
  userOf?: (data: Record<string, any>, request: any) => ConnectUser<Ids> | null | undefined
  /**
   * The store that the service had before. Its sessions move here at their first load; nothing is written to it. Leave it out
   * once no session lives there. @default none
   */
  oldStore?: OldConnectStore
}

export const OPTIONS: OptionsOf<ConnectStoreOptions> = {
  where: 'connectStore',
  rules: { userOf: aFunction, oldStore: aStore },
  hints: {
    ttl: 'how long a session lives is said to the SessionManager, by idleTimeout and absoluteTimeout',
    prefix: "it belongs to the manager's store: new RedisStore(client, { prefix })",
    disableTouch: 'a session in use is written down once per touchInterval of the SessionManager',
  },
}
