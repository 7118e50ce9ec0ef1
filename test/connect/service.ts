// express-session as it is on npm, with our store, around handlers on a real server, and browsers that keep their cookies.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { SessionError, type SessionManager, type SessionOptions } from 'coatcheck'
import { type ConnectStoreOptions, connectStore } from 'coatcheck/connect'
import expressSession, { type SessionOptions as MiddlewareOptions } from 'express-session'
import { ConnectBrowser, called, SECRET } from '../support/connect/apps.ts'
import { listen as listenAt, makeSessions } from '../support/edge-service.ts'

/** What older middleware finds at a request: nothing of it is typed. */
export type OldRequest = IncomingMessage & { session: any; sessionID: any } & Record<string, any>
export type OldHandler = (request: OldRequest, response: ServerResponse, next: (error?: unknown) => void) => unknown

export type AnyManager = SessionManager<Record<string, unknown>, 'bigint'>

/** `makeSessions`, for data of any keys. */
export function makeManager(options: Partial<SessionOptions> = {}) {
  const { sessions, ...made } = makeSessions(options as never)
  return { ...made, sessions: sessions as unknown as AnyManager }
}

/** Any listener of node:http on a port of its own. */
export async function listen(listener: (request: IncomingMessage, response: ServerResponse) => unknown) {
  const { port } = await listenAt(listener)
  return { port, browser: () => new ConnectBrowser(port) }
}

/** An ID such as a middleware draws. */
export const sidOf = (name: string) => Buffer.from(name.padEnd(24, name)).toString('base64url').slice(0, 32)

/** By the key `user` of the data. */
export const userOf: NonNullable<ConnectStoreOptions['userOf']> = ({ user }) =>
  user === undefined || user === null ? null : typeof user === 'object' ? user : { id: user }

export function makeStore(options: Partial<SessionOptions> = {}, more: ConnectStoreOptions = { userOf }) {
  const made = makeManager(options)
  return { ...made, store: connectStore(made.sessions, more as object) }
}

interface Setup {
  readonly manager?: Partial<SessionOptions>
  readonly middleware?: Partial<MiddlewareOptions>
}

/** The service of `HANDLERS`, and of others. */
export async function serve(
  more: Record<string, OldHandler> = {},
  { manager = {}, middleware = {} }: Setup = {},
  made = makeStore(manager),
) {
  const handlers = { ...HANDLERS, ...more }
  const errors: unknown[] = []
  const session = expressSession({
    store: made.store,
    secret: SECRET,
    resave: false,
    saveUninitialized: false,
    ...middleware,
  }) as any
  const listener = await listen((request, response) => {
    const answer = (error: unknown) => {
      errors.push(error)
      if (response.headersSent) return
      response.statusCode = error instanceof SessionError ? error.status : 500
      response.end(error instanceof SessionError ? error.code : String(error))
    }
    session(request, response, (error: unknown) => {
      if (error) return answer(error)
      const path = new URL(request.url!, 'http://localhost').pathname
      Promise.resolve()
        .then(() => handlers[path]!(request as OldRequest, response, answer))
        .catch(answer)
    })
  })
  return { ...made, ...listener, errors }
}

/** What a service has anyway. `?user=`, `?key=` and `?value=` say what is written. */
export const HANDLERS: Record<string, OldHandler> = {
  '/login': async (request, response) => {
    await called(callback => request.session.regenerate(callback))
    request.session.user = queryOf(request).get('user')
    await called(callback => request.session.save(callback))
    response.end(request.sessionID)
  },
  '/login-in-place': (request, response) => {
    request.session.user = queryOf(request).get('user')
    response.end(request.sessionID)
  },
  '/logout': async (request, response) => {
    await called(callback => request.session.destroy(callback))
    response.end('logged out')
  },
  '/forget-user': (request, response) => {
    delete request.session.user
    response.end()
  },
  '/write': (request, response) => {
    request.session[queryOf(request).get('key')!] = queryOf(request).get('value')
    response.end(request.sessionID)
  },
  '/read': (request, response) => {
    const { cookie, ...data } = request.session
    response.end(JSON.stringify(data))
  },
}

export const queryOf = (request: OldRequest) => new URL(request.url!, 'http://localhost').searchParams
