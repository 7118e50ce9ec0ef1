// The same over node:http and frameworks, and where an edge, a manager and the option are of different copies of the package.
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { SessionManager, type Visit } from 'coatcheck'
import { deviceBound, deviceOf, deviceState } from 'coatcheck/device-bound'
import { fetchVisits } from 'coatcheck/fetch'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { describe, expect, it, vi } from 'vitest'
import { BOUND_COOKIE, boundEdge, DeviceClient, REFRESH } from '../../support/device-client.ts'
import { send, served, walkOver } from '../../support/device-wire.ts'

const ADA = { id: 42n, name: 'ada' }

/** What the page at this path answers; its name says what it does first. */
async function pageOf(visit: Visit, path: string): Promise<string> {
  if (path === '/login') await visit.logIn({ user: ADA })
  if (path === '/logout') await visit.logOut()
  return JSON.stringify({ name: (await visit.get())?.user?.name ?? null, state: await deviceState(visit) })
}

describe('nodeVisits', () => {
  const bound = () => deviceBound(nodeVisits(new SessionManager({ store: new MemoryStore() })), { lifetime: '1m' })

  it('registers, refreshes and logs out over node:http', async () => {
    const visits = bound()
    const server = async (request: IncomingMessage, response: ServerResponse) => {
      if (await visits.handled(request, response)) return
      response.end(await pageOf(visits.of(request, response), request.url!))
    }
    await walkOver(await served(server))
  })

  it('offers a binding and answers its paths over node:http2', async () => {
    const sessions = new SessionManager({ store: new MemoryStore() })
    const visits = deviceBound(nodeVisits(sessions, { isSecure: () => true }))
    const server = createServer(async (request, response) => {
      if (await visits.handled(request, response)) return
      response.end(await pageOf(visits.of(request, response), request.url))
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const ask = async (path: string, headers: Record<string, string> = {}) => {
      const asked = client.request({ ':method': 'POST', ':path': path, ...headers })
      asked.end()
      const [answered] = await once(asked, 'response')
      asked.resume()
      return answered
    }
    try {
      const answered = await ask('/login')
      expect(answered['secure-session-registration']).toContain('path="/device-session/register"')
      const cookie = answered['set-cookie'][0].split(';')[0]
      expect((await ask('/device-session/register', { cookie }))[':status']).toBe(400)
    } finally {
      client.destroy()
      server.close()
    }
  })

  it('registers, refreshes and logs out over Express, below a path', async () => {
    const visits = bound()
    const app = express()
    app.use('/device-session', async (request, response, next) => {
      if (!(await visits.handled(request, response))) next()
    })
    app.use(async (request, response) => {
      response.end(await pageOf(visits.of(request, response), request.url))
    })
    await walkOver(await served(app))
  })

  it('registers, refreshes and logs out over Fastify, in a hook', async () => {
    const visits = bound()
    const app = fastify()
    app.addHook('onRequest', async (request, reply) => {
      if (await visits.handled(request.raw, reply.raw)) reply.hijack()
    })
    app.all('/*', (request, reply) => pageOf(visits.of(request.raw, reply.raw), request.url))
    await app.ready()
    await walkOver(await served((request, response) => app.routing(request, response)))
  })

  it('registers, refreshes and logs out over Koa, in a middleware', async () => {
    const visits = bound()
    const app = new Koa()
    app.use(async (ctx, next) => {
      if (await visits.handled(ctx.req, ctx.res)) ctx.respond = false
      else await next()
    })
    app.use(async ctx => {
      ctx.body = await pageOf(visits.of(ctx.req, ctx.res), ctx.path)
    })
    await walkOver(await served(app.callback()))
  })

  it('answers at its paths with a query, too', async () => {
    const visits = bound()
    const origin = await served(async (request, response) => {
      if (!(await visits.handled(request, response))) response.end('a page')
    })
    const answer = await send(`${origin}${REFRESH}?from=menu`, 'POST', {})
    expect([answer.status, await answer.json()]).toEqual([400, { error: expect.any(String) }])
    expect(await (await send(`${origin}/page?${REFRESH}`, 'POST', {})).text()).toBe('a page')
  })

  it('leaves a response alone that has begun already', async () => {
    const visits = bound()
    const origin = await served(async (request, response) => {
      response.writeHead(200).flushHeaders()
      response.end(`handled: ${await visits.handled(request, response)}`)
    })
    const answer = await send(origin + REFRESH, 'POST', {})
    expect([answer.status, await answer.text()]).toEqual([200, 'handled: true'])
  })

  it('refuses a request without its response, at any path', async () => {
    const visits = bound()
    const origin = await served(async (request, response) => {
      // @ts-expect-error plain JavaScript
      response.end(String(await visits.handled(request).catch((error: Error) => error)))
    })
    for (const path of [REFRESH, '/page'])
      expect(await (await send(origin + path, 'POST', {})).text()).toMatch(
        /^TypeError: handled: expected a response of node:http, got null; pass what node:http gave/,
      )
  })

  it('is the same visit if it is asked for again, and has what nodeVisits has', async () => {
    const visits = bound()
    const origin = await served((request, response) => {
      const visit = visits.of(request, response)
      response.end(String(visits.of(request) === visit))
    })
    expect(await (await send(origin, 'GET', {})).text()).toBe('true')
    expect(visits.sessions).toBeInstanceOf(SessionManager)
    expect(visits.cookie).toEqual({})
  })

  it('takes visits alone', () => {
    for (const wrong of [undefined, null, {}, new SessionManager({ store: new MemoryStore() })])
      expect(() => deviceBound(wrong as never)).toThrow(
        /^deviceBound: expected nodeVisits\(sessions\) or fetchVisits\(sessions\), got /,
      )
  })
})

describe('fetchVisits', () => {
  it('registers, refreshes and logs out in front of Hono, and of any function from Request to Response', async () => {
    const visits = deviceBound(fetchVisits(new SessionManager({ store: new MemoryStore() })), { lifetime: '1m' })
    const app = new Hono<{ Bindings: { visit: Visit } }>()
    app.all('*', async c => c.body(await pageOf(c.env.visit, c.req.path)))
    const answer = async (request: Request) =>
      (await visits.handled(request)) ?? visits.handle(request, visit => app.fetch(request, { visit }))
    await walkOver(
      await served(async (incoming, response) => {
        const { method, url, headers } = incoming
        const request = new Request(`http://${headers.host}${url}`, {
          method: method!,
          headers: headers as Record<string, string>,
        })
        const answered = await answer(request)
        for (const [name, value] of answered.headers) response.appendHeader(name, value)
        response.writeHead(answered.status).end(await answered.text())
      }),
    )
  })
})

describe('two copies of the package', () => {
  it('bind and check the sessions of each other', async () => {
    const sessions = new SessionManager({ store: new MemoryStore() })
    vi.resetModules()
    const { deviceBound: otherBound, deviceState: otherState } = await import('coatcheck/device-bound')
    const { fetchVisits: otherVisits } = await import('coatcheck/fetch')
    expect(otherBound).not.toBe(deviceBound)
    for (const visits of [deviceBound(otherVisits(sessions)), otherBound(fetchVisits(sessions))]) {
      const browser = new DeviceClient(visits)
      await browser.logIn(ADA)
      expect((await browser.register()).status).toBe(200)
      const visit = visits.of(browser.request('/'))
      expect([await otherState(visit), await deviceState(visit)]).toEqual(['bound', 'bound'])
      expect(deviceOf((await visit.get())!)).not.toBeNull()
      browser.jar.set(BOUND_COOKIE, 'wrong')
    }
  })

  it('keeps the sessions of tenants apart', async () => {
    const sessions = new SessionManager({ store: new MemoryStore() })
    const acme = new DeviceClient(boundEdge(sessions.namespace('acme')))
    const other = new DeviceClient(boundEdge(sessions.namespace('other')), acme.device)
    await acme.logIn(ADA)
    other.jar = new Map(acme.jar)
    expect((await other.register(acme.challenge!)).status).toBe(401)
    expect((await acme.register()).status).toBe(200)
    expect(await acme.user()).toBe('ada')
  })
})
