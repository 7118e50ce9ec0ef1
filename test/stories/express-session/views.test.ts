// What older code finds beside the data: the members of req.session, its cookie, and req.sessionStore.
import type { SessionEvent } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it, vi } from 'vitest'
import { BarrierStore } from '../../support/barrier-store.ts'
import { called, controlled, type OldHandler, type OldRequest, serve } from './service.ts'

const usual: Record<string, OldHandler> = {
  '/': (request, response) => response.end(JSON.stringify(request.session)),
  '/set': (request, response) => {
    request.session.a = 1
    response.end()
  },
}
const asked = (ask: (callback: (error: unknown, value?: unknown) => void) => void) =>
  new Promise((resolve, reject) => {
    ask((error, value) => (error ? reject(error) : resolve(value)))
  })

describe('members of req.session', () => {
  it('know their request, and say so where they are called without their session', async () => {
    const { browser, errors } = await serve({
      '/req': (request, response) => response.end(String(request.session.req === request)),
      '/lost': request => {
        const { save } = request.session
        save.call({}, () => {})
      },
    })
    expect((await browser().go('/req')).body).toBe('true')
    await browser().go('/lost')
    expect(errors).toEqual([new TypeError('this method of req.session was called without its session')])
  })

  it.each(['save', 'regenerate', 'destroy', 'reload'])('%s refuses by its name what is no callback', async verb => {
    const { browser, errors } = await serve({
      '/': (request, response) => {
        const { session } = request
        expect(session[verb](verb === 'reload' ? () => {} : null)).toBe(session)
        response.end()
      },
      '/wrong': request => request.session[verb]('callback'),
    })
    await browser().go('/')
    expect(errors.splice(0)).toEqual([])
    await browser().go('/wrong')
    expect(errors).toEqual([new TypeError(`${verb}: expected a callback, got "callback"`)])
  })

  it('are not there for objects that are merged into the session: its prototype stays', async () => {
    const { browser } = await serve({
      '/': (request, response) => {
        const { session } = request
        const before = Object.getPrototypeOf(session)
        const answer = [Reflect.setPrototypeOf(session, { admin: true }), session.admin === undefined]
        response.end(JSON.stringify([...answer, Object.getPrototypeOf(session) === before, before.constructor.name]))
      },
    })
    expect((await browser().go('/')).body).toBe('[false,true,true,"Session"]')
  })
})

describe('req.session.cookie', () => {
  const shown = async (lifetime: 'idle' | 'absolute') => {
    const { browser, clock } = await serve(
      {
        ...usual,
        '/cookie': (request, response) => {
          const { cookie } = request.session
          response.end(
            JSON.stringify([cookie.originalMaxAge, cookie.maxAge, cookie.expires.getTime() - clock.now, cookie]),
          )
        },
      },
      { bridge: { cookie: { lifetime } } },
    )
    const visitor = browser()
    const before = JSON.parse((await visitor.go('/cookie')).body)
    await visitor.go('/set')
    clock.now += 60_000
    return { before, after: JSON.parse((await visitor.go('/cookie')).body) }
  }
  const [MINUTE, HALF, TWELVE] = [60_000, 1_800_000, 43_200_000]

  it('counts from the last visit where it slides, and a visitor’s as if it began now', async () => {
    const { before, after } = await shown('idle')
    expect(before.slice(0, 3)).toEqual([HALF, HALF, HALF])
    expect(after.slice(0, 3)).toEqual([HALF, HALF - MINUTE, HALF - MINUTE])
    expect(Object.keys(after[3]).sort()).toEqual(Object.keys(before[3]).sort())
    expect(after[3]).toMatchObject({ partitioned: false, secure: true, path: '/' })
  })

  it('may be assigned to the session that has it, as code does that copies a session, and no other', async () => {
    const { browser } = await serve({
      '/': (request, response) => {
        Object.assign(request.session, { cookie: request.session.cookie })
        response.end('kept')
      },
      '/other': request => Object.assign(request.session, { cookie: { ...request.session.cookie } }),
    })
    expect((await browser().go('/')).body).toBe('kept')
    expect((await browser().go('/other')).body).toContain('req.session.cookie: cannot be replaced')
  })

  it('lists what it says of the cookie, and no methods', async () => {
    const { browser } = await serve({
      '/': (request, response) => {
        const { cookie } = request.session
        response.end(JSON.stringify([Object.keys(cookie), Object.keys(cookie.data), Object.keys(cookie.toJSON())]))
      },
    })
    const lists: string[][] = JSON.parse((await browser().go('/')).body)
    const names = ['domain', 'expires', 'httpOnly', 'maxAge', 'originalMaxAge', 'partitioned', 'path', 'priority']
    const all = [...names, 'sameSite', 'secure', 'signed']
    expect(lists.map(each => each.sort())).toEqual([all, all, all])
  })

  it('counts from the login where it does not', async () => {
    const { before, after } = await shown('absolute')
    expect(before.slice(0, 3)).toEqual([TWELVE, TWELVE, TWELVE])
    expect(after.slice(0, 3)).toEqual([TWELVE, TWELVE - MINUTE, TWELVE - MINUTE])
  })

  it.each(['httpOnly', 'priority', 'signed', 'path'])('says of %s whether an option sets it', async name => {
    const { browser, errors } = await serve({
      '/': request => {
        request.session.cookie[name] = 'other'
      },
    })
    await browser().go('/')
    const advice =
      name === 'path'
        ? 'from an option: expressSession(sessions, { cookie: { path } })'
        : 'every session has the same cookie, and this is no option of it'
    expect(String(errors[0])).toContain(`req.session.cookie.${name}: cannot become "other"; `)
    expect(String(errors[0])).toContain(advice)
  })

  it('takes null for a time where it has none, refuses one where it has, and takes no other members', async () => {
    const tell = async (lifetime: 'browser' | 'idle', change: (cookie: any) => void) => {
      const { browser } = await serve(
        {
          '/': (request, response) => {
            change(request.session.cookie)
            response.end('kept')
          },
        },
        { bridge: { cookie: { lifetime } } },
      )
      return (await browser().go('/')).body
    }
    for (const name of ['maxAge', 'originalMaxAge', 'expires'])
      for (const none of [null, undefined, false]) {
        const change = (cookie: any) => {
          cookie[name] = none
        }
        expect(await tell('browser', change), `${name} = ${none}`).toBe('kept')
        expect(await tell('idle', change), `${name} = ${none}`).toContain(`${name}: cannot become ${none}`)
      }
    expect(await tell('browser', cookie => Object.assign(cookie, { expires: new Date() }))).toContain('cannot become')
    expect(await tell('idle', cookie => Object.assign(cookie, { sameParty: true }))).toContain('not extensible')
  })
})

