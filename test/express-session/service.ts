// Applications around req.session on a real server, and browsers that keep their cookies.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SessionError, SessionManager, type SessionOptions, type Store } from 'coatcheck'
import { type ExpressSessionOptions, expressSession } from 'coatcheck/express-session'
import { MemoryStore } from 'coatcheck/stores/memory'
import { afterEach } from 'vitest'
import { counting, jar, type Reply, sender } from '../support/edge-service.ts'

/** What older middleware finds at a request: nothing of it is typed. */
export type OldRequest = IncomingMessage & { session: any; sessionID: any } & Record<string, any>
export type OldHandler = (request: OldRequest, response: ServerResponse, next: (error?: unknown) => void) => unknown

const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()!()
})

/** A store whose verbs can be stopped, or made to fail. */
export function controlled(inner: Store = new MemoryStore()) {
  const control = {
    failing: new Set<string>(),
    /** Awaited before each call of a verb. */
    before: async (_verb: string): Promise<void> => {},
  }
  const store = new Proxy(inner, {
    get(target, name) {
      const value = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      if (name === 'shard' || name === 'close' || name === 'sweep') return value.bind(target)
      return async (...values: unknown[]) => {
        await control.before(String(name))
        if (control.failing.has(String(name))) throw new Error(`${String(name)} fails`)
        return Reflect.apply(value, target, values)
      }
    },
  })
  return { store, control }
}

export type AnyManager = SessionManager<Record<string, unknown>, 'bigint'>

export function makeManager(options: Partial<SessionOptions> = {}) {
  const { store, calls } = counting(options.store ?? new MemoryStore())
  const clock = { now: 1_800_000_000_000 }
  const events: string[] = []
  const sessions: AnyManager = new SessionManager({
    now: () => clock.now,
    onEvent: event => events.push(event.type),
    sweepInterval: false,
    ...options,
    store,
  })
  open.push(() => sessions.close())
  return { sessions, calls, clock, events }
}

/** One browser: it sends what it was given, and keeps the cookies of all answers in the order in which they came. */
export class Browser {
  readonly #send: ReturnType<typeof sender>
  readonly cookies = new Map<string, string>()

  constructor(port: number) {
    this.#send = sender(port)
  }

  get cookie(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  async go(path: string, method = 'GET', body?: string): Promise<Reply> {
    const { cookie } = this
    const headers = {
      ...(cookie && { cookie }),
      ...(body !== undefined && {
        'content-type': 'application/x-www-form-urlencoded',
        'content-length': `${body.length}`,
      }),
    }
    const reply = await this.#send(path, { method, headers, ...(body !== undefined && { body }) })
    for (const line of reply.cookies) {
      const [name, value] = line.split(';')[0]!.split('=') as [string, string]
      if (jar([line]) === '') this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    return reply
  }

  post(path: string, body = '') {
    return this.go(path, 'POST', body)
  }
}

/** Any listener of node:http on a port of its own. */
export async function listen(listener: (request: IncomingMessage, response: ServerResponse) => unknown) {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  open.push(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  return { port, server, browser: () => new Browser(port) }
}

/** Handlers by path, each behind the bridge, without a framework; errors are answered by their status and code. */
export async function serve(
  handlers: Record<string, OldHandler>,
  { manager = {}, bridge = {} }: { manager?: Partial<SessionOptions>; bridge?: ExpressSessionOptions<'bigint'> } = {},
) {
  const made = makeManager(manager)
  const session = expressSession(made.sessions, bridge)
  const errors: unknown[] = []
  const listening = await listen((request, response) => {
    const answer = (error: unknown) => {
      errors.push(error)
      if (response.headersSent) return
      response.statusCode = error instanceof SessionError ? error.status : 500
      response.end(error instanceof SessionError ? error.code : String(error))
    }
    session(request, response, error => {
      if (error) return answer(error)
      try {
        const path = new URL(request.url!, 'http://localhost').pathname
        const result = handlers[path]!(request as OldRequest, response, answer)
        if (result instanceof Promise) result.catch(answer)
      } catch (thrown) {
        answer(thrown)
      }
    })
  })
  return { ...made, ...listening, session, errors }
}

/** Calls back style as a promise. */
export const called = (verb: (callback: (error?: unknown) => void) => unknown): Promise<void> =>
  new Promise((resolve, reject) => {
    verb(error => (error ? reject(error) : resolve()))
  })
