// What frameworks have in hand where a visit wants something else: each is a TypeError that says what to pass.
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { openVisit, type VisitRequest } from 'coatcheck/custom-server'
import { fetchVisits } from 'coatcheck/fetch'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { ada, makeSessions, visitOf } from '../support/edge-service.ts'
import { onlyHost } from '../support/only-host.ts'

const request = new IncomingMessage(new Socket())
request.method = 'GET'
request.httpVersion = '1.1'
request.headers = { cookie: 'a=b', host: 'localhost' }
const response = new ServerResponse(request)
const fetched = new Request('https://app.example.com/')

// As these frameworks make them: the request's and response's own members, in part, around the raw ones.
const fastify = {
  request: { raw: request, headers: request.headers, method: 'GET', url: '/', socket: request.socket },
  reply: { raw: response, sent: false, header() {}, send() {} },
}
const koa = {
  req: request,
  res: response,
  headers: request.headers,
  request: { req: request, res: response, headers: request.headers, method: 'GET', socket: request.socket },
  response: { req: request, res: response, headerSent: false, headers: {} },
}
const hono = { req: { raw: fetched, method: 'GET', url: fetched.url, header() {} } }
const h3 = { node: { req: request, res: response }, method: 'GET', path: '/', request: fetched }
const svelte = { request: fetched, url: new URL(fetched.url), cookies: {} }
describe('nodeVisits', () => {
  const { sessions } = makeSessions()
  const of = nodeVisits(sessions).of as (request: unknown, response?: unknown) => unknown

  it.each<[string, unknown, unknown, RegExp]>([
    ['Fastify’s request', fastify.request, fastify.reply, /request of node:http.*Fastify: request\.raw/],
    ['Fastify’s reply', request, fastify.reply, /response of node:http.*Fastify: request\.raw, reply\.raw/],
    ['Koa’s ctx.request', koa.request, koa.response, /request of node:http.*Koa: ctx\.req, ctx\.res/],
    ['Koa’s ctx.response', request, koa.response, /response of node:http.*Koa: ctx\.req, ctx\.res/],
    ['Koa’s ctx', koa, undefined, /request of node:http.*Koa: ctx\.req/],
    ['a Request', fetched, undefined, /for a Request use fetchVisits of 'coatcheck\/fetch'/],
    ['Hono’s context', hono, undefined, /for a Request use fetchVisits/],
    ['h3’s event, which has a Request too', h3, undefined, /request of node:http, .*h3: event\.node\.req/],
    ['what has no headers', { method: 'GET', headers: null }, undefined, /request of node:http, got an object; /],
    ['nothing', undefined, undefined, /request of node:http, got undefined/],
    ['the two the wrong way round', response, request, /request of node:http, got an object/],
    ['a socket as the response', request, new Socket(), /response of node:http, got an object; /],
  ])('refuses %s, and says what to pass', (_what, one, two, message) => {
    expect(() => of(one, two)).toThrow(TypeError)
    expect(() => of(one, two)).toThrow(/^nodeVisits: expected a (?:request|response) of node:http, got /)
    expect(() => of(one, two)).toThrow(message)
  })

  it('takes what tests put in place of a request, as long as it has headers', async () => {
    const visit = of({ method: 'GET', headers: {}, socket: {} }) as ReturnType<typeof openVisit>
    expect(await visit.get()).toBeNull()
  })

  it('takes a request that leads to itself, as that of Express does', () => {
    const express = Object.assign(new IncomingMessage(new Socket()), { httpVersion: '1.1' })
    Object.assign(express, { res: new ServerResponse(express) })
    expect(() => of(express, new ServerResponse(express))).not.toThrow()
  })
})

