// req.session as express-session offers it: what middleware that was written for that one counts on.
import { createRequire } from 'node:module'
import { setImmediate } from 'node:timers/promises'
import { inspect } from 'node:util'
import type { SessionError } from 'coatcheck'
import { expressSession } from 'coatcheck/express-session'
import { describe, expect, it } from 'vitest'
import { called, controlled, makeManager, type OldHandler, type OldRequest, serve } from './service.ts'

/** Handlers that most tests need. */
const usual: Record<string, OldHandler> = {
  '/': (request, response) => response.end(JSON.stringify(request.session)),
  '/set': (request, response) => {
    const { searchParams } = new URL(request.url!, 'http://localhost')
    for (const [name, value] of searchParams) request.session[name] = value
    response.end('set')
  },
  '/destroy': (request, response, next) =>
    request.session.destroy((error: unknown) => (error ? next(error) : response.end())),
}

describe('a visitor', () => {
  it('gets no session, no cookie and no store call for looking', async () => {
    const { browser, calls } = await serve(usual)
    const visitor = browser()
    const reply = await visitor.go('/')
    expect([reply.body, reply.cookies, calls]).toEqual(['{}', [], []])
  })

  it('gets a session with the first value, by one write, and finds the value at the next request', async () => {
    const { browser, calls } = await serve(usual)
    const visitor = browser()
    const { cookies } = await visitor.go('/set?cart=coat')
    expect(cookies).toEqual([
      expect.stringMatching(/^session_id=[\w-]{43}; Max-Age=1800; Path=\/; HttpOnly; Secure; SameSite=Lax$/),
    ])
    expect(calls).toEqual(['create'])
    expect((await visitor.go('/')).body).toBe('{"cart":"coat"}')
  })

  it('gets no session for containers in which nothing is', async () => {
    const { browser, calls } = await serve({
      '/': (request, response) => {
        request.session.flash = {}
        request.session.messages = [[], {}]
        response.end()
      },
      '/saved': async (request, response) => {
        request.session.flash = {}
        await called(back => request.session.save(back))
        response.end()
      },
      '/after': async (request, response) => {
        await called(back => request.session.regenerate(back))
        request.session.flash = {}
        response.end()
      },
    })
    for (const path of ['/', '/saved']) expect((await browser().go(path)).cookies).toEqual([])
    expect((await browser().go('/after')).status).toBe(200)
    expect(calls).toEqual([])
  })

  it('gets one for null, which is a value', async () => {
    const { browser } = await serve({
      ...usual,
      '/null': (request, response) => {
        request.session.choice = null
        response.end()
      },
    })
    const visitor = browser()
    expect((await visitor.go('/null')).cookies).toHaveLength(1)
    expect((await visitor.go('/')).body).toBe('{"choice":null}')
  })

  it('with an ID that it made up gets another one', async () => {
    const { browser } = await serve(usual)
    const visitor = browser()
    const made = 'A'.repeat(43)
    visitor.cookies.set('session_id', made)
    expect((await visitor.go('/')).body).toBe('{}')
    await visitor.go('/set?n=1')
    expect(visitor.cookies.get('session_id')).not.toBe(made)
    const other = browser()
    other.cookies.set('session_id', made)
    expect((await other.go('/')).body).toBe('{}')
  })
})