describe('req.sessionStore', () => {
  /** Runs code with the store of a request, and the key of its session. */
  async function withStore(run: (store: any, key: string, request: OldRequest) => unknown) {
    const { store, control } = controlled()
    const told: SessionEvent[] = []
    const made = await serve(
      {
        ...usual,
        '/run': async (request, response) => {
          await run(request.sessionStore, request.sessionID, request)
          response.end()
        },
      },
      { manager: { store, onEvent: event => told.push(event) } },
    )
    const visitor = made.browser()
    await visitor.go('/set')
    const reply = await visitor.go('/run')
    return { ...made, visitor, reply, control, told }
  }

  it('reads by get and by load alike, and cannot be changed', async () => {
    const { reply } = await withStore(async (store, key) => {
      for (const verb of ['get', 'load']) {
        expect(await asked(back => store[verb](key, back))).toEqual({ a: 1 })
        for (const none of [undefined, null, 42, '', 'nonsense', key.slice(1)])
          expect(await asked(back => store[verb](none, back))).toBeNull()
      }
      expect(Object.isFrozen(store)).toBe(true)
    })
    expect(reply.status).toBe(200)
  })

  it('needs no callback, and tells in a warning what failed without one', async () => {
    const warnings = vi.spyOn(process, 'emitWarning').mockReturnValue()
    const { store, control } = controlled()
    const { browser } = await serve(
      {
        ...usual,
        '/run': (request, response) => {
          const { sessionStore, sessionID } = request
          sessionStore.touch(sessionID, {})
          sessionStore.get(sessionID)
          response.end()
        },
        '/fail': async (request, response) => {
          control.failing.add('read')
          request.sessionStore.get(request.sessionID)
          await expect(asked(back => request.sessionStore.get(request.sessionID, back))).rejects.toMatchObject({
            code: 'ERR_SESSION_STORE',
          })
          response.end()
        },
      },
      { manager: { store } },
    )
    const visitor = browser()
    await visitor.go('/set')
    expect((await visitor.go('/run')).status).toBe(200)
    expect(warnings).not.toHaveBeenCalled()
    expect((await visitor.go('/fail')).status).toBe(200)
    const told = warnings.mock.calls.map(values => values.slice(0, 2))
    warnings.mockRestore()
    expect(told).toEqual([[expect.stringMatching(/^req\.sessionStore: .*read/), 'CoatcheckWarning']])
  })

  it('regenerates no session of a request that has none, and says so', async () => {
    const { reply, errors } = await withStore(async (store, _, request) => {
      await called(back => request.session.destroy(back))
      expect(() => store.regenerate({ session: null }, () => {})).toThrow('this request has no session')
      store.regenerate(request, () => {})
    })
    expect(reply.status).toBe(500)
    expect(String(errors[0])).toContain('regenerate: this request has no session')
  })

  it('finds no remember-me series by its key, and ends one with its session alone', async () => {
    const store = BarrierStore.over(new MemoryStore())
    const { browser, sessions, errors } = await serve(
      {
        '/login': (request, response) => {
          request.session.passport = { user: 42 }
          response.end()
        },
        '/run': async (request, response) => {
          const { key } = store.calls.find(({ args }) => args[0]?.kind === 'remember')!.args[0]
          expect(await asked(back => request.sessionStore.get(key, back))).toBeNull()
          await called(back => request.sessionStore.destroy(key, back))
          expect(
            await sessions.redeemRememberToken(request.headers.cookie!.match(/remember_token=([^;]*)/)![1]!),
          ).not.toBeNull()
          response.end()
        },
        '/end': async (request, response) => {
          await called(back => request.sessionStore.destroy(request.sessionID, back))
          response.end()
        },
      },
      { manager: { store, rememberFor: '30d' }, bridge: { logIn: () => ({ remember: true }) } },
    )
    const ada = browser()
    await ada.go('/login')
    await ada.go('/run')
    expect(errors).toEqual([])
    const token = ada.cookies.get('remember_token')!
    await ada.go('/end')
    expect(await sessions.redeemRememberToken(token), 'it ends with its session').toBeNull()
  })

  it('ends a visitor’s session as the operator does', async () => {
    const { visitor, sessions, told } = await withStore(async (store, key) => {
      await called(back => store.destroy(key, back))
      expect(await asked(back => store.get(key, back))).toBeNull()
    })
    expect(told.at(-1)).toMatchObject({ type: 'destroyed', userId: null, reason: 'revoked' })
    expect((await visitor.go('/')).body).toBe('{}')
    expect(await sessions.count()).toBe(0)
  })
})
