// What one request does twice, or after the end of its session; and a password change.
import type { Store } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import express from 'express'
import expressSession from 'express-session'
import { describe, expect, it } from 'vitest'
import { BarrierStore } from '../support/barrier-store.ts'
import { called, SECRET } from '../support/connect/apps.ts'
import { listen, makeStore, serve, sidOf } from './service.ts'

const SID = sidOf('one browser')

describe('one request', () => {
  it('that saves twice at once writes both, and begins one session', async () => {
    const { browser, sessions } = await serve({
      '/twice': async (request, response) => {
        const { session } = request
        session.a = 1
        const first = called(callback => session.save(callback))
        session.b = 2
        await Promise.all([first, called(callback => session.save(callback))])
        response.end(Object.keys(session).join())
      },
    })
    const one = browser()
    expect((await one.go('/twice')).body).toBe('cookie,a,b')
    expect(await one.read()).toEqual({ a: 1, b: 2 })
    expect((await one.go('/twice')).body, 'loaded').toBe('cookie,a,b')
    expect(await sessions.count()).toBe(1)
  })

  it('that saves after it destroyed the session writes nothing, with a new session or an old one', async () => {
    const { browser, sessions, calls } = await serve({
      '/after': async (request, response) => {
        const { session } = request
        session.a = 1
        await called(callback => session.destroy(callback))
        await called(callback => session.save(callback))
        await called(callback => session.save(callback))
        response.end()
      },
    })
    const one = browser()
    await one.go('/after')
    // The read looks for the remember token that began the session.
    expect(calls).toEqual(['read', 'delete'])
    await one.go('/login?user=42')
    await one.go('/after')
    expect(await sessions.count()).toBe(0)
    expect(await one.read()).toEqual({})
  })

  it.each(['before', 'after'] as const)(
    'that destroys a session while it is stored for the first time leaves none (%s)',
    async when => {
      const barrier = BarrierStore.over(new MemoryStore())
      const { store, sessions } = makeStore({ store: barrier })
      const pause = barrier.pause('create', when)
      const saving = store.set(SID, { cookie: {}, user: '42' })
      await pause.reached
      await store.destroy(SID)
      pause.resume()
      await saving
      expect(await store.get(SID)).toBeNull()
      expect(await sessions.list(42n)).toEqual([])
    },
  )

  it('that saves the object that regenerate replaced does not bring it back', async () => {
    const { browser, sessions } = await serve({
      '/both': async (request, response) => {
        const before = request.session
        const saving = called(callback => before.save(callback))
        await called(callback => before.regenerate(callback))
        request.session.user = '42'
        before.late = true
        await Promise.all([saving, called(callback => before.save(callback))])
        response.end()
      },
    })
    const one = browser()
    await one.go('/write?key=cart&value=tea')
    const copy = one.copy()
    await one.go('/both')
    expect(await one.read()).toEqual({ user: '42' })
    expect(await copy.read()).toEqual({})
    expect(await sessions.count()).toBe(1)
  })

  it('that reloads works on what is stored, and fails if there is nothing any more', async () => {
    const { browser, store, sessions } = await serve({
      '/reload': async (request, response) => {
        request.session.mine = 1
        const session = (await sessions.get(store.idOf(request.sessionID)))!
        await sessions.update(session, { theirs: 2 })
        await called(callback => request.session.reload(callback))
        const { mine, theirs } = request.session
        await sessions.destroy(session)
        const failed = await called(callback => request.session.reload(callback)).catch(String)
        response.end(JSON.stringify({ mine, theirs, failed }))
      },
    })
    const one = browser()
    await one.go('/login?user=42')
    expect((await one.go('/reload')).body).toEqual({ theirs: 2, failed: 'Error: failed to load session' })
  })
})

describe('a password change', () => {
  const change = (isInOrder: boolean) => async (request: any, response: any) => {
    const { sessions, store } = service
    const endTheOthers = async () => {
      const except = isInOrder ? await sessions.get(store.idOf(request.sessionID)) : null
      await sessions.invalidateUser(42n, { except, minPasswordVersion: 2 })
    }
    if (!isInOrder) await endTheOthers()
    await called(callback => request.session.regenerate(callback))
    request.session.user = { id: '42', passwordVersion: 2 }
    await called(callback => request.session.save(callback))
    if (isInOrder) await endTheOthers()
    response.end()
  }
  let service: Awaited<ReturnType<typeof serve>>
  async function changed(isInOrder: boolean) {
    service = await serve({ '/change': change(isInOrder) })
    const [one, phone] = [service.browser(), service.browser()]
    for (const each of [one, phone]) await each.go('/login?user=42')
    const copy = one.copy()
    const { status } = await one.go('/change')
    const seen = await Promise.all([one, copy, phone].map(async each => (await each.read()).user))
    return { status, seen }
  }

  it('that saves a new ID first, and then ends everything else, keeps this browser alone', async () => {
    const user = { id: '42', passwordVersion: 2 }
    expect(await changed(true)).toEqual({ status: 200, seen: [user, undefined, undefined] })
  })

  it('that ends everything first is logged out itself, and told so', async () => {
    expect(await changed(false)).toEqual({ status: 401, seen: [undefined, undefined, undefined] })
  })
})