describe('req.session', () => {
  it('has the data for its own keys, and nothing else', async () => {
    const { browser } = await serve({
      ...usual,
      '/look': (request, response) => {
        const { session } = request
        const found = { ...session }
        const names: string[] = []
        for (const name in session) names.push(name)
        response.end(JSON.stringify({ found, names, keys: Object.keys(session), shown: inspect(session) }))
      },
    })
    const visitor = browser()
    await visitor.go('/set?a=1&b=2')
    expect(JSON.parse((await visitor.go('/look')).body)).toEqual({
      found: { a: '1', b: '2' },
      names: ['a', 'b'],
      keys: ['a', 'b'],
      shown: expect.stringContaining("a: '1'"),
    })
  })

  it('never shows the secret: not by its ID, not by inspect, not by JSON of the request', async () => {
    const { browser } = await serve({
      ...usual,
      '/look': (request, response) =>
        response.end(`${request.sessionID} ${request.session.id} ${inspect(request.session, { depth: 9 })}`),
    })
    const visitor = browser()
    await visitor.go('/set?a=1')
    const { body } = await visitor.go('/look')
    expect(body).not.toContain(visitor.cookies.get('session_id'))
    expect(body.split(' ')[0]).toMatch(/^[\w-]{46}$/)
    expect(body.split(' ')[0]).toBe(body.split(' ')[1])
  })

  it('has no ID until there is a session, and then its key', async () => {
    const seen: unknown[] = []
    const { browser } = await serve({
      '/': async (request, response) => {
        seen.push(request.sessionID, request.session.id)
        request.session.a = 1
        await called(back => request.session.save(back))
        seen.push(request.sessionID)
        response.end(request.session.id)
      },
    })
    const { body } = await browser().go('/')
    expect(seen).toEqual([undefined, undefined, body])
  })

  it('refuses an ID from outside', async () => {
    const { browser, errors } = await serve({
      '/': request => {
        request.sessionID = 'chosen'
      },
    })
    expect((await browser().go('/')).status).toBe(500)
    expect(String(errors[0])).toBe(
      'TypeError: req.sessionID: cannot become "chosen"; an ID is never taken from outside',
    )
  })

  it('notices a change deep inside of a value', async () => {
    const { browser, calls } = await serve({
      ...usual,
      '/begin': (request, response) => {
        request.session.cart = { items: [{ name: 'coat', count: 1 }] }
        response.end()
      },
      '/more': (request, response) => {
        request.session.cart.items[0].count += 1
        response.end()
      },
    })
    const visitor = browser()
    await visitor.go('/begin')
    await visitor.go('/more')
    expect((await visitor.go('/')).body).toBe('{"cart":{"items":[{"name":"coat","count":2}]}}')
    expect(calls).toEqual(['create', 'read', 'update', 'read'])
  })

  it('is not written where nothing changed, nor where a value was set to what it was', async () => {
    const { browser, calls } = await serve(usual)
    const visitor = browser()
    await visitor.go('/set?a=1')
    await visitor.go('/set?a=1')
    await visitor.go('/')
    expect(calls).toEqual(['create', 'read', 'read'])
  })

  it('loses a key that was deleted, or set to undefined', async () => {
    const { browser } = await serve({
      ...usual,
      '/delete': (request, response) => {
        delete request.session.a
        request.session.b = undefined
        response.end()
      },
    })
    const visitor = browser()
    await visitor.go('/set?a=1&b=2&c=3')
    await visitor.go('/delete')
    expect((await visitor.go('/')).body).toBe('{"c":"3"}')
  })

  it('loses a key that the same request had saved first', async () => {
    const { browser } = await serve({
      ...usual,
      '/': async (request, response) => {
        const { n } = request.session
        if (n === undefined) {
          request.session.n = 1
          await called(back => request.session.save(back))
          delete request.session.n
        }
        response.end(String(n))
      },
    })
    const visitor = browser()
    for (const _ of [1, 2]) expect((await visitor.go('/')).body).toBe('undefined')
    expect(visitor.cookies.size).toBe(1)
  })

  it('stores what JSON makes of a value: a Date as text, an object by its toJSON, and no functions', async () => {
    const { browser } = await serve({
      ...usual,
      '/odd': (request, response) => {
        request.session.at = new Date(0)
        request.session.user = { id: 1, hash: 'x', toJSON: () => ({ id: 1 }) }
        request.session.run = () => {}
        request.session.none = Number.NaN
        response.end()
      },
    })
    const visitor = browser()
    await visitor.go('/odd')
    expect(JSON.parse((await visitor.go('/')).body)).toEqual({
      at: '1970-01-01T00:00:00.000Z',
      user: { id: 1 },
      none: null,
    })
  })

  it.each([
    [
      'a bigint',
      (request: OldRequest) => (request.session.n = 1n),
      /req\.session\.n: Do not know how to serialize a BigInt/,
    ],
    [
      'a cycle',
      (request: OldRequest) => (request.session.me = request.session),
      /req\.session\.me: Converting circular structure/,
    ],
    [
      'the name of a method',
      (request: OldRequest) => (request.session.save = 5),
      /req\.session\.save: this name is a member/,
    ],
    ['a constructor', (request: OldRequest) => (request.session.constructor = { a: 1 }), /constructor/],
    [
      'more than fits',
      (request: OldRequest) => (request.session.big = 'x'.repeat(20_000)),
      /at most 16384 are allowed/,
    ],
  ])('says at the end which value cannot be stored: %s', async (_, change, message) => {
    const { browser, errors } = await serve({
      ...usual,
      '/bad': (request, response) => {
        change(request)
        response.end('fine')
      },
    })
    const visitor = browser()
    const reply = await visitor.go('/bad')
    expect([reply.status, reply.body, reply.cookies]).toEqual([500, 'ERR_SESSION_DATA', []])
    expect(String(errors[0])).toMatch(message)
  })

  it('does not take a prototype from a body that is merged into it', async () => {
    const { browser } = await serve({
      ...usual,
      '/merge': (request, response) => {
        const body = JSON.parse('{"a":1,"__proto__":{"isAdmin":true}}')
        for (const name in body) {
          try {
            request.session[name] = body[name]
          } catch {}
        }
        response.end(`${request.session.isAdmin} ${typeof request.session.save}`)
      },
    })
    const visitor = browser()
    expect((await visitor.go('/merge')).body).toBe('undefined function')
    expect((await visitor.go('/')).body).toBe('{"a":1}')
  })

  it('is left alone where the application has put one there', async () => {
    const session = expressSession(makeManager().sessions)
    const request = { session: {} } as OldRequest
    let calls = 0
    session(request, {} as never, () => {
      calls += 1
    })
    expect([calls, Object.keys(request)]).toEqual([1, ['session']])
  })

  it('begins with the initial data of the manager, which alone is not stored', async () => {
    const { browser, calls } = await serve(usual, { manager: { initial: () => ({ theme: 'light', list: [] }) } })
    const visitor = browser()
    expect((await visitor.go('/')).body).toBe('{"theme":"light","list":[]}')
    expect(calls).toEqual([])
    await visitor.go('/set?theme=dark')
    expect((await visitor.go('/')).body).toBe('{"theme":"dark","list":[]}')
  })

  it('can be asked for by the CommonJS code that it is for, in sloppy mode', async () => {
    const require = createRequire(import.meta.url)
    const { Script } = require('node:vm') as typeof import('node:vm')
    const sloppy = new Script(
      '(request => { request.session.views = (request.session.views || 0) + 1 })',
    ).runInThisContext()
    const { browser } = await serve({
      ...usual,
      '/view': (request, response) => {
        sloppy(request)
        response.end()
      },
    })
    const visitor = browser()
    for (let n = 0; n < 3; n += 1) await visitor.go('/view')
    expect((await visitor.go('/')).body).toBe('{"views":3}')
  })
})

