// A real node:http server around a handler, and a client that sends exactly the headers it is told to.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SessionError, SessionManager, type SessionOptions, type Store } from 'coatcheck'
import { openVisit, type VisitOptions, type VisitRequest } from 'coatcheck/custom-server'
import { type NodeVisitsOptions, nodeVisits, type Visit } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { afterEach } from 'vitest'
import { onlyHost } from './only-host.ts'

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

export interface Reply {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly cookies: string[]
  readonly body: string
}
export type Send = (
  path: string,
  options?: { method?: string; headers?: Record<string, string | string[]>; body?: string },
) => Promise<Reply>

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
  const server = createServer((request, response) => {
    Promise.resolve()
      .then(() => handler(request, response))
      .catch(error => answerError(response, error))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  open.push(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  return { port, send: sender(port) }
}

export const sender =
  (port: number): Send =>
  (path, { method = 'GET', headers = {}, body } = {}) =>
    new Promise((resolve, reject) => {
      const request = send({ port, host: '127.0.0.1', path, method, headers, agent: false })
      request.on('error', reject)
      request.on('response', response => {
        let text = ''
        response.setEncoding('utf8').on('data', chunk => {
          text += chunk
        })
        response.on('error', reject)
        response.on('end', () =>
          resolve({
            status: response.statusCode!,
            headers: response.headers,
            cookies: response.headers['set-cookie'] ?? [],
            body: text,
          }),
        )
      })
      request.end(body)
    })

/** A server whose handler gets a visit of each request. */
export async function serve(
  handler: Handler,
  options: { edge?: NodeVisitsOptions; manager?: Partial<SessionOptions<Data, 'bigint', Data>> } = {},
) {
  const made = makeSessions(options.manager)
  const visits = nodeVisits(made.sessions, options.edge)
  const listening = await listen((request, response) => handler(visits.of(request, response), request, response))
  return { ...made, ...listening, visits }
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
