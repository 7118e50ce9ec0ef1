// What test/device-bound asks over node:http and Express, over other frameworks.
import { SessionManager, type Visit } from 'coatcheck'
import { deviceBound } from 'coatcheck/device-bound'
import { fetchVisits } from 'coatcheck/fetch'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { describe, it } from 'vitest'
import { pageOf, served, walkOver } from '../support/device-wire.ts'

describe('nodeVisits', () => {
  const bound = () => deviceBound(nodeVisits(new SessionManager({ store: new MemoryStore() })), { lifetime: '1m' })

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