describe('save', () => {
  it('writes at once, and the end of the response writes nothing more', async () => {
    const { browser, calls } = await serve({
      '/': async (request, response) => {
        request.session.a = 1
        await called(back => request.session.save(back))
        expect(calls).toEqual(['create'])
        response.end()
      },
    })
    await browser().go('/')
    expect(calls).toEqual(['create'])
  })

  it('twice writes once, one after the other or in parallel', async () => {
    const { browser, calls } = await serve({
      ...usual,
      '/twice': async (request, response) => {
        request.session.a = 1
        await Promise.all([called(back => request.session.save(back)), called(back => request.session.save(back))])
        await called(back => request.session.save(back))
        response.end()
      },
    })
    const visitor = browser()
    await visitor.go('/twice')
    expect(calls).toEqual(['create'])
    expect((await visitor.go('/')).body).toBe('{"a":1}')
  })

  it('writes what was there when it was called; what changes later is written at the end', async () => {
    const { browser, calls } = await serve({
      ...usual,
      '/later': (request, response) => {
        request.session.a = 1
        request.session.save()
        request.session.b = 2
        response.end()
      },
    })
    const visitor = browser()
    await visitor.go('/later')
    expect((await visitor.go('/')).body).toBe('{"a":1,"b":2}')
    expect(calls).toEqual(['create', 'update', 'read'])
  })

  it('tells its callback what failed; without one the response does not look as if it had worked', async () => {
    const { store, control } = controlled()
    const { browser, errors } = await serve(
      {
        '/told': (request, response) => {
          request.session.a = 1
          request.session.save((error: { code: string }) => response.end(error.code))
        },
        '/untold': (request, response) => {
          request.session.a = 1
          request.session.save()
          response.end('fine')
        },
      },
      { manager: { store } },
    )
    control.failing.add('create')
    const told = await browser().go('/told')
    expect([told.status, told.body]).toEqual([200, 'ERR_SESSION_STORE'])
    const untold = await browser().go('/untold')
    expect([untold.status, untold.body]).toEqual([503, 'ERR_SESSION_STORE'])
    expect(errors.length).toBe(1)
  })

  it('tells its callback of a value that cannot be stored; the answer goes out', async () => {
    const { browser, errors, calls } = await serve({
      '/': (request, response) => {
        request.session.n = 1n
        request.session.save((error: SessionError) => response.end(`${error.code}: ${(error.cause as Error).name}`))
      },
    })
    const reply = await browser().go('/')
    expect([reply.status, reply.body]).toEqual([200, 'ERR_SESSION_DATA: TypeError'])
    expect([errors, calls]).toEqual([[], []])
  })

  it('that failed, and was told, is made good at the end where something else changes after it', async () => {
    const { store, control } = controlled()
    const { browser } = await serve(
      {
        ...usual,
        '/again': async (request, response) => {
          control.failing.add('create')
          request.session.a = 1
          await expect(called(back => request.session.save(back))).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
          control.failing.clear()
          request.session.b = 2
          response.end()
        },
      },
      { manager: { store } },
    )
    const visitor = browser()
    expect((await visitor.go('/again')).status).toBe(200)
    expect((await visitor.go('/')).body).toBe('{"a":1,"b":2}')
  })

  it.each<[string, (request: OldRequest) => Promise<void>]>([
    [
      'another value was saved',
      request => {
        request.session.a = '2'
        return called(back => request.session.save(back))
      },
    ],
    ['the session was read anew', request => called(back => request.session.reload(back))],
    ['it was regenerated', request => called(back => request.session.regenerate(back))],
  ])('that failed, and was told, keeps no later change to the same data from being written: %s', async (_, change) => {
    const { store, control } = controlled()
    const { browser } = await serve(
      {
        ...usual,
        '/again': async (request, response) => {
          control.failing.add('update')
          request.session.a = '1'
          await expect(called(back => request.session.save(back))).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
          control.failing.clear()
          await change(request)
          request.session.a = '1'
          response.end()
        },
      },
      { manager: { store } },
    )
    const visitor = browser()
    await visitor.go('/set?a=0')
    expect((await visitor.go('/again')).status).toBe(200)
    expect((await visitor.go('/')).body).toBe('{"a":"1"}')
  })

  it('of a value that is another one each time it is looked at is done ten times, and holds no response for good', async () => {
    let looks = 0
    const { browser, calls } = await serve({
      '/': (request, response) => {
        request.session.tick = { toJSON: () => (looks += 1) }
        response.end('done')
      },
    })
    expect((await browser().go('/')).body).toBe('done')
    expect(calls).toEqual(['create', ...Array.from({ length: 9 }, () => 'update')])
  })

  it('refuses what is no callback', async () => {
    const { browser, errors } = await serve({ '/': request => request.session.save('done') })
    await browser().go('/')
    expect(String(errors[0])).toBe('TypeError: save: expected a callback, got "done"')
  })
})

