// req.session replaced, set to null, deleted, or kept beyond its request.
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { called, controlled, type OldHandler, type OldRequest, serve } from './service.ts'

const usual: Record<string, OldHandler> = {
  '/': (request, response) => response.end(JSON.stringify(request.session)),
  '/set': (request, response) => {
    Object.assign(request.session, { a: 1, b: { c: 2 } })
    response.end()
  },
  '/user': (request, response) => {
    Object.assign(request.session, { passport: { user: 42 } })
    response.end()
  },
}

describe('req.session replaced by an object', () => {
  it('has these keys and no others, in the same session', async () => {
    const { browser } = await serve({
      ...usual,
      '/replace': (request, response) => {
        request.session = { b: 3 }
        expect(typeof request.session.save).toBe('function')
        response.end()
      },
    })
    const visitor = browser()
    await visitor.go('/set')
    const { cookie } = visitor
    await visitor.go('/replace')
    expect((await visitor.go('/')).body).toBe('{"b":3}')
    expect(visitor.cookie).toBe(cookie)
  })

  it('may be the one that a regenerate took away: its data goes into a session with a new ID', async () => {
    const { browser } = await serve({
      ...usual,
      '/back': async (request, response) => {
        const before = request.session
        await called(back => request.session.regenerate(back))
        request.session = before
        response.end()
      },
    })
    const visitor = browser()
    await visitor.go('/set')
    const { cookie } = visitor
    expect((await visitor.go('/back')).status).toBe(200)
    expect(visitor.cookie).not.toBe(cookie)
    expect((await visitor.go('/')).body).toBe('{"a":1,"b":{"c":2}}')
  })

  it('without the user is a logout: the rest goes into a session with a new ID', async () => {
    const { browser, sessions } = await serve({
      ...usual,
      '/replace': (request, response) => {
        request.session = { note: 'bye' }
        response.end()
      },
    })
    const ada = browser()
    await ada.go('/user')
    const { cookie } = ada
    await ada.go('/replace')
    expect(ada.cookie).not.toBe(cookie)
    expect((await ada.go('/')).body).toBe('{"note":"bye"}')
    expect(await sessions.list(42n)).toEqual([])
  })

  it('is told from what cannot be data', async () => {
    for (const value of ['text', 5, true, [1], new Map(), () => {}]) {
      const { browser, errors } = await serve({
        '/': request => {
          request.session = value
        },
      })
      expect((await browser().go('/')).status).toBe(500)
      expect(String(errors[0])).toMatch(
        /^TypeError: req\.session: expected an object of keys, or null to end the session/,
      )
    }
  })

  it('leaves the object that was there before to its holder, and tells where that one is still written to', async () => {
    const { browser } = await serve({
      ...usual,
      '/replace': async (request, response) => {
        const before = request.session
        request.session = { ...before, d: 4 }
        expect(() => (before.a = 9)).toThrow(
          /was replaced \(by regenerate, destroy or an assignment\): use req\.session/,
        )
        expect(() => delete before.a).toThrow(/was replaced/)
        await expect(called(back => before.save(back))).rejects.toThrow(/save: this session object was replaced/)
        await expect(called(back => before.regenerate(back))).rejects.toThrow(/regenerate: .* was replaced/)
        await expect(called(back => before.reload(back))).rejects.toThrow(/reload: .* was replaced/)
        await expect(called(back => before.destroy(back))).rejects.toThrow(/destroy: .* was replaced/)
        response.end()
      },
    })
    const visitor = browser()
    await visitor.go('/set')
    expect((await visitor.go('/replace')).status).toBe(200)
    expect((await visitor.go('/')).body).toBe('{"a":1,"b":{"c":2},"d":4}')
  })
})

