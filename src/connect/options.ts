import type { UserIds } from '../session/users.ts'
import { aFunction, type OptionPlace, rule } from '../text/check-options.ts'
import type { OldConnectStore } from './beside-old-store.ts'
import type { ConnectUser } from './identity.ts'

/** The options of `connectStore`. */
export interface ConnectStoreOptions<Ids extends UserIds = UserIds> {
  /**
   * Who is logged in, by the data of a session; `null` if nobody is. Asked when a request changed the data. Synchronous.
   * The request is that of Express or Fastify, in Koa it is the context; without one, such as in a `set` by hand, it is `{}`.
   * @default Passport's user: `data.passport.user`, which is text, a number, or an object with an `id`; name and password
   * version are that object's, else those of `request.user`
   */
  // biome-ignore lint/suspicious/noExplicitAny: as in the types of express-session, so that a userOf needs no casts
  userOf?: (data: Record<string, any>, request: any) => ConnectUser<Ids> | null | undefined
  /**
   * During a rolling deploy: the store of the nodes that are still to be replaced. Their sessions go on here, and those of
   * this node there. Take it away once they are gone. @default none
   */
  oldStore?: OldConnectStore
}

const aStore = rule('a store with get, set and destroy', store =>
  (['get', 'set', 'destroy'] as const).every(verb => typeof (store as OldConnectStore | null)?.[verb] === 'function'),
)

export const OPTIONS: OptionPlace<ConnectStoreOptions> = {
  where: 'connectStore',
  rules: { userOf: aFunction, oldStore: aStore },
  hints: {
    ttl: 'how long a session lives is said to the SessionManager, by idleTimeout and absoluteTimeout',
    prefix: "it belongs to the manager's store: new RedisStore(client, { prefix })",
    disableTouch: 'a session in use is written down once per touchInterval of the SessionManager',
  },
}
