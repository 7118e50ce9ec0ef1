// The same small service on each library that takes a store, as its own documentation sets it up: login, logout, and a
// request that has read its session and waits before it writes.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import fastifyCookie from '@fastify/cookie'
import fastifySession from '@fastify/session'
import express from 'express'
import express4 from 'express-4'
import expressSession from 'express-session'
import expressSession118 from 'express-session-1.18'
import fastify from 'fastify'
import Koa from 'koa'
import koaSession from 'koa-session'

const SECRET = 'a secret that has more than thirty-two characters'

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
interface Turn {
  readonly path: string
  readonly query: URLSearchParams
  session(): any
  /** The library's own calls, as promises. */
  regenerate(): Promise<unknown>
  save(): Promise<unknown>
  destroy(): Promise<unknown>
}

async function handle(turn: Turn, gates: Gates): Promise<unknown> {
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

const called = (verb: (callback: (error?: unknown) => void) => unknown): Promise<void> =>
  new Promise((resolve, reject) => {
    verb(error => (error ? reject(error) : resolve()))
  })

interface Started {
  readonly port: number
  close(): Promise<unknown>
}

async function listening(listener: (request: IncomingMessage, response: ServerResponse) => unknown): Promise<Started> {
  const server = createServer(listener)
  // On a busy machine a client may use a connection again in the moment in which it is closed as idle.
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

type Start = (store: any, gates: Gates, options?: object) => Promise<Started>

const withExpress =
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

const withFastify: Start = async (store, gates, options = {}) => {
  const app = fastify()
  app.register(fastifyCookie)
  app.register(fastifySession, {
    secret: SECRET,
    store,
    cookie: { secure: false },
    saveUninitialized: false,
    ...options,
  })
  app.all('/*', async (request: any) => {
    const url = new URL(request.url, 'http://localhost')
    const turn: Turn = {
      path: url.pathname,
      query: url.searchParams,
      session: () => request.session,
      regenerate: () => request.session.regenerate(),
      save: () => request.session.save(),
      destroy: () => request.session.destroy(),
    }
    return JSON.stringify(await handle(turn, gates))
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
}

const withKoa: Start = (store, gates, options = {}) => {
  const app = new Koa()
  app.silent = true
  app.keys = [SECRET]
  app.use(koaSession({ store, ...options } as any, app) as any)
  app.use(async (context: any) => {
    const turn: Turn = {
      path: context.path,
      query: new URLSearchParams(context.querystring),
      session: () => context.session,
      regenerate: () => context.session.regenerate(),
      save: () => context.session.save(),
      destroy: async () => {
        context.session = null
      },
    }
    context.body = JSON.stringify((await handle(turn, gates)) ?? null)
  })
  return listening(app.callback())
}

export const APPS: Readonly<Record<string, Start>> = {
  'express-session 1.19, Express 5': withExpress(express, expressSession),
  'express-session 1.18, Express 4': withExpress(express4, expressSession118),
  '@fastify/session 11': withFastify,
  'koa-session 7': withKoa,
}

/** A client that keeps its cookies in the order in which the answers arrive. */
export class ConnectBrowser {
  readonly cookies = new Map<string, string>()
  readonly #port: number

  constructor(port: number, cookies: Iterable<[string, string]> = []) {
    this.#port = port
    this.cookies = new Map(cookies)
  }

  /** Somebody with a copy of the cookies. */
  copy(): ConnectBrowser {
    return new ConnectBrowser(this.#port, this.cookies)
  }

  async go(path: string, port = this.#port): Promise<{ status: number; body: any }> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: cookie === '' ? {} : { cookie } })
    for (const line of response.headers.getSetCookie()) {
      const [name, value] = /^([^=]*)=([^;]*)/.exec(line)!.slice(1) as [string, string]
      const isCleared = value === '' || /expires=Thu, 01 Jan 1970/i.test(line)
      if (isCleared) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    const text = await response.text()
    return { status: response.status, body: text === '' ? null : parsed(text) }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

export async function startApp(name: string, store: unknown, options?: object) {
  const gates = new Gates()
  const { port, close } = await APPS[name]!(store, gates, options)
  return { port, gates, close, browser: () => new ConnectBrowser(port) }
}

/** Runs `work` so many times, a hundred at once, and counts the answers that are true. */
async function count(tries: number, work: (index: number) => Promise<boolean>): Promise<number> {
  let next = 0
  let found = 0
  const worker = async () => {
    while (next < tries) {
      const index = next
      next += 1
      if (await work(index)) found += 1
    }
  }
  await Promise.all(Array.from({ length: Math.min(100, tries) }, worker))
  return found
}

type Service = Awaited<ReturnType<typeof startApp>>

/** A request is under way and its browser logs out; then it writes and answers. How often is a copy of the cookies logged in? */
export const countRevived = ({ browser, gates }: Service, tries: number): Promise<number> =>
  count(tries, async index => {
    const one = browser()
    await one.go(`/login?user=${index + 1}`)
    const copy = one.copy()
    const gate = `revived ${index}`
    const late = copy.copy()
    const writing = late.go(`/write?key=a&gate=${gate}`)
    await gates.arrived(gate)
    await one.go('/logout')
    gates.open(gate)
    const { body } = await writing
    if (body !== String(index + 1)) throw new Error(`the request under way was not logged in: ${JSON.stringify(body)}`)
    const seen = [await late.go('/read'), await copy.go('/read'), await one.go('/read')]
    return seen.some(({ body: session }) => session?.user !== undefined)
  })

/** Two requests are under way, and each writes a key of its own that is there already. How often is one of the two lost? */
export const countLost = ({ browser, gates }: Service, tries: number): Promise<number> =>
  count(tries, async index => {
    const one = browser()
    await one.go(`/login?user=${index + 1}`)
    const names = ['a', 'b'].map(key => ({ key, gate: `lost ${key} ${index}` }))
    for (const { key } of names) await one.go(`/write?key=${key}&value=old`)
    const writing = names.map(({ key, gate }) => one.go(`/write?key=${key}&gate=${gate}`))
    await Promise.all(names.map(({ gate }) => gates.arrived(gate)))
    for (const { gate } of names) gates.open(gate)
    await Promise.all(writing)
    const { body } = await one.go('/read')
    return body?.user !== String(index + 1) || body.a !== 'written' || body.b !== 'written'
  })