describe('req.session set to null', () => {
  const unset: [string, (request: OldRequest) => void][] = [
    ['null', request => (request.session = null)],
    ['undefined', request => (request.session = undefined)],
    ['deleted', request => delete request.session],
  ]
  it.each(unset)('ends the session, and the response waits for that: %s', async (_, change) => {
    const { browser, sessions } = await serve({
      ...usual,
      '/null': (request, response) => {
        change(request)
        expect(request.session).toBe(undefined)
        response.end()
      },
    })
    const ada = browser()
    await ada.go('/user')
    const cookie = ada.cookies.get('session_id')!
    await ada.go('/null')
    expect(ada.cookies.size).toBe(0)
    expect(await sessions.list(42n)).toEqual([])
    ada.cookies.set('session_id', cookie)
    expect((await ada.go('/')).body).toBe('{}')
  })

  it('and then to an object is the same as to the object alone', async () => {
    const { browser } = await serve({
      ...usual,
      '/both': (request, response) => {
        request.session = null
        request.session = { d: 1 }
        response.end()
      },
      '/deleted': (request, response) => {
        delete request.session
        request.session = { d: 2 }
        response.end()
      },
    })
    const visitor = browser()
    await visitor.go('/set')
    const { cookie } = visitor
    await visitor.go('/both')
    expect((await visitor.go('/')).body).toBe('{"d":1}')
    await visitor.go('/deleted')
    expect((await visitor.go('/')).body).toBe('{"d":2}')
    expect(visitor.cookie).toBe(cookie)
  })

  it('is 503 where the store does not answer: the cookie stays', async () => {
    const { store, control } = controlled()
    const { browser } = await serve(
      {
        ...usual,
        '/null': (request, response) => {
          request.session = null
          response.end('bye')
        },
      },
      { manager: { store } },
    )
    const visitor = browser()
    await visitor.go('/set')
    control.failing.add('delete')
    const reply = await visitor.go('/null')
    expect([reply.status, reply.cookies]).toEqual([503, []])
    control.failing.clear()
    expect((await visitor.go('/')).body).toBe('{"a":1,"b":{"c":2}}')
  })
})

describe('req.session kept beyond its request', () => {
  async function keep() {
    const kept: OldRequest[] = []
    const service = await serve({
      ...usual,
      '/keep': (request, response) => {
        kept.push(request)
        response.end()
      },
    })
    const visitor = service.browser()
    await visitor.go('/set')
    await visitor.go('/keep')
    return { ...service, visitor, request: kept[0]! }
  }

  it('can be read, and refuses to be changed: nothing would write that', async () => {
    const { request, visitor } = await keep()
    expect(request.session.a).toBe(1)
    expect(() => (request.session.a = 2)).toThrow(
      'req.session was changed after its response: nothing would write that; call req.session.reload(callback) first, then change it and call save(callback)',
    )
    expect(() => delete request.session.a).toThrow(/after its response/)
    expect(delete request.session.nothing).toBe(true)
    expect(() => (request.session = {})).toThrow(/after its response/)
    expect(() => Object.assign(request.session, { d: 1 })).toThrow(/after its response/)
    expect((await visitor.go('/')).body).toBe('{"a":1,"b":{"c":2}}')
  })

  it('can be read anew, changed and saved, as sockets do', async () => {
    const { request, visitor } = await keep()
    await visitor.go('/set')
    await called(back => request.session.reload(back))
    request.session.count = 1
    await called(back => request.session.save(back))
    expect((await visitor.go('/')).body).toBe('{"a":1,"b":{"c":2},"count":1}')
  })

  it('is not kept alive by being read anew', async () => {
    const { request, calls, clock } = await keep()
    clock.now += 1_200_000
    calls.length = 0
    await called(back => request.session.reload(back))
    expect(calls).toEqual(['read'])
  })

  it('can be replaced and saved once it was read anew', async () => {
    const { request, visitor } = await keep()
    await called(back => request.session.reload(back))
    request.session = { d: 1 }
    await called(back => request.session.save(back))
    expect((await visitor.go('/')).body).toBe('{"d":1}')
  })

  it('can be regenerated, which ends it; no response could bring the ID of another one', async () => {
    const { request, visitor } = await keep()
    await called(back => request.session.regenerate(back))
    request.session.count = 1
    await expect(called(back => request.session.save(back))).rejects.toMatchObject({ code: 'ERR_SESSION_HEADERS_SENT' })
    expect((await visitor.go('/')).body).toBe('{}')
  })

  it('does not come back to life by that after a logout', async () => {
    const { request, sessions, visitor } = await keep()
    await called(back => request.session.reload(back))
    await sessions.destroy(visitor.cookies.get('session_id') as never)
    request.session.count = 1
    await called(back => request.session.save(back))
    expect((await visitor.go('/')).body).toBe('{}')
  })

  it('tells in a warning what failed without a callback', async () => {
    const { request } = await keep()
    await called(back => request.session.reload(back))
    request.session.count = 1n
    const warned = once(process, 'warning')
    request.session.save()
    expect(String((await warned)[0])).toMatch(
      /^CoatcheckWarning: req\.session was not saved after its response: req\.session\.count/,
    )
  })

  it('can be logged out', async () => {
    const { request, visitor } = await keep()
    await called(back => request.session.destroy(back))
    expect((await visitor.go('/')).body).toBe('{}')
  })
})
