// Sessions and cookies of the bridge, from outside: what express-session's own tests ask.

import { expressSession } from 'coatcheck/express-session'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { called, controlled, listen, makeManager, type OldHandler, type OldRequest, serve } from './service.ts'

const usual: Record<string, OldHandler> = {
  '/': (request, response) => response.end(JSON.stringify(request.session)),
  '/set': (request, response) => {
    const { searchParams } = new URL(request.url!, 'http://localhost')
    for (const [name, value] of searchParams) request.session[name] = value
    response.end('set')
  },
}

describe('sessions', () => {
  it('gives each browser a session of its own', async () => {
    const { browser, sessions } = await serve(usual)
    const [one, two] = [browser(), browser()]
    await one.go('/set?n=1')
    await two.go('/set?n=2')
    expect([(await one.go('/')).body, (await two.go('/')).body]).toEqual(['{"n":"1"}', '{"n":"2"}'])
    expect(one.cookie).not.toBe(two.cookie)
    await sessions.close()
  })

  it('reads a session whatever the address of the request is', async () => {
    const { sessions } = makeManager()
    const session = expressSession(sessions)
    const { browser } = await listen((request, response) => {
      request.url = ''
      session(request, response, () => {
        const { session: shown } = request as OldRequest
        shown.n = (shown.n ?? 0) + 1
        response.end(`${shown.n}`)
      })
    })
    const visitor = browser()
    await visitor.go('/a')
    expect((await visitor.go('/b')).body).toBe('2')
  })

  it('shows no data under the names of its members, and keeps it', async () => {
    const { browser, sessions } = await serve(usual)
    const names = ['id', 'req', 'regenerate', 'save', 'destroy', 'reload', 'touch', 'resetMaxAge']
    const data = { ...Object.fromEntries(names.map(name => [name, 1])), cookie: { path: '/' }, a: 1 }
    const session = await sessions.create({ data })
    const visitor = browser()
    visitor.cookies.set('session_id', session.secret)
    expect((await visitor.go('/')).body).toBe('{"a":1}')
    await visitor.go('/set?b=2')
    expect((await sessions.get(session))!.data).toEqual({ ...data, b: '2' })
  })

  it('finds nothing after it expired, and gets another ID with the next value', async () => {
    const { browser, clock } = await serve(usual)
    const visitor = browser()
    await visitor.go('/set?a=1')
    const { cookie } = visitor
    clock.now += 31 * 60_000
    expect((await visitor.go('/')).body).toBe('{}')
    await visitor.go('/set?b=2')
    expect(visitor.cookie).not.toBe(cookie)
  })

  it('keeps a method that middleware put in place of ours', async () => {
    const { browser } = await serve({
      ...usual,
      '/patched': async (request, response) => {
        const { save } = request.session
        let saves = 0
        request.session.save = function (this: unknown, ...values: unknown[]) {
          saves += 1
          return save.apply(this, values)
        }
        request.session.a = 1
        await called(back => request.session.save(back))
        await called(back => request.session.reload(back))
        response.end(`${saves} ${typeof request.session.save} ${request.session.a}`)
      },
    })
    const visitor = browser()
    expect((await visitor.go('/patched')).body).toBe('1 function 1')
    expect((await visitor.go('/')).body).toBe('{"a":1}')
  })

  it('goes on where a touch fails', async () => {
    const { store, control } = controlled()
    const { browser, clock, events } = await serve(usual, { manager: { store } })
    const visitor = browser()
    await visitor.go('/set?a=1')
    clock.now += 10 * 60_000
    control.failing.add('touch')
    expect((await visitor.go('/')).body).toBe('{"a":"1"}')
    expect(events).toContain('store-error')
  })

  it('leaves a visitor without a session where it is set to null', async () => {
    const { browser, calls } = await serve({
      '/': (request, response) => {
        request.session = null
        response.end()
      },
    })
    await browser().go('/')
    expect(calls).toEqual([])
  })

  it('works over a store that answers at once, as the memory store does', async () => {
    const { browser } = await serve(usual, { manager: { store: new MemoryStore() } })
    const visitor = browser()
    await visitor.go('/set?a=1')
    expect((await visitor.go('/')).body).toBe('{"a":"1"}')
  })
})

describe('the cookie', () => {
  it('has the name and the attributes that the edge is given', async () => {
    const cookie = { name: 'sid', path: '/a', sameSite: 'none', partitioned: true, domain: 'example.com' } as const
    const { browser } = await serve(
      {
        ...usual,
        '/cookie': (request, response) => response.end(JSON.stringify(request.session.cookie)),
      },
      { bridge: { cookie } },
    )
    const [line] = (await browser().go('/set?a=1')).cookies
    expect(line).toMatch(
      /^sid=[\w-]{43}; Max-Age=1800; Domain=example\.com; Path=\/a; HttpOnly; Secure; Partitioned; SameSite=None$/,
    )
    const { name: _, ...attributes } = cookie
    expect(JSON.parse((await browser().go('/cookie')).body)).toMatchObject(attributes)
  })

  it('comes once where it does not slide', async () => {
    for (const lifetime of ['browser', 'absolute'] as const) {
      const { browser, clock } = await serve(usual, { bridge: { cookie: { lifetime } } })
      const visitor = browser()
      expect((await visitor.go('/set?a=1')).cookies.length).toBe(1)
      for (const path of ['/', '/set?a=2', '/']) {
        clock.now += 10 * 60_000
        expect((await visitor.go(path)).cookies).toEqual([])
      }
    }
  })

  it('is 403 for a login that came without TLS, and no cookie', async () => {
    const { port } = await serve(usual)
    const { sender } = await import('../../support/edge-service.ts')
    const reply = await sender(port)('/set?a=1', { headers: { host: 'app.example', 'x-forwarded-proto': 'http' } })
    expect([reply.status, reply.body, reply.cookies]).toEqual([403, 'ERR_SESSION_INSECURE', []])
  })

  it('is left alone by a request of another site, which gets 403', async () => {
    const { port } = await serve(usual)
    const { sender } = await import('../../support/edge-service.ts')
    const reply = await sender(port)('/set?a=1', { method: 'POST', headers: { 'sec-fetch-site': 'cross-site' } })
    expect([reply.status, reply.body, reply.cookies]).toEqual([403, 'ERR_SESSION_CROSS_ORIGIN', []])
  })
})
