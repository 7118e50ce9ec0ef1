import { SessionError } from '../contract/errors.ts'
import type { UserIds } from '../session/users.ts'
import { refuse } from '../text/check-options.ts'
import { withCookies } from '../visits/cookie.ts'
import type { FetchVisit, FetchVisits } from '../visits/fetch.ts'

/** The exports of `next/headers`. */
export interface NextFunctions {
  headers(): Promise<Headers>
  cookies(): Promise<{ set(name: string, value: string, options: object): unknown }>
}

/** `NextResponse` of `next/server`. */
export interface NextResponses {
  next(init?: { request: { headers: Headers } }): Response
}

/** Visits for the four places in which an application for the app router of Next meets a request. */
export interface NextVisits<Data extends object, Ids extends UserIds, Input extends object> {
  /**
   * For pages and other server components: the visit of the request, which reads. Next lets them set no cookie, so a method
   * that would set one rejects with ERR_SESSION_HEADERS_SENT, before anything is stored.
   * @example
   * const visits = nextVisits(fetchVisits(sessions), { headers, cookies })
   * const visit = await visits.current()
   * const { user } = await visit.requireUser()
   */
  current(): Promise<FetchVisit<Data, Ids, Input>>
  /**
   * For server actions: calls `run` with a visit, and gives its cookies to Next. Call `redirect()` or `refresh()` afterwards.
   * @example
   * const visits = nextVisits(fetchVisits(sessions), { headers, cookies })
   * const logOut = () => visits.withVisit(visit => visit.logOut())
   */
  withVisit<T>(run: (visit: FetchVisit<Data, Ids, Input>) => T | Promise<T>): Promise<T>
  /**
   * For route handlers. A SessionError is answered in JSON.
   * @example
   * const visits = nextVisits(fetchVisits(sessions), { headers, cookies })
   * const GET = visits.route(async visit => Response.json((await visit.requireUser()).user)) // export it
   */
  route<C>(
    handler: (visit: FetchVisit<Data, Ids, Input>, request: Request, context: C) => Response | Promise<Response>,
  ): (request: Request, context: C) => Promise<Response>
  /**
   * For `proxy.ts`. A page cannot send cookies: before it, the proxy renews the session and brings a remembered user back. It
   * is no guard.
   * @example
   * const visits = nextVisits(fetchVisits(sessions), { headers, cookies })
   * const proxy = visits.proxy(NextResponse) // export it
   */
  proxy(responses: NextResponses): (request: Request) => Promise<Response>
}

const NO_TOUCH = { touch: false } as const

/** Next would answer 500 to whatever is thrown. */
function answerTo(error: unknown): Response {
  if (!(error instanceof SessionError)) throw error
  // The details are for the log alone.
  if (error.status >= 500) console.error(error)
  return error.getResponse()
}

/**
 * Visits for the app router of Next, which gives pages and actions no Request but two functions, `headers` and `cookies` of
 * `next/headers`.
 * @throws TypeError that says what to pass
 * @example
 * const visits = nextVisits(fetchVisits(sessions), { headers, cookies })
 */
export function nextVisits<Data extends object, Ids extends UserIds, Input extends object>(
  visits: FetchVisits<Data, Ids, Input>,
  functions: NextFunctions,
): NextVisits<Data, Ids, Input> {
  if (typeof visits?.handle !== 'function') refuse('nextVisits', 'fetchVisits(sessions)', visits)
  const { headers, cookies } = functions ?? {}
  if (typeof headers !== 'function' || typeof cookies !== 'function')
    refuse('nextVisits', "{ headers, cookies } of 'next/headers'", functions)
  type Visit = FetchVisit<Data, Ids, Input>
  // Next gives the same headers to all code that runs for one request: a page sees the changes of the action before it.
  const writing = new WeakMap<Headers, Visit>()
  const reading = new WeakMap<Headers, { readonly cookie: string; readonly visit: Visit }>()
  const open = (method: 'GET' | 'POST', given: Headers) =>
    visits.of(new Request(`http://${given.get('host')}/`, { method, headers: given }))
  /** A visit that only reads, with the cookies that the browser has once those are sent. To look closes nothing. */
  const reader = (given: Headers, sent: Visit['cookies'] = []) => {
    const cookie = withCookies(given.get('cookie'), sent)
    const known = reading.get(given)
    if (known?.cookie === cookie) return known.visit
    const asked = new Headers(given)
    asked.set('Cookie', cookie)
    const visit = open('GET', asked)
    // From here on no cookie can be set.
    visit.respond(new Response())
    reading.set(given, { cookie, visit })
    return visit
  }
  /** Ends what began in an action whose cookies Next refuses: no browser has it. A remember token leads to its session again. */
  const endBegun = async (visit: Visit, given: Headers) => {
    const session = await visit.get(NO_TOUCH)
    const before = await reader(given).get(NO_TOUCH)
    if (session !== null && !session.remembered && session.key !== before?.key) await visit.logOut()
  }
  return {
    async current() {
      const given = await headers()
      return reader(given, writing.get(given)?.cookies)
    },
    async withVisit(run) {
      const given = await headers()
      // Not one that only reads: its request would not be looked at as one of a form.
      const visit = writing.get(given) ?? open('POST', given)
      writing.set(given, visit)
      const jar = await cookies()
      const [outcome] = await Promise.allSettled([Promise.resolve(visit).then(run)])
      try {
        for (const { name, value, options } of visit.cookies) jar.set(name, value, options)
        visit.finish()
      } catch (refusal) {
        // In a component.
        await endBegun(visit, given).catch(() => {})
        if (outcome.status === 'fulfilled') throw refusal
      }
      if (outcome.status === 'rejected') throw outcome.reason
      return outcome.value
    },
    route: handler => (request, context) =>
      visits.handle(request, async visit => {
        try {
          return await handler(visit, request, context)
        } catch (error) {
          return answerTo(error)
        }
      }),
    proxy: responses => async request => {
      if (request.method !== 'GET') return responses.next()
      const showPage = async (visit: Visit) => {
        await visit.get()
        const given = new Headers(request.headers)
        given.set('Cookie', withCookies(given.get('cookie'), visit.cookies))
        return responses.next({ request: { headers: given } })
      }
      return visits.handle(request, visit => showPage(visit).catch(answerTo))
    },
  }
}