it('fetchVisits refuses what is no Request, and says what to pass', async () => {
  const visits = fetchVisits(makeSessions().sessions)
  for (const [wrong, message] of [
    [request, /for a request of node:http use nodeVisits of 'coatcheck\/node'/],
    [hono, /a Request, got an object; .*Hono: c\.req\.raw/],
    [hono.req, /Hono: c\.req\.raw/],
    [svelte, /SvelteKit: event\.request/],
    [undefined, /a Request, got undefined/],
    ['https://app.example.com/', /a Request, got "https/],
    [{ headers: {} }, /a Request, got an object; /],
  ] as [never, RegExp][]) {
    expect(() => visits.of(wrong)).toThrow(TypeError)
    expect(() => visits.of(wrong)).toThrow(/^fetchVisits: expected a Request, got /)
    expect(() => visits.of(wrong)).toThrow(message)
    await expect(visits.handle(wrong, () => new Response())).rejects.toThrow(message)
  }
  await expect(visits.handle(fetched, new Response() as never)).rejects.toThrow(/handle: expected a function/)
})

it('openVisit refuses requests of servers: it would never see their cookie', () => {
  const { sessions } = makeSessions()
  const express = { method: 'GET', secure: true, header: () => undefined, headers: {}, cookies: {} }
  const withoutHeaders = { method: 'GET', secure: true, cookie: null }
  for (const wrong of [request, fetched, express, withoutHeaders, undefined, null, 'x'])
    expect(() => openVisit(sessions, wrong as never)).toThrow(
      /^openVisit: expected \{ method, cookie.*nodeVisits.*fetchVisits/,
    )
  class Own implements VisitRequest {
    readonly method = 'GET'
    readonly secure = true
    get cookie() {
      return undefined
    }
    header() {
      return null
    }
  }
  expect(() => openVisit(sessions, new Own())).not.toThrow()
})

it('visits of every kind refuse a store where the manager belongs, and whatever else is none', () => {
  const request: VisitRequest = { method: 'GET', cookie: null, secure: true, header: onlyHost }
  const kinds: [string, (sessions: never) => unknown][] = [
    ['nodeVisits', sessions => nodeVisits(sessions)],
    ['fetchVisits', sessions => fetchVisits(sessions)],
    ['openVisit', sessions => openVisit(sessions, request)],
  ]
  for (const [name, visits] of kinds) {
    expect(() => visits(new MemoryStore() as never)).toThrow(
      `${name}: expected a SessionManager, got an object; pass new SessionManager({ store })`,
    )
    expect(() => visits(undefined as never)).toThrow(
      `${name}: expected a SessionManager, got undefined; pass new SessionManager({ store })`,
    )
    for (const wrong of [null, {}, 'x', () => {}, Promise.resolve(makeSessions().sessions)])
      expect(() => visits(wrong as never)).toThrow(/expected a SessionManager, got/)
    // A stream can be read too, and a router replaces.
    for (const near of [new Readable(), { replace() {} }])
      expect(() => visits(near as never)).toThrow(/expected a SessionManager, got an object/)
    expect(() => visits(makeSessions().sessions as never)).not.toThrow()
  }
})

it('openVisit refuses a jar as the cookie, and a request that does not say whether it is secure', () => {
  const { sessions } = makeSessions()
  const good = { method: 'GET', cookie: null, secure: true, header: onlyHost }
  for (const cookie of [undefined, null, '', 'a=b', [], ['a=b']])
    expect(() => openVisit(sessions, { ...good, cookie })).not.toThrow()
  // With each of them no request would ever be logged in.
  for (const cookie of [{ get() {}, toString: () => 'a=b' }, new Map(), 5, true])
    expect(() => openVisit(sessions, { ...good, cookie } as never)).toThrow(
      /^openVisit: cookie: expected the Cookie header, got /,
    )
  for (const secure of [undefined, null, 'https', 1])
    expect(() => openVisit(sessions, { ...good, secure } as never)).toThrow(
      /^openVisit: secure: expected true or false, got /,
    )
})

it('openVisit refuses an unsafe request of which it sees neither host nor origin: nothing would be guarded', async () => {
  const { sessions } = makeSessions()
  const { secret } = await sessions.create({ user: { id: 42n, name: 'ada' } })
  // As API Gateway hands them on: as the client wrote them.
  const asWritten: Record<string, string> = { Host: 'shop.example', Origin: 'https://evil.example' }
  const open = (request: Partial<VisitRequest>) =>
    openVisit(sessions, {
      method: 'POST',
      cookie: `session_id=${secret}`,
      secure: true,
      header: () => null,
      ...request,
    })
  for (const unsafe of [
    { header: (name: string) => asWritten[name] },
    { method: 'DELETE' },
    { method: 'GET', upgrade: true },
    { header: () => undefined },
    { header: () => '' },
  ])
    expect(() => open(unsafe)).toThrow(/^openVisit: header: found none of host, origin.* in lower case$/)
  expect((await open({ method: 'GET' }).get())?.user?.id).toBe(42n)
  for (const name of ['host', 'origin', 'sec-fetch-site'])
    expect(() => open({ header: each => (each === name ? 'none' : null) })).not.toThrow()
})

it('respond refuses what is no Response, and can still send the cookie in one', async () => {
  const visits = fetchVisits(makeSessions().sessions)
  const visit = visits.of(new Request('https://app.example.com/', { method: 'POST' }))
  const noResponses = [{ status: 200 }, { status: 200, headers: {} }, { headers: new Headers() }, new Headers()]
  for (const wrong of [undefined, null, 'x', hono, ...noResponses, Promise.resolve(new Response())])
    expect(() => visit.respond(wrong as never)).toThrow(/^respond: expected a Response, got /)
  for (const wrong of [undefined, null, 'x', ...noResponses])
    await expect(visits.handle(fetched, () => wrong as never)).rejects.toThrow(/^handle: expected a Response from/)
  await visit.logIn({ user: { id: 42n, name: 'ada' } })
  expect(() => visit.respond(undefined as never)).toThrow(/^respond: expected a Response, got undefined/)
  expect(visit.respond(new Response()).headers.getSetCookie()).toHaveLength(1)
})

it.each<[method: string, given: unknown, message: RegExp]>([
  ['create', { dta: {} }, /^create: "dta" is not an option \(there are: data/],
  ['create', ada, /^create: .*a visit starts a session with a user by logIn/],
  ['create', null, /^create: expected (an object of options|\{ data \})/],
  ['create', [], /^create: expected (an object of options|\{ data \})/],
  ['logIn', { ...ada, rember: true }, /^logIn: "rember" is not an option .* absoluteTimeout, remember\)/],
  ['logIn', 'ada', /^logIn: expected \{ user, data \}/],
  ['regenerate', { garce: '1m' }, /^regenerate: "garce" is not an option/],
  ['regenerate', ada, /^regenerate: .*logIn/],
  ['regenerate', null, /^regenerate: /],
])('a visit without a session refuses what its methods do not take: %s, %o', async (method, given, message) => {
  const visit = visitOf(makeSessions().sessions, null)
  const asked = (visit as unknown as Record<string, (given: unknown) => Promise<unknown>>)[method]!
  await expect(asked.call(visit, given)).rejects.toThrow(message)
  expect(await visit.get()).toBeNull()
})
