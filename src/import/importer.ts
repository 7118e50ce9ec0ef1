import { eachWrite } from '../guard/store-calls.ts'
import { contextOf } from '../manager/context.ts'
import type { SessionManager } from '../manager/manager.ts'
import type { UserIdInput, UserIds } from '../session/users.ts'
import { checkOptions, type OptionsOf } from '../text/check-options.ts'
import { quote } from '../text/quote.ts'
import { choose, MOST_VALUES } from '../visits/choose.ts'
import { type CookieOptions, SessionCookie, withCookies } from '../visits/cookie.ts'
import type { NodeVisits } from '../visits/node.ts'
import type { Visit, VisitRequest } from '../visits/types.ts'
import type { OldSessionId, OldSessions } from './from.ts'
import { Import } from './import.ts'
import { OVER } from './notes.ts'
import { OldCookies } from './old-cookies.ts'
import { OPTIONS, type SessionImporterOptions } from './options.ts'

/** A middleware for Express and Connect; raw node:http calls it by hand. */
export type ImportMiddleware = (
  request: { headers: { cookie?: string | undefined } },
  response: { appendHeader(name: string, value: string): unknown },
  next: (error?: unknown) => void,
) => void

/**
 * Imports live sessions of another library at their first request: a move logs no user out. A new session with a
 * new ID takes the place of the old one and is as old as it was. All requests that come with the old cookie, on any
 * node, find that one session, as long as it lives.
 * @throws TypeError that names the option
 */
export const sessionImporter = <
  Data extends object,
  Ids extends UserIds,
  Input extends object,
  T = Record<string, unknown>,
>(
  sessions: SessionManager<Data, Ids, Input>,
  options: SessionImporterOptions<Data, Ids, Input, T>,
): SessionImporter<Data, Ids, Input> =>
  new SessionImporter(sessions, options as SessionImporterOptions<Data, Ids, Input>)

/** The importer that `sessionImporter` returns. */
export class SessionImporter<
  Data extends object = Record<string, unknown>,
  Ids extends UserIds = 'bigint',
  Input extends object = Data,
> {
  readonly #sessions: SessionManager<Data, Ids, Input>
  readonly #cookies: OldCookies
  readonly #imports: Import

  constructor(sessions: SessionManager<Data, Ids, Input>, options: SessionImporterOptions<Data, Ids, Input>) {
    const context = contextOf(sessions)
    checkOptions(OPTIONS as OptionsOf<typeof options>, options)
    this.#sessions = sessions
    this.#cookies = new OldCookies(options.from as OldSessions<never>)
    this.#imports = new Import(context, this.#cookies.name, options as never)
  }

  /**
   * The middleware to put before everything that asks a visit. If a request has a genuine old cookie, the session is
   * imported, and the request goes on as if it had come with our cookie. It calls `next` with the error if one of both stores fails: the cookies stay, answer 503.
   */
  middleware(visits: Pick<NodeVisits<Data, Ids, Input>, 'of' | 'sessions' | 'cookie'>): ImportMiddleware {
    if (visits?.sessions !== this.#sessions)
      throw new TypeError(
        `middleware: expected the visits of the same SessionManager, such as nodeVisits(sessions), got ${quote(visits)}`,
      )
    return (request, response, next) => {
      if (!request.headers.cookie?.includes(this.#cookies.name)) {
        next()
        return
      }
      const open = (cookie: string | undefined) => {
        if (cookie !== request.headers.cookie) request.headers.cookie = cookie
        return visits.of(request as never, response as never)
      }
      // `next` runs outside of the promise: an error in a handler is the application's own.
      this.import<ReturnType<typeof visits.of>, string | undefined>(request.headers.cookie, open, visits).then(
        ({ setCookie }) => {
          for (const line of setCookie) response.appendHeader('Set-Cookie', line)
          process.nextTick(next)
        },
        error => process.nextTick(next, error),
      )
    }
  }

  /**
   * The same for any other server: `open` gets the Cookie header to open the visit with. `setCookie` has `Set-Cookie` values
   * that remove the old cookies, to be sent beside those of the visit. `options` are those of your visits.
   * @throws SessionStoreError if one of both stores fails
   */
  // biome-ignore lint/suspicious/noExplicitAny: of whichever data and user IDs
  async import<V extends Pick<Visit<any, any, any>, 'get' | 'onLeave'>, Header extends VisitRequest['cookie']>(
    cookie: Header,
    open: (cookie: Header | string) => V,
    options: { readonly cookie?: CookieOptions } = {},
  ): Promise<{ visit: V; setCookie: readonly string[] }> {
    const old = this.#cookies.in(cookie)
    if (old.length === 0) return { visit: open(cookie), setCookie: [] }
    const ours = new SessionCookie(options.cookie)
    const { id, isSpent = false } = await this.#exchange(old, ours.candidates(cookie))
    const header = [cookie ?? []].flat().join('; ')
    const visit = open(id ? withCookies(header, [{ name: ours.name, value: id }]) : cookie)
    visit.onLeave(() => eachWrite(old, each => this.#imports.end(each)))
    // The look makes the response vary with the cookie: a cache must not remove the cookies of other visitors.
    const answer: unknown = isSpent && (await visit.get({ touch: false }).catch((error: unknown) => error))
    return { visit, setCookie: isSpent && !(answer instanceof Error) ? this.#cookies.removal(cookie, ours.secure) : [] }
  }

  /**
   * Logs the user out everywhere while old sessions may still come: as `sessions.invalidateUser`, and no old session of
   * this user that exists now is imported any more.
   * @throws SessionStoreError repeat it until it resolves
   */
  async invalidateUser(
    userId: UserIdInput<Ids>,
    options?: Parameters<SessionManager<Data, Ids, Input>['invalidateUser']>[1],
  ): Promise<number> {
    await this.#imports.endUser(userId)
    return this.#sessions.invalidateUser(userId, options)
  }

  /** The ID of our session to which the old cookies lead, if they do; or whether they are of no more use. */
  async #exchange(
    old: readonly Required<OldSessionId>[],
    candidates: readonly string[],
  ): Promise<{ readonly id?: string | null | undefined; readonly isSpent?: boolean }> {
    const spent = async () => ({ isSpent: await this.#imports.areSpent(old) })
    const refuse = () => {
      this.#sessions.options.onEvent({ type: 'ambiguous-cookie' })
      return {}
    }
    const own = await choose(this.#sessions, candidates)
    // The visit tells of them.
    if (own.isAmbiguous) return {}
    if (own.session !== null) return spent()
    if (old.length > MOST_VALUES) return refuse()
    const leads = await Promise.all(old.map(each => this.#imports.take(each)))
    const ids = leads.filter(lead => typeof lead === 'string')
    const { id, isAmbiguous } = ids.length > 1 ? await choose(this.#sessions, ids) : { id: ids[0], isAmbiguous: false }
    if (isAmbiguous) return refuse()
    return !id && leads.includes(OVER) ? spent() : { id }
  }
}
