// req.session replaced, set to null, or kept beyond its request.
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

describe('req.session', () => {
  it('becomes nothing but null: what it has are its keys', async () => {
    for (const value of ['text', 5, true, [1], new Map(), () => {}, { a: 1 }]) {
      const { browser, errors } = await serve({
        '/': request => {
          request.session = value
        },
      })
      expect((await browser().go('/')).status).toBe(500)
      expect(String(errors[0])).toMatch(
        /^TypeError: req\.session: cannot become .*; assign to its keys, or null to end the session/,
      )
    }
  })

  it('leaves the object that was there before to its holder, and tells if that one is asked', async () => {
    const { browser } = await serve({
      ...usual,
      '/replace': async (request, response) => {
        const before = request.session
        await called(back => before.regenerate(back))
        before.a = 9
        for (const verb of ['save', 'regenerate', 'reload', 'destroy'])
          await expect(called(back => before[verb](back))).rejects.toThrow(
            `${verb}: this session object was replaced by regenerate or destroy: use req.session`,
          )
        request.session.d = 4
        response.end()
      },
    })
    const visitor = browser()
    await visitor.go('/set')
    expect((await visitor.go('/replace')).status).toBe(200)
    expect((await visitor.go('/')).body).toBe('{"d":4}')
  })
})

describe('req.session set to null', () => {
  const unset: [string, (request: OldRequest) => void][] = [
    ['null', request => (request.session = null)],
    ['undefined', request => (request.session = undefined)],
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

  it('can be read, and changed by save alone', async () => {
    const { request, visitor } = await keep()
    expect(request.session.a).toBe(1)
    request.session.a = 2
    expect((await visitor.go('/')).body).toBe('{"a":1,"b":{"c":2}}')
    await called(back => request.session.save(back))
    expect((await visitor.go('/')).body).toBe('{"a":2,"b":{"c":2}}')
    expect(() => (request.session = null)).toThrow(
      'req.session was set to null after its response: call req.session.destroy(callback)',
    )
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
