import type { IncomingMessage, ServerResponse } from 'node:http'
import type { SessionManager } from '../manager/manager.ts'
import type { UserIds } from '../session/users.ts'
import { type NodeVisits, nodeVisits } from '../visits/node.ts'
import type { Visit } from '../visits/types.ts'
import { Bridge, type BridgeSetup } from './bridge.ts'
import { CookieLook } from './cookie-view.ts'
import { heldResponse } from './held-response.ts'
import { passportUser } from './identity.ts'
import { type ExpressSessionOptions, splitOptions } from './options.ts'

/** The middleware, for `app.use(…)` of Express and Connect, or to be called by hand. */
export interface ExpressSession<
  Data extends object = Record<string, unknown>,
  Ids extends UserIds = 'bigint',
  Input extends object = Data,
> {
  (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void): void
  /** The visit behind `req.session`: for code that is written for coatcheck already. */
  readonly visits: Pick<NodeVisits<Data, Ids, Input>, 'of' | 'sessions' | 'cookie'>
}

/**
 * Offers `req.session` and `req.sessionID` as express-session does, over coatcheck: for Passport, connect-flash and other
 * middleware built around `req.session`. The keys that a request changed are written at the end of its response. Errors go
 * to `next`, also those of the end: then the answer is not sent.
 * @throws TypeError that names the option, and says what to do in place of one of express-session
 */
export function expressSession<Data extends object, Ids extends UserIds, Input extends object>(
  sessions: SessionManager<Data, Ids, Input>,
  options: ExpressSessionOptions<Ids> = {},
): ExpressSession<Data, Ids, Input> {
  const { own, forVisits } = splitOptions<Ids>(options)
  const bare = nodeVisits(sessions, forVisits)
  const of = (request: IncomingMessage, response?: ServerResponse): Visit<Data, Ids, Input> => {
    if (typeof response?.writeHead !== 'function') return bare.of(request)
    const held = heldResponse(response)
    held.isLookedAt = true
    return bare.of(request, held.forVisit)
  }
  const setup: BridgeSetup<Data, Ids, Input> = {
    sessions,
    options: sessions.options,
    userOf: own.userOf ?? (passportUser as NonNullable<typeof own.userOf>),
    logIn: own.logIn ?? (() => ({})),
    look: new CookieLook(forVisits),
  }
  const middleware = (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => {
    // As express-session does: an application may have put a session there, and a test often has.
    if ((request as { session?: unknown }).session) {
      next()
      return
    }
    // `ws` and others call it for an upgrade, with {} for a response.
    const answer = typeof response?.writeHead === 'function' ? response : null
    const open = async () => {
      const held = answer && heldResponse(answer)
      const visit = held === null ? bare.of(request) : bare.of(request, held.forVisit)
      const bridge = new Bridge(setup, visit, request, held, next)
      await bridge.open()
      held?.hold(bridge)
    }
    // Outside of the promise: an error in a handler is the application's own.
    open().then(
      () => process.nextTick(next),
      error => process.nextTick(next, error),
    )
  }
  return Object.assign(middleware, {
    visits: { of, sessions, cookie: bare.cookie } as ExpressSession<Data, Ids, Input>['visits'],
  })
}
