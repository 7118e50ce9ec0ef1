// express-session as it is on npm, with our store, around handlers on a real server.
import { SessionError, type SessionOptions } from 'coatcheck'
import { type ConnectStoreOptions, connectStore } from 'coatcheck/connect'
import expressSession, { type SessionOptions as MiddlewareOptions } from 'express-session'
import { called, listen, makeManager, type OldHandler, type OldRequest } from '../express-session/service.ts'

export const SECRET = 'a secret that has more than thirty-two characters'
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

export async function serve(
  handlers: Record<string, OldHandler>,
  { manager = {}, middleware = {} }: Setup = {},
  made = makeStore(manager),
) {
  const errors: unknown[] = []
  const session = expressSession({
    store: made.store,
    secret: SECRET,
    resave: false,
    saveUninitialized: false,
    ...middleware,
  }) as any
  const listening = await listen((request, response) => {
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
  return { ...made, ...listening, errors }
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