describe('destroy', () => {
  it('ends the session: req.session is undefined, the cookie goes, and the ID is dead', async () => {
    const seen: unknown[] = []
    const { browser } = await serve({
      ...usual,
      '/destroy': (request, response) => {
        request.session.destroy(() => {
          seen.push(request.session, request.sessionID)
          response.end()
        })
        seen.push(request.session)
      },
    })
    const visitor = browser()
    await visitor.go('/set?a=1')
    const cookie = visitor.cookies.get('session_id')!
    await visitor.go('/destroy')
    expect(seen).toEqual([undefined, undefined, undefined])
    expect(visitor.cookies.size).toBe(0)
    visitor.cookies.set('session_id', cookie)
    expect((await visitor.go('/')).body).toBe('{}')
  })

  it('is waited for by the response, where the application does not', async () => {
    const { browser, sessions } = await serve({
      ...usual,
      '/user': (request, response) => {
        request.session.passport = { user: 42 }
        response.end()
      },
      '/destroy': (request, response) => {
        request.session.destroy()
        response.end()
      },
    })
    const visitor = browser()
    await visitor.go('/user')
    expect((await sessions.list(42n)).length).toBe(1)
    await visitor.go('/destroy')
    expect(visitor.cookies.size).toBe(0)
    expect(await sessions.list(42n)).toEqual([])
  })

  it('is waited for also where the save before it has called back already', async () => {
    const { store, control } = controlled()
    const seen: boolean[] = []
    let release = () => {}
    const released = new Promise<void>(resolve => {
      release = resolve
    })
    const { browser } = await serve(
      {
        ...usual,
        '/destroy': async (request, response) => {
          const { session } = request
          session.a = 2
          const saved = called(back => session.save(back))
          session.destroy()
          await saved
          await setImmediate()
          response.end('bye')
          seen.push(response.writableEnded)
          release()
        },
      },
      { manager: { store } },
    )
    const visitor = browser()
    await visitor.go('/set?a=1')
    control.before = async verb => {
      if (verb === 'delete') await released
    }
    expect((await visitor.go('/destroy')).body).toBe('bye')
    expect([seen, visitor.cookies.size]).toEqual([[false], 0])
  })

  it('that failed is told, and may be repeated', async () => {
    const { store, control } = controlled()
    const outcomes: unknown[] = []
    const { browser } = await serve(
      {
        ...usual,
        '/destroy': async (request, response) => {
          const { session } = request
          control.failing.add('delete')
          outcomes.push(await called(back => session.destroy(back)).catch(error => error.code))
          control.failing.clear()
          outcomes.push(await called(back => session.destroy(back)))
          response.end()
        },
      },
      { manager: { store } },
    )
    const visitor = browser()
    await visitor.go('/set?a=1')
    await visitor.go('/destroy')
    expect(outcomes).toEqual(['ERR_SESSION_STORE', undefined])
    expect(visitor.cookies.size).toBe(0)
  })

  it.each<[string, OldHandler]>([
    [
      'while the answer is given',
      (request, response) => {
        request.session.destroy()
        response.end('bye')
      },
    ],
    [
      'before the answer',
      async (request, response) => {
        const { session } = request
        session.destroy()
        await expect(called(back => session.destroy(back))).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
        response.end('bye')
      },
    ],
  ])('that failed without a callback makes the response a 503, and the cookie stays: %s', async (_, destroy) => {
    const { store, control } = controlled()
    const { browser } = await serve({ ...usual, '/destroy': destroy }, { manager: { store } })
    const visitor = browser()
    await visitor.go('/set?a=1')
    control.failing.add('delete')
    const reply = await visitor.go('/destroy')
    expect([reply.status, reply.body, reply.cookies]).toEqual([503, 'ERR_SESSION_STORE', []])
  })
})

