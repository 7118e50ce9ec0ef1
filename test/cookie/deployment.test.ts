// What docs/deployment.md says of proxies, containers, renderers and development servers, as their requests arrive here.
// Behind a real nginx: nginx.engines.test.ts.
import { once } from 'node:events'
import { request as ask, createServer, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { type NodeVisitsOptions, nodeVisits } from 'coatcheck/node'
import { describe, expect, it } from 'vitest'
import { ada, answerError, jar, makeSessions, serve, threeEndpoints } from '../support/edge-service.ts'
import { memoryFolder } from '../support/services/memory-folder.ts'
import { ScopedJar } from './scoped-jar.ts'

it('a login without HTTPS from another machine works where the cookie gives HTTPS up, and the cookie is not Secure', async () => {
  // Host says that the request was not made for this machine, as from a phone.
  const headers = { Host: '192.168.1.7:3000' }
  const logIn = async (edge: NodeVisitsOptions) =>
    (await serve(threeEndpoints, { edge })).send('/login', { method: 'POST', headers })
  expect((await logIn({})).status).toBe(403)
  const { status, cookies } = await logIn({ cookie: { secure: false } })
  expect([status, cookies]).toEqual([200, [expect.not.stringContaining('Secure')]])
})

it('a login by a proxy over a Unix socket needs isSecure', async () => {
  const path = join(memoryFolder('unix'), 'app.sock')
  const isSecure = ({ headers }: IncomingMessage) => headers['x-forwarded-proto'] === 'https'
  for (const options of [{ trustedProxies: ['127.0.0.1', '::1'] }, { isSecure }]) {
    const visits = nodeVisits(makeSessions().sessions, options)
    const server = createServer((request, response) => {
      visits
        .of(request, response)
        .logIn(ada)
        .then(() => response.end())
        .catch(error => answerError(response, error))
    }).listen(path)
    await once(server, 'listening')
    const headers = { Host: 'app.example.com', 'X-Forwarded-Proto': 'https' }
    const [answer] = await once(ask({ socketPath: path, method: 'POST', headers, agent: false }).end(), 'response')
    expect(answer.resume().statusCode).toBe('isSecure' in options ? 200 : 403)
    await once(server.close(), 'close')
  }
})

/** Logs in by POST, and shows who it is. */
const service = (edge: NodeVisitsOptions) =>
  serve(
    async (visit, request, response) => {
      if (request.method === 'POST') await visit.logIn(ada)
      response.end((await visit.get())?.user?.name ?? 'nobody')
    },
    { edge },
  )

it('behind Firebase Hosting, which passes on the cookie __session alone, that name keeps a user logged in, also where Origin is sent alone', async () => {
  const { send } = await service({
    cookie: { name: '__session' },
    isSecure: ({ headers }) => headers['x-forwarded-proto'] === 'https',
    trustedOrigins: ['https://shop.web.app'],
  })
  const headers = { host: 'shop-x.run.app', 'x-forwarded-proto': 'https', origin: 'https://shop.web.app' }
  const { cookies } = await send('/login', { method: 'POST', headers })
  const cookie = jar(cookies)
  expect(cookie).toMatch(/^__session=[\w-]+$/)
  expect((await send('/', { headers: { ...headers, cookie } })).body).toBe('ada')
})

describe('two services on one host', () => {
  it.each([
    ['take each other’s login away', {}, ['nobody', 'ada']],
    ['go on beside each other with names of their own', { cookie: { name: 'other_id' } }, ['ada', 'ada']],
  ] as const)('%s', async (_, edge, expected) => {
    const services = [await service({}), await service(edge)]
    // Cookies know no ports.
    const browser = new ScopedJar(services[0]!.clock)
    const go = async ({ send }: (typeof services)[number], method: string) => {
      const headers = { host: 'localhost', cookie: browser.header('localhost', '/') }
      const { body, cookies } = await send('/', { method, headers })
      browser.take(cookies, 'localhost')
      return body
    }
    for (const service of services) expect(await go(service, 'POST')).toBe('ada')
    const found = []
    for (const service of services) found.push(await go(service, 'GET'))
    expect(found).toEqual(expected)
  })
})

describe('an API that a renderer asks with the cookies of the browser', () => {
  const api = (edge: NodeVisitsOptions) =>
    serve(
      async (visit, request, response) => {
        if (request.url === '/login') await visit.logIn(ada)
        if (request.method === 'POST') await visit.checkOrigin()
        response.end((await visit.get())?.user?.name ?? 'nobody')
      },
      { edge },
    )
  const byHttps = { host: 'api.internal', 'x-forwarded-proto': 'https' }
  const named: NodeVisitsOptions = { trustedProxies: ['127.0.0.1'] }

  it.each([
    ['passed on', true, {}, 'ada'],
    ['dropped', false, {}, 'nobody'],
    ['dropped, with the lifetime absolute', false, { lifetime: 'absolute' }, 'ada'],
  ] as const)('has its user logged in for hours if Set-Cookie is %s: %s', async (_, isPassedOn, cookie, expected) => {
    const { send, clock } = await api({ ...named, cookie })
    const browser = new ScopedJar(clock)
    // The login goes from the browser to the API.
    browser.take((await send('/login', { method: 'POST', headers: byHttps })).cookies, 'example.com')
    let body = ''
    for (let minute = 0; minute < 120; minute += 10) {
      clock.now += 10 * 60_000
      const asked = await send('/', { headers: { ...byHttps, cookie: browser.header('example.com', '/') } })
      if (isPassedOn) browser.take(asked.cookies, 'example.com')
      body = asked.body
    }
    expect(body).toBe(expected)
  })
})
