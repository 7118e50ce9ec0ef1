// The same small service on each library that takes a store, as its own documentation sets it up: login, logout, and a
// request that has read its session and waits before it writes. Express is here, the others in test/libraries.
import express from 'express'
import expressSession from 'express-session'
import { listening } from '../listening.ts'

export const SECRET = 'a secret that has more than thirty-two characters'

/** Requests under way: each waits at the gate that it names. */
export class Gates {
  readonly #waiting = new Map<string, () => void>()
  readonly #expected = new Map<string, () => void>()

  /** Called by the request. */
  pass(name: string): Promise<void> {
    return new Promise(resolve => {
      this.#waiting.set(name, resolve)
      this.#expected.get(name)?.()
    })
  }

  /** Resolves when the request is at its gate. */
  arrived(name: string): Promise<void> {
    return new Promise(resolve => {
      if (this.#waiting.has(name)) resolve()
      else this.#expected.set(name, resolve)
    })
  }

  open(name: string): void {
    this.#waiting.get(name)!()
    this.#waiting.delete(name)
    this.#expected.delete(name)
  }
}

/** What a handler is given: a session as the library has it, and how to answer. */
export interface Turn {
  readonly path: string
  readonly query: URLSearchParams
  session(): any
  /** The library's own calls, as promises. */
  regenerate(): Promise<unknown>
  save(): Promise<unknown>
  destroy(): Promise<unknown>
}

export async function handle(turn: Turn, gates: Gates): Promise<unknown> {
  const { path, query } = turn
  const value = query.get('value')
  switch (path) {
    case '/login':
      await turn.regenerate()
      turn.session().user = query.get('user')
      await turn.save()
      return 'logged in'
    case '/login-in-place':
      turn.session().user = query.get('user')
      return 'logged in'
    // Such as when the user confirms a password: a new ID for whoever was loaded, or for `as`.
    case '/new-id': {
      const { user } = turn.session()
      if (query.has('gate')) await gates.pass(query.get('gate')!)
      const next = query.get('as') ?? user
      // koa-session takes the data along.
      if (next !== user) turn.session().user = next
      await turn.regenerate()
      turn.session().user = next
      await turn.save()
      return user
    }
    case '/new-id-twice':
      for (const _ of [1, 2]) await handle({ ...turn, path: '/new-id', query: new URLSearchParams() }, gates)
      return turn.session().user
    case '/logout':
      await turn.destroy()
      return 'logged out'
    case '/forget-user':
      turn.session().user = undefined
      return 'forgotten'
    case '/write': {
      const seen = turn.session().user ?? null
      if (query.has('gate')) await gates.pass(query.get('gate')!)
      if (turn.session() !== null && turn.session() !== undefined)
        turn.session()[query.get('key')!] = value ?? 'written'
      return seen
    }
    case '/read':
      return JSON.parse(JSON.stringify(turn.session() ?? null))
    default:
      return null
  }
}

/** Calls back style as a promise. */
export const called = (verb: (callback: (error?: unknown) => void) => unknown): Promise<void> =>
  new Promise((resolve, reject) => {
    verb(error => (error ? reject(error) : resolve()))
  })

export { listening } from '../listening.ts'

export interface Started {
  readonly port: number
  close(): Promise<void>
}

export type Start = (store: any, gates: Gates, options?: object) => Promise<Started>

export const withExpress =
  (makeApp: any, session: any): Start =>
  (store, gates, options = {}) => {
    const app = makeApp()
    app.use(session({ store, secret: SECRET, resave: false, saveUninitialized: false, ...options }))
    app.use((request: any, response: any, next: any) => {
      const url = new URL(request.originalUrl, 'http://localhost')
      const turn: Turn = {
        path: url.pathname,
        query: url.searchParams,
        session: () => request.session,
        regenerate: () => called(callback => request.session.regenerate(callback)),
        save: () => called(callback => request.session.save(callback)),
        destroy: () => called(callback => request.session.destroy(callback)),
      }
      handle(turn, gates).then(answer => response.json(answer), next)
    })
    app.use((error: any, _request: unknown, response: any, next: any) => {
      if (response.headersSent) next(error)
      else response.status(error.status ?? 500).json({ error: error.message })
    })
    return listening(app)
  }

export const EXPRESS = { name: 'express-session 1.19, Express 5', start: withExpress(express, expressSession) }

interface ConnectReply {
  readonly status: number
  readonly cookies: string[]
  readonly body: any
}

/** A client that keeps its cookies in the order in which the answers arrive. */
export class ConnectBrowser {
  readonly cookies: Map<string, string>
  readonly #port: number

  constructor(port: number, cookies: Iterable<[string, string]> = []) {
    this.#port = port
    this.cookies = new Map(cookies)
  }

  /** Somebody with a copy of the cookies. */
  copy(): ConnectBrowser {
    return new ConnectBrowser(this.#port, this.cookies)
  }

  async go(path: string, port = this.#port, init: RequestInit = {}): Promise<ConnectReply> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = cookie === '' ? {} : { cookie }
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers })
    const cookies = response.headers.getSetCookie()
    for (const line of cookies) {
      const [name, value] = /^([^=]*)=([^;]*)/.exec(line)!.slice(1) as [string, string]
      if (value === '' || /expires=Thu, 01 Jan 1970/i.test(line)) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    const text = await response.text()
    const isJson = /^(?:["{[]|null$)/.test(text)
    return { status: response.status, cookies, body: isJson ? JSON.parse(text) : text || null }
  }

  /** The data of the session. */
  async read(): Promise<any> {
    return (await this.go('/read')).body
  }
}

/** Runs the service over this store until `close`. */
export async function startApp(start: Start, store: unknown, options?: object) {
  const gates = new Gates()
  const { port, close } = await start(store, gates, options)
  return { port, gates, close, browser: () => new ConnectBrowser(port) }
}