describe('regenerate', () => {
  it('ends the session before its callback runs; the new one has no data, and an ID when it is saved', async () => {
    const { browser, sessions } = await serve({
      ...usual,
      '/anew': async (request, response) => {
        const before = request.session
        await called(back => request.session.regenerate(back))
        expect(request.session).not.toBe(before)
        expect([Object.keys(request.session), request.sessionID, before.a]).toEqual([[], undefined, '1'])
        before.a = 2
        request.session.b = 2
        response.end()
      },
    })
    const visitor = browser()
    await visitor.go('/set?a=1')
    const old = visitor.cookies.get('session_id')!
    await visitor.go('/anew')
    expect(visitor.cookies.get('session_id')).not.toBe(old)
    expect((await visitor.go('/')).body).toBe('{"b":2}')
    expect(await sessions.get(old as never)).toBe(null)
  })

  it('without new data leaves no session, and the browser loses its cookie', async () => {
    const { browser } = await serve({
      ...usual,
      '/anew': async (request, response) => {
        await called(back => request.session.regenerate(back))
        response.end()
      },
    })
    const visitor = browser()
    await visitor.go('/set?a=1')
    await visitor.go('/anew')
    expect(visitor.cookies.size).toBe(0)
  })

  it('that fails leaves the session as it was', async () => {
    const { store, control } = controlled()
    const { browser } = await serve(
      {
        ...usual,
        '/anew': async (request, response) => {
          control.failing.add('delete')
          const code = await called(back => request.session.regenerate(back)).catch(error => error.code)
          control.failing.clear()
          response.end(`${code} ${request.session.a}`)
        },
      },
      { manager: { store } },
    )
    const visitor = browser()
    await visitor.go('/set?a=1')
    expect((await visitor.go('/anew')).body).toBe('ERR_SESSION_STORE 1')
    expect((await visitor.go('/')).body).toBe('{"a":"1"}')
  })
})

