// What went wrong in the field in the life of a request, asked over HTTP.
import { randomBytes } from 'node:crypto'
import { type SessionId, sessionId } from 'coatcheck'
import { describe, expect, it, vi } from 'vitest'
import { HANDLERS, type OldHandler, serve as serveConnect } from '../connect/service.ts'
import { ada, type Handler, jar, type Reply, serve, threeEndpoints } from '../support/edge-service.ts'

/** Resolves for all when `count` have come. */
function meeting(count: number): () => Promise<void> {
  let open = () => {}
  const all = new Promise<void>(resolve => {
    open = resolve
  })
  let here = 0
  return () => {
    here += 1
    if (here === count) open()
    return all
  }
}

const LOG_IN = { method: 'POST' }
const permutations = <T>(all: readonly T[]): T[][] =>
  all.length === 0
    ? [[]]
    : all.flatMap((first, i) => permutations(all.filter((_, j) => j !== i)).map(rest => [first, ...rest]))

/** What an application around express-session has. */
const OLD: Record<string, OldHandler> = {
  '/': (request, response) => {
    const { cookie, ...data } = request.session
    response.end(JSON.stringify(data))
  },
  '/cart': (request, response) => {
    request.session.cart = 1
    response.end()
  },
  ...HANDLERS,
}

