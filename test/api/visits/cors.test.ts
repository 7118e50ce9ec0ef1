import { cors, nodeVisits } from 'coatcheck/node'
import { describe, expect, it } from 'vitest'
import { jar, listen, makeSessions } from '../../support/edge-service.ts'

const front = 'https://front.example.net'
const ask = { Origin: front, 'Access-Control-Request-Method': 'PUT', 'Access-Control-Request-Headers': 'content-type' }

describe('CORS with credentials', () => {
  const service = async () => {
    const made = makeSessions()
    const visits = nodeVisits(made.sessions, { trustedOrigins: [front] })
    const allow = cors({ origins: [front], exposeHeaders: ['X-Total'] })
    const listening = await listen(async (request, response) => {
      if (allow(request, response)) return
      const visit = visits.of(request, response)
      if (request.url === '/login') await visit.logIn({ user: { id: 1, name: 'ada' } })
      const name = (await visit.get())?.user?.name ?? 'null'
      response.writeHead(200, { Vary: 'Accept', 'Content-Type': 'text/plain' }).end(name)
    })
    return { ...made, ...listening }
  }

  it('lets the front end listed log in and read', async () => {
    const { send } = await service()
    const headers = { Origin: front, 'Sec-Fetch-Site': 'cross-site' }
    const login = await send('/login', { method: 'POST', headers })
    expect(login.status).toBe(200)
    const reply = await send('/', { headers: { ...headers, cookie: jar(login.cookies) } })
    expect(reply.body).toBe('ada')
    expect(reply.headers).toMatchObject({
      'access-control-allow-origin': front,
      'access-control-allow-credentials': 'true',
      'access-control-expose-headers': 'X-Total',
      vary: 'Accept, Cookie, Origin',
    })
  })

  it('answers a preflight without a session lookup', async () => {
    const { send, calls } = await service()
    const cookie = jar((await send('/login', { method: 'POST' })).cookies)
    calls.length = 0
    const reply = await send('/', { method: 'OPTIONS', headers: { ...ask, cookie } })
    expect([reply.status, reply.body, calls]).toEqual([204, '', []])
    expect(reply.headers).toMatchObject({
      'access-control-allow-origin': front,
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'PUT, PATCH, DELETE',
      'access-control-allow-headers': 'content-type',
      'access-control-max-age': '600',
      vary: 'Origin',
    })
  })

  it('says nothing to other origins, but varies by Origin on every response', async () => {
    const { send } = await service()
    for (const origin of ['https://evil.example', 'null', `${front}.evil.example`, `${front}:444`, '*', undefined]) {
      const headers: Record<string, string> = origin === undefined ? {} : { Origin: origin }
      const get = await send('/', { headers })
      expect(get.headers['access-control-allow-origin']).toBeUndefined()
      expect(get.headers['access-control-allow-credentials']).toBeUndefined()
      expect(get.headers['access-control-expose-headers']).toBeUndefined()
      expect(get.headers.vary).toContain('Origin')
      if (origin === undefined) continue
      const preflight = await send('/', { method: 'OPTIONS', headers: { ...ask, Origin: origin } })
      expect([preflight.status, preflight.headers['access-control-allow-origin']]).toEqual([403, undefined])
      expect([preflight.body, preflight.headers['content-length']]).toEqual(['', '0'])
      for (const what of ['methods', 'headers'])
        expect(preflight.headers[`access-control-allow-${what}`]).toBeUndefined()
      expect(preflight.headers['access-control-max-age']).toBeUndefined()
      expect(preflight.headers.vary).toBe('Origin')
    }
  })

  it('leaves what is no preflight to the application, whatever it asks for', async () => {
    const { send } = await service()
    const { Origin, ...asked } = ask
    expect((await send('/', { method: 'OPTIONS', headers: asked })).body).toBe('null')
    for (const method of ['GET', 'POST', 'PUT']) expect((await send('/', { method, headers: ask })).body).toBe('null')
    expect((await send('/', { method: 'OPTIONS', headers: { Origin: front } })).body).toBe('null')
    expect((await send('/', { method: 'OPTIONS' })).body).toBe('null')
  })

  it('names what the application lists, and nothing where it lists nothing', async () => {
    const answers = async (options: object) => {
      const allow = cors({ origins: ['https://other.example', front], ...options })
      const { send } = await listen((request, response) => {
        if (!allow(request, response)) response.end()
      })
      const { headers } = await send('/', { method: 'OPTIONS', headers: ask })
      const names = ['allow-methods', 'allow-headers', 'max-age'].map(name => headers[`access-control-${name}`])
      return [...names, (await send('/', { headers: { Origin: front } })).headers['access-control-expose-headers']]
    }
    const two = {
      methods: ['PUT', 'DELETE'],
      headers: ['content-type', 'x-csrf-token'],
      exposeHeaders: ['ETag', 'Link'],
    }
    expect(await answers({ ...two, maxAge: '1999ms' })).toEqual([
      'PUT, DELETE',
      'content-type, x-csrf-token',
      '1',
      'ETag, Link',
    ])
    const none = { methods: [], headers: [], exposeHeaders: [] }
    expect(await answers({ ...none, maxAge: '1h' })).toEqual([undefined, undefined, '3600', undefined])
    expect(await answers({})).toEqual(['PUT, PATCH, DELETE', 'content-type', '600', undefined])
  })

  it('says what to pass instead of what is no request', () => {
    expect(() => cors({ origins: [front] })(7 as never, 7 as never)).toThrow(/^cors: expected a request of node:http/)
  })

  it.each([
    ['origin', /origin.* it is called origins, a list of exact ones/],
    ['credentials', /credentials.* they are always allowed, to the origins listed/],
    ['allowedHeaders', /allowedHeaders.* it is called headers/],
    ['allowHeaders', /allowHeaders.* it is called headers/],
    ['allowMethods', /allowMethods.* it is called methods/],
    ['exposedHeaders', /exposedHeaders.* it is called exposeHeaders/],
    ['preflightContinue', /preflightContinue.* a preflight is always answered/],
    ['optionsSuccessStatus', /optionsSuccessStatus.* a preflight is always answered by 204/],
  ])('says what %s of other middleware is called here', (name, message) => {
    expect(() => cors({ origins: [front], [name]: true })).toThrow(message)
  })

  it('takes no wildcard, no path and no empty list', () => {
    const wrong: [unknown, RegExp][] = [
      [{ origins: ['*'] }, /origins: .* got "\*"/],
      [{ origins: ['https://*.example.net'] }, /got "https:\/\/\*\.example\.net"/],
      [{ origins: [`${front}/`] }, /origins/],
      [{ origins: ['null'] }, /origins/],
      [{ origins: [] }, /^origins: expected at least one origin$/],
      [{ origins: front }, /^origins: expected an array of origins, got "https:\/\/front\.example\.net"$/],
      [{ origins: new Set([front]) }, /^origins: expected an array of origins/],
      [{ origins: ['http://front.example.net:80'] }, /^origins: expected exact origins/],
      [{ origins: ['HTTP://front.example.net'] }, /^origins: expected exact origins/],
      [{ origins: [7] }, /^origins: expected exact origins .* got 7$/],
      [{ origins: [['app://localhost']] }, /^origins: expected exact origins/],
      [{ origins: undefined }, /origins/],
      [{}, /^origins: expected at least one origin$/],
      [{ origins: [front], methods: [7] }, /methods: .*exact names, no wildcard.* got 7/],
      [{ origins: [front], methods: [['PUT']] }, /methods: /],
      [{ origins: [front], methods: ['PUT DELETE'] }, /methods: /],
      [{ origins: [front], methods: 'PUT' }, /methods: .*names/],
      [undefined, /cors: expected an object of options/],
      [{ origins: [front], methods: ['*'] }, /methods: .* got "\*"/],
      [{ origins: [front], headers: ['*'] }, /headers: .* got "\*"/],
      [{ origins: [front], exposeHeaders: 'X-Total' }, /exposeHeaders/],
      [{ origins: [front], maxAge: 600 }, /maxAge: .* got 600/],
    ]
    for (const [options, message] of wrong) {
      expect(() => cors(options as never)).toThrow(TypeError)
      expect(() => cors(options as never)).toThrow(message)
    }
  })
})