describe('reload', () => {
  it('reads what other requests wrote, into the same object', async () => {
    const { browser } = await serve({
      ...usual,
      '/reload': async (request, response) => {
        const { session } = request
        session.mine = 'unsaved'
        await other.go('/set?theirs=2')
        await called(back => session.reload(back))
        response.end(JSON.stringify([request.session === session, session]))
      },
    })
    const visitor = browser()
    await visitor.go('/set?a=1')
    const other = browser()
    other.cookies.set('session_id', visitor.cookies.get('session_id')!)
    expect((await visitor.go('/reload')).body).toBe('[true,{"a":"1","theirs":"2"}]')
  })

  it('tells where the session has ended, or never was', async () => {
    const { browser } = await serve({
      ...usual,
      '/reload': async (request, response) => {
        if (request.sessionID) await other.go('/destroy')
        const code = await called(back => request.session.reload(back)).catch(error => error.code)
        response.end(`${code}`)
      },
    })
    const visitor = browser()
    const other = browser()
    expect((await visitor.go('/reload')).body).toBe('ERR_SESSION_CONFLICT')
    await visitor.go('/set?a=1')
    other.cookies.set('session_id', visitor.cookies.get('session_id')!)
    expect((await visitor.go('/reload')).body).toBe('ERR_SESSION_CONFLICT')
  })
})

describe('touch and resetMaxAge', () => {
  it('may be called, and change nothing: a session in use lives on by itself', async () => {
    const { browser, clock, calls } = await serve({
      ...usual,
      '/touch': (request, response) => response.end(`${request.session.touch().resetMaxAge() === request.session}`),
    })
    const visitor = browser()
    await visitor.go('/set?a=1')
    for (const isFirst of [true, false, false, false, false]) {
      clock.now += 20 * 60_000
      const reply = await visitor.go('/touch')
      expect([reply.body, reply.cookies.length]).toEqual(['true', isFirst ? 1 : 0])
    }
    expect(calls.filter(verb => verb === 'update')).toEqual([])
    expect((await visitor.go('/')).body).toBe('{"a":"1"}')
  })
})

describe('req.session.cookie', () => {
  it('says how long the cookie lasts, and what it is like', async () => {
    const { browser, clock } = await serve({
      ...usual,
      '/cookie': (request, response) => {
        const { cookie } = request.session
        response.end(JSON.stringify([cookie, cookie.maxAge, cookie.expires.getTime() - clock.now]))
      },
    })
    const visitor = browser()
    await visitor.go('/set?a=1')
    clock.now += 60_000
    const [cookie, maxAge, left] = JSON.parse((await visitor.go('/cookie')).body)
    expect(cookie).toMatchObject({
      originalMaxAge: 1_800_000,
      path: '/',
      httpOnly: true,
      secure: true,
      sameSite: 'lax',
    })
    expect([maxAge, left]).toEqual([1_740_000, 1_740_000])
  })

  it('has no maxAge where the cookie ends with the browser', async () => {
    const { browser } = await serve(
      {
        '/': (request, response) => {
          const { cookie } = request.session
          cookie.expires = false
          cookie.maxAge = null
          response.end(JSON.stringify([cookie.maxAge, cookie.expires]))
        },
      },
      { bridge: { cookie: { lifetime: 'browser' } } },
    )
    expect((await browser().go('/')).body).toBe('[null,null]')
  })

  it.each([
    [
      'maxAge',
      (request: OldRequest) => (request.session.cookie.maxAge = 60_000),
      /maxAge: cannot become 60000; a session's lifetime is set at its login: .*idle/,
    ],
    [
      'expires',
      (request: OldRequest) => (request.session.cookie.expires = false),
      /expires: cannot become false; .*idleTimeout/,
    ],
    [
      'sameSite',
      (request: OldRequest) => (request.session.cookie.sameSite = 'none'),
      /sameSite: cannot become "none"; .*\{ cookie: \{ sameSite \} \}/,
    ],
    [
      'httpOnly',
      (request: OldRequest) => (request.session.cookie.httpOnly = false),
      /httpOnly: cannot become false; .*no option/,
    ],
    [
      'the whole',
      (request: OldRequest) => (request.session.cookie = { maxAge: 5 }),
      /req\.session\.cookie: cannot be replaced/,
    ],
  ])('refuses what it could not keep, and says what to do: %s', async (_, change, message) => {
    const { browser, errors } = await serve({
      '/': (request, response) => {
        change(request)
        response.end()
      },
    })
    expect((await browser().go('/')).status).toBe(500)
    expect(String(errors[0])).toMatch(message)
  })

  it('takes what it has already: the time that the cookie began with', async () => {
    const { browser, errors } = await serve({
      '/': (request, response) => {
        const { cookie } = request.session
        cookie.maxAge = cookie.originalMaxAge
        cookie.secure = true
        response.end()
      },
    })
    expect((await browser().go('/')).status).toBe(200)
    expect(errors).toEqual([])
  })
})