describe('regressions of the field', () => {
  // Passport before 0.6: the ID stayed the same over login and logout (fixation).
  it('CVE-2022-25896: a login and a logout give a new ID: the ID from before is worth nothing', async () => {
    const { send, sessions } = await serve(async (visit, request, response) => {
      if (request.url === '/cart') await visit.update({ cart: ['coat'] })
      if (request.url === '/login') await visit.logIn(ada)
      if (request.url === '/logout') await visit.logOut()
      response.end((await visit.get())?.user?.name ?? 'null')
    })
    const chuck = jar((await send('/cart', LOG_IN)).cookies)
    const victim = jar((await send('/login', { method: 'POST', headers: { cookie: chuck } })).cookies)
    expect(victim).not.toBe(chuck)
    expect((await send('/', { headers: { cookie: victim } })).body).toBe('ada')
    expect((await send('/', { headers: { cookie: chuck } })).body).toBe('null')
    await send('/logout', { method: 'POST', headers: { cookie: victim } })
    for (const cookie of [victim, chuck]) expect((await send('/', { headers: { cookie } })).body).toBe('null')
    expect(await sessions.list(42n)).toEqual([])
  })

  // Fiber: a session began under the ID that the client had sent.
  it('CVE-2024-38513: an ID that a client chose never becomes the ID of a session', async () => {
    const { send, sessions, calls } = await serve(async (visit, request, response) => {
      if (request.url === '/cart') await visit.update({ cart: ['coat'] })
      if (request.url === '/login') await visit.logIn(ada)
      response.end(JSON.stringify(await visit.get()))
    })
    for (const chosen of [randomBytes(33).toString('base64url').slice(0, 43), 'A'.repeat(43), 'admin', '']) {
      const headers = { cookie: `session_id=${chosen}` }
      expect((await send('/', { headers })).body).toBe('null')
      for (const path of ['/cart', '/login']) {
        const reply = await send(path, { method: 'POST', headers })
        const id = jar(reply.cookies).replace('session_id=', '')
        expect(sessionId(id)).toBe(id)
        expect(id).not.toBe(chosen)
        expect((await send('/', { headers })).body).toBe('null')
        expect(await sessions.get(chosen as SessionId)).toBe(null)
      }
    }
    expect(calls.filter(call => call === 'create').length).toBe(8)
  })

  // Flask: a response that sent the cookie again had no `Vary: Cookie`.
  it('CVE-2023-30861: a response that depends on the cookie, or sends it again, says so to caches; no other one sends it', async () => {
    const { send, clock } = await serve(async (visit, request, response) => {
      if (request.url === '/login') await visit.logIn(ada)
      if (request.url === '/page') await visit.get()
      response.setHeader('Cache-Control', 'public, max-age=600')
      response.end()
    })
    const cookie = jar((await send('/login', LOG_IN)).cookies)
    clock.now += 10 * 60_000
    const untouched = await send('/static', { headers: { cookie } })
    expect([untouched.cookies, untouched.headers['cache-control']]).toEqual([[], 'public, max-age=600'])
    const resent = await send('/page', { headers: { cookie } })
    expect(resent.cookies.length).toBe(1)
    for (const reply of [resent, await send('/page', { headers: { cookie } }), await send('/page')])
      expect(reply.headers.vary).toMatch(/\bcookie\b/i)
    expect(resent.headers['cache-control']).toContain('no-store')
  })

  // Django: a logout left the empty text as a valid ID, the same for all.
  it('CVE-2015-3982: an empty cookie is no session, and browsers that were logged out share none', async () => {
    const { send, calls } = await serve(async (visit, request, response) => {
      if (request.url === '/login') await visit.logIn(ada)
      if (request.url === '/switch') await visit.logIn({ user: { id: 43n, name: 'max' } })
      if (request.url === '/logout') await visit.logOut()
      response.end((await visit.get())?.user?.name ?? 'null')
    })
    const first = jar((await send('/login', LOG_IN)).cookies)
    const switched = jar((await send('/switch', { method: 'POST', headers: { cookie: first } })).cookies)
    const [cleared] = (await send('/logout', { method: 'POST', headers: { cookie: switched } })).cookies
    expect(cleared).toMatch(/^session_id=; Max-Age=0; /)
    calls.length = 0
    for (const cookie of ['session_id=', 'session_id=""', 'session_id= ', 'session_id', first, switched]) {
      expect((await send('/', { headers: { cookie } })).body, cookie).toBe('null')
      const mine = jar((await send('/login', { method: 'POST', headers: { cookie } })).cookies)
      expect((await send('/', { headers: { cookie } })).body, cookie).toBe('null')
      expect((await send('/', { headers: { cookie: mine } })).body).toBe('ada')
    }
    // Malformed values are not asked for: what was read had the shape of an ID.
    expect(calls.filter(call => call === 'create').length).toBe(6)
  })

  // Jetty: a listener that threw at the end of a session kept its ID valid.
  it('CVE-2021-34428: a listener that throws when sessions end keeps none of them alive, nor its cookie', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const thrown: string[] = []
    const onEvent = ({ type }: { type: string }) => {
      thrown.push(type)
      throw new Error('the listener fails')
    }
    const { send, sessions } = await serve(threeEndpoints, { manager: { onEvent, rememberFor: '30d' } })
    const cookies: string[] = []
    for (const path of ['/login', '/remember', '/login']) cookies.push(jar((await send(path, LOG_IN)).cookies))
    const left = await send('/logout', { method: 'POST', headers: { cookie: cookies[1]! } })
    expect([left.status, left.body, left.cookies.length]).toEqual([200, 'null', 2])
    expect((await sessions.list(42n)).length).toBe(2)
    const [other] = await sessions.list(42n)
    expect(await sessions.revoke(42n, other!.key)).toBe(true)
    expect(await sessions.invalidateUser(42n)).toBe(1)
    for (const cookie of cookies) expect((await send('/', { headers: { cookie } })).body).toBe('null')
    expect(thrown).toContain('destroyed')
    expect(warned).toHaveBeenCalled()
    warned.mockRestore()
  })

  // Each request saves its whole copy: the later one undoes the earlier.
  it('expressjs/session 361: two requests at once that write different members both win', async () => {
    const meet = meeting(2)
    const write =
      (name: string): OldHandler =>
      async (request, response) => {
        await meet()
        request.session[name] = 1
        response.end()
      }
    const { browser } = await serveConnect({ ...OLD, '/a': write('a'), '/b': write('b') })
    const visitor = browser()
    await visitor.go('/cart')
    await Promise.all([visitor.go('/a'), visitor.go('/b')])
    expect(JSON.parse((await visitor.go('/')).body)).toEqual({ cart: 1, a: 1, b: 1 })
  })

  // A long request ends after the logout, saves, and the user is logged in again.
  it('expressjs/session 632: a long request that ends after the logout, and saves, leaves the browser logged out', async () => {
    let arrive = () => {}
    let leave = () => {}
    const arrived = new Promise<void>(resolve => {
      arrive = resolve
    })
    const gate = new Promise<void>(resolve => {
      leave = resolve
    })
    const slow: OldHandler = async (request, response) => {
      request.session.seen = 1
      arrive()
      await gate
      request.session.late = 1
      response.end('done')
    }
    const { browser, sessions } = await serveConnect({ ...OLD, '/slow': slow })
    const user = browser()
    await user.go('/login?user=42')
    const thief = browser()
    for (const [name, value] of user.cookies) thief.cookies.set(name, value)
    const late = user.go('/slow')
    await arrived
    await user.go('/logout')
    leave()
    await late
    expect(await sessions.list(42n)).toEqual([])
    expect((await thief.go('/')).body).toBe('{}')
    expect(await sessions.count()).toBe(0)
  })

  // A `Secure` cookie is not set on `http://localhost`, so that people switch it off.
  it('expressjs/session 837: the Secure cookie works on this machine without TLS, and on no other one', async () => {
    const { send } = await serve(threeEndpoints)
    const reply = await send('/login', LOG_IN)
    expect(reply.cookies).toEqual([expect.stringMatching(/; Secure;/)])
    const cookie = jar(reply.cookies)
    expect((await send('/', { headers: { cookie } })).body).toBe('ada')
    for (const foreign of [
      { host: 'app.example.com' },
      { 'x-forwarded-for': '203.0.113.9' },
      { via: '1.1 proxy' },
    ] as Record<string, string>[]) {
      expect((await send('/', { headers: { cookie, ...foreign } })).body).toBe('null')
      const refused = await send('/login', { method: 'POST', headers: foreign })
      expect([refused.status, refused.cookies]).toEqual([403, []])
    }
  })

  // After parallel new IDs the browser keeps one that is worth nothing.
  it('expressjs/session 923: parallel requests that each renew the ID leave the browser logged in, in whichever order they answer', async () => {
    for (const verb of ['regenerate', 'rotate'] as const) {
      let meet = () => Promise.resolve()
      const handler: Handler = async (visit, request, response) => {
        if (request.url === '/login') await visit.logIn(ada)
        if (request.url === '/renew') {
          await visit.get()
          await meet()
          await (verb === 'regenerate' ? visit.regenerate() : visit.regenerate({ grace: '1m' }))
        }
        response.end((await visit.get())?.user?.name ?? 'null')
      }
      const { send, sessions } = await serve(handler)
      const cookie = jar((await send('/login', LOG_IN)).cookies)
      meet = meeting(3)
      const replies = await Promise.all([0, 1, 2].map(() => send('/renew', { headers: { cookie } })))
      // With a grace each of them goes on; without one the old ID is dead at once, and one of them has the new one.
      const goOn = replies.filter(({ body }) => body === 'ada').length
      expect(goOn).toBe(verb === 'rotate' ? 3 : 1)
      const after = (order: readonly Reply[]) => order.reduce((held, { cookies }) => jar(cookies) || held, cookie)
      for (const order of permutations(replies))
        expect((await send('/', { headers: { cookie: after(order) } })).body).toBe('ada')
      expect((await sessions.list(42n)).length).toBe(1)
    }
  })
})
