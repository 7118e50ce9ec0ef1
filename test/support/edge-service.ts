// Visits with and without a real node:http server around them.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { SessionError, SessionManager, type SessionOptions, type Store } from 'coatcheck'
import { openVisit, type VisitOptions, type VisitRequest } from 'coatcheck/custom-server'
import { type NodeVisitsOptions, nodeVisits, type Visit } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { afterEach } from 'vitest'
import { listening, type Send, sender } from './listening.ts'
import { onlyHost } from './only-host.ts'

export { type Reply, type Send, sender } from './listening.ts'

export interface Data {
  cart?: string[]
  flash?: string
  n?: number
}
export type Manager = SessionManager<Data>
export type AnyVisit = Visit<Data, 'bigint', Data>
export const ada = { user: { id: 42n, name: 'ada' } }

/** A store that counts what is asked of it, by verb. */
export function counting(store: Store): { store: Store; calls: string[] } {
  const calls: string[] = []
  const counted = new Proxy(store, {
    get(target, verb, receiver) {
      const value = Reflect.get(target, verb, target)
      if (typeof value !== 'function') return Reflect.get(target, verb, receiver)
      return (...args: unknown[]) => {
        if (verb !== 'shard' && verb !== 'close') calls.push(String(verb))
        return Reflect.apply(value, target, args)
      }
    },
  })
  return { store: counted, calls }
}

const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()!()
})

/** A manager on a counted memory store, with a clock that stands until it is moved. */
export function makeSessions(options: Partial<SessionOptions<Data, 'bigint', Data>> = {}) {
  const { store, calls } = counting(options.store ?? new MemoryStore())
  const clock = { now: 1_800_000_000_000 }
  const events: string[] = []
  const sessions: Manager = new SessionManager<Data>({
    now: () => clock.now,
    onEvent: event => events.push(event.type),
    sweepInterval: false,
    ...options,
    store,
  })
  open.push(() => sessions.close())
  return { sessions, store, calls, clock, events }
}

/** A visit without any server, as a cookie jar would open it. */
export const visitOf = (
  sessions: Manager,
  cookie: string | readonly string[] | null = null,
  request: Partial<VisitRequest> = {},
  options?: VisitOptions,
): AnyVisit =>
  openVisit(
    sessions,
    {
      method: 'POST',
      secure: true,
      header: onlyHost,
      ...request,
      cookie: typeof cookie === 'string' ? cookie : (cookie?.join('; ') ?? null),
    },
    options,
  )

/** What the response sets, which ends the visit. */
export const setCookies = (visit: { finish(): { headers: Headers } }) => visit.finish().headers.getSetCookie()

/** A browser that has logged in: its session, and its cookies, each as `name=value`. What was counted before is forgotten. */
export async function loggedIn(made: ReturnType<typeof makeSessions>, login: object = ada, options?: VisitOptions) {
  const visit = visitOf(made.sessions, null, {}, options)
  const session = await visit.logIn(login as typeof ada)
  const [cookie, token] = setCookies(visit).map(each => jar([each])) as [string, string]
  made.calls.length = 0
  made.events.length = 0
  return { session, cookie, token }
}

export type Handler = (visit: AnyVisit, request: IncomingMessage, response: ServerResponse) => unknown

/** Errors become their status and code, as a framework would answer them. */
export function answerError(response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  response.statusCode = error instanceof SessionError ? error.status : 500
  response.end(error instanceof SessionError ? error.code : String(error))
}

export async function listen(
  handler: (request: IncomingMessage, response: ServerResponse) => unknown,
): Promise<{ port: number; send: Send }> {
  const { port, close } = await listening((request, response) => {
    Promise.resolve()
      .then(() => handler(request, response))
      .catch(error => answerError(response, error))
  })
  open.push(close)
  return { port, send: sender(port) }
}

/** A server whose handler gets a visit of each request. */
export async function serve(
  handler: Handler,
  options: { edge?: NodeVisitsOptions; manager?: Partial<SessionOptions<Data, 'bigint', Data>> } = {},
) {
  const made = makeSessions(options.manager)
  const visits = nodeVisits(made.sessions, options.edge)
  const served = await listen((request, response) => handler(visits.of(request, response), request, response))
  return { ...made, ...served, visits }
}

/** The Cookie header that a browser would send after these Set-Cookie values. */
export const jar = (cookies: readonly string[]): string =>
  cookies
    .filter(cookie => !/max-age=0\b/i.test(cookie))
    .map(cookie => cookie.split(';')[0])
    .join('; ')

/** The three endpoints of any login service. */
export const threeEndpoints: Handler = async (visit, request, response) => {
  const { url } = request
  if (url === '/login') await visit.logIn(ada)
  else if (url === '/remember') await visit.logIn({ ...ada, remember: true })
  else if (url === '/logout') await visit.logOut()
  response.end((await visit.get())?.user?.name ?? 'null')
}
