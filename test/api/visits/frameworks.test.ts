// What frameworks do to a request and its response before a visit is asked: heads sent early, bodies read already.
import { createServer, type RequestListener } from 'node:http'
import { text } from 'node:stream/consumers'
import { SessionManager } from 'coatcheck'
import { fetchVisits } from 'coatcheck/fetch'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import express from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const user = { id: 42n, name: 'ada' }
const JSON_BODY = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"username":"ada"}' }

function setUp() {
  const sessions = new SessionManager({ store: new MemoryStore() })
  return { sessions, visits: nodeVisits(sessions), fetching: fetchVisits(sessions) }
}
let { sessions, visits, fetching } = setUp()
beforeEach(() => {
  ;({ sessions, visits, fetching } = setUp())
})
let stop = async () => {}
afterEach(async () => {
  await stop()
  await sessions.close()
})

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  stop = () => new Promise(resolve => server.close(() => resolve()))
  return `http://127.0.0.1:${(server.address() as { port: number }).port}/`
}

type NodePair = Parameters<typeof visits.of>
const codeOf = (error: { code?: string }) => error.code ?? 'no code'
/** Sends the head, then tries to log in; says in the body what came of it. */
async function logInLate(...[request, response]: [NodePair[0], NonNullable<NodePair[1]>]) {
  response.writeHead(200, { 'Content-Type': 'text/plain' }).flushHeaders()
  response.end(
    await visits
      .of(request, response)
      .logIn({ user })
      .then(() => 'logged in', codeOf),
  )
}

/** Each framework with a handler that has read the body with the framework's own parser. */
const FRAMEWORKS: Record<
  string,
  (handler: (...pair: Parameters<typeof logInLate>) => Promise<unknown>) => Promise<string>
> = {
  Express: handler => {
    const app = express().use(express.json())
    app.post('/', async (request, response) => {
      expect(request.body).toEqual({ username: 'ada' })
      await handler(request, response)
    })
    return listen(app)
  },
  Fastify: async handler => {
    const app = Fastify()
    app.post('/', async (request, reply) => {
      expect(request.body).toEqual({ username: 'ada' })
      reply.hijack()
      await handler(request.raw, reply.raw)
    })
    await app.ready()
    return listen((request, response) => app.routing(request, response))
  },
  Koa: handler => {
    const app = new Koa()
    app.use(async ctx => {
      expect(JSON.parse(await text(ctx.req))).toEqual({ username: 'ada' })
      ctx.respond = false
      await handler(ctx.req, ctx.res)
    })
    return listen(app.callback())
  },
}

describe.each(Object.entries(FRAMEWORKS))('%s', (_, serve) => {
  it('begins no session once its head was sent early', async () => {
    const url = await serve(logInLate)
    const answer = await fetch(url, JSON_BODY)
    expect([await answer.text(), answer.headers.getSetCookie()]).toEqual(['ERR_SESSION_HEADERS_SENT', []])
    expect(await sessions.list(user.id)).toEqual([])
  })

  it('logs in where the body was read, and is read again', async () => {
    const url = await serve(async (request, response) => {
      const again = await text(request).catch(error => error.code)
      await visits.of(request, response).logIn({ user })
      response.end(again)
    })
    const answer = await fetch(url, JSON_BODY)
    expect(await answer.text()).not.toContain('ada')
    expect(answer.headers.getSetCookie()).toHaveLength(1)
    expect(await sessions.list(user.id)).toHaveLength(1)
  })
})

describe('Hono, and whatever works with Request and Response', () => {
  const request = () => new Request('https://shop.example/', JSON_BODY)

  it('begins no session in a stream, once the response is on its way', async () => {
    const app = new Hono<{ Bindings: { visit: ReturnType<typeof fetching.of> } }>()
    app.post('/', c => {
      const { visit } = c.env
      const body = new ReadableStream(
        {
          async pull(controller) {
            const said = await visit.logIn({ user }).then(() => 'logged in', codeOf)
            controller.enqueue(new TextEncoder().encode(said))
            controller.close()
          },
        },
        { highWaterMark: 0 },
      )
      return new Response(body)
    })
    const answer = await fetching.handle(request(), visit => app.fetch(request(), { visit }))
    expect(answer.headers.getSetCookie()).toEqual([])
    expect(await answer.text()).toBe('ERR_SESSION_HEADERS_SENT')
    expect(await sessions.list(user.id)).toEqual([])
  })

  it('has the visit of a request whose body was read before', async () => {
    const used = request()
    await used.json()
    const answer = await fetching.handle(used, async visit => {
      await visit.logIn({ user })
      return new Response('logged in')
    })
    expect(answer.headers.getSetCookie()).toHaveLength(1)
  })

  it('sends the cookie where the handler answers that error', async () => {
    const used = request()
    const answer = await fetching.handle(used, async visit => {
      await used.json()
      await visit.logIn({ user })
      return used.json().then(Response.json, () => new Response(null, { status: 400 }))
    })
    expect([answer.status, answer.headers.getSetCookie().length]).toEqual([400, 1])
    expect(await sessions.list(user.id)).toHaveLength(1)
  })
})