describe('express-session, by hand', () => {
  const byHand = (end: (request: any) => Promise<unknown>, store: Store = new MemoryStore()) =>
    serve(
      {
        '/again': async (request, response) => {
          const { user } = request.session
          await end(request)
          request.sessionStore.generate(request)
          request.session.user = user
          await called(callback => request.session.save(callback))
          response.end(user)
        },
      },
      { manager: { store } },
    )

  it.each([
    ['that destroys its session', (request: any) => called(callback => request.session.destroy(callback))],
    ['that destroys it and waits for no callback', async (request: any) => request.session.destroy()],
    ['that leaves it alone', async () => {}],
  ])('a request %s may begin the next one for the same user', async (_, end) => {
    const { browser, sessions } = await byHand(end)
    const one = browser()
    await one.go('/login?user=42')
    expect((await one.go('/again')).status).toBe(200)
    expect((await one.read()).user).toBe('42')
    expect((await sessions.list(42n)).length).toBeGreaterThan(0)
  })

  it('a request begins none for its user if another one ends its session while it is about to destroy it', async () => {
    const barrier = BarrierStore.over(new MemoryStore())
    let service: Awaited<ReturnType<typeof byHand>>
    const ending = async (request: any) => {
      const pause = barrier.pause('delete', 'before')
      const destroying = called(callback => request.session.destroy(callback))
      await pause.reached
      await service.sessions.invalidateUser(42n)
      pause.resume()
      await destroying
    }
    service = await byHand(ending, barrier)
    const one = service.browser()
    await one.go('/login?user=42')
    expect(await one.go('/again')).toMatchObject({ status: 401, body: 'ERR_SESSION_UNAUTHENTICATED' })
    expect(await service.sessions.list(42n)).toEqual([])
    // Not once more after the answer, where an error cuts the connection.
    expect(service.errors).toHaveLength(1)
  })
})

describe('Express: a login that the limit has refused', () => {
  const logIn = async (
    afterwards: (request: any, made: ReturnType<typeof makeStore>) => Promise<unknown>,
    isStreamed = false,
  ) => {
    const made = makeStore({ limit: { max: 1, onLimit: 'refuse' } })
    await made.sessions.logIn(null, { user: { id: 42n, name: '' } })
    const app = express()
    app.use(expressSession({ store: made.store as any, secret: SECRET, resave: false, saveUninitialized: false }))
    app.use(async (request: any, response) => {
      await called(callback => request.session.regenerate(callback))
      request.session.user = '42'
      if (isStreamed) response.flushHeaders()
      const error: any = await called(callback => request.session.save(callback)).catch(error => error)
      const text = JSON.stringify([error?.code, await afterwards(request, made)])
      if (isStreamed) delete request.session
      response.end(text)
    })
    const { browser } = await listen(app)
    const { body } = await browser().go('/login')
    return { body, sessions: await made.sessions.list(42n) }
  }
  const save = (request: any) =>
    called(callback => request.session.save(callback)).then(
      () => 'saved',
      error => error.code,
    )

  it.each([
    ['before the answer', false],
    ['beside an answer that has begun', true],
  ])('is told so at each save %s', async (_, isStreamed) => {
    const { body, sessions } = await logIn(save, isStreamed)
    expect(body).toEqual(['ERR_SESSION_LIMIT', 'ERR_SESSION_LIMIT'])
    expect(sessions).toHaveLength(1)
  })

  it.each([
    ['saves again', save, 'saved'],
    ['answers, which saves again', async () => 'answered', 'answered'],
  ] as const)('is logged in if it ends the other session and %s', async (_, afterwards, said) => {
    const { body, sessions } = await logIn(async (request, made) => {
      await made.sessions.invalidateUser(42n)
      return afterwards(request)
    })
    expect(body).toEqual(['ERR_SESSION_LIMIT', said])
    expect(sessions).toMatchObject([{ data: { user: '42' } }])
  })
})
