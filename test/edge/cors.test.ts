import { cors, httpEdge } from 'coatcheck/http'
import { describe, expect, it } from 'vitest'
import { jar, listen, makeSessions } from '../support/edge-service.ts'

const front = 'https://front.example.net'
const ask = { Origin: front, 'Access-Control-Request-Method': 'PUT', 'Access-Control-Request-Headers': 'content-type' }

describe('CORS with credentials', () => {
  const service = async () => {
    const made = makeSessions()
    const edge = httpEdge(made.sessions, { origins: [front] })
    const allow = cors({ origins: [front], exposeHeaders: ['X-Total'] })
    const listening = await listen(async (request, response) => {
      if (allow(request, response)) return
      const visit = edge(request, response)
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
      expect(get.headers.vary).toContain('Origin')
      if (origin === undefined) continue
      const preflight = await send('/', { method: 'OPTIONS', headers: { ...ask, Origin: origin } })
      expect([preflight.status, preflight.headers['access-control-allow-origin']]).toEqual([403, undefined])
      expect(preflight.headers.vary).toBe('Origin')
    }
  })

  it('leaves an OPTIONS request that is no preflight to the application', async () => {
    const { send } = await service()
    expect((await send('/', { method: 'OPTIONS', headers: { Origin: front } })).body).toBe('null')
    expect((await send('/', { method: 'OPTIONS' })).body).toBe('null')
  })

  it('takes no wildcard, no path and no empty list', () => {
    const wrong: [unknown, RegExp][] = [
      [{ origins: ['*'] }, /origins: .* got "\*"/],
      [{ origins: ['https://*.example.net'] }, /got "https:\/\/\*\.example\.net"/],
      [{ origins: [`${front}/`] }, /origins/],
      [{ origins: ['null'] }, /origins/],
      [{ origins: [] }, /origins/],
      [{}, /origins/],
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
