// A request is under way while its session ends, or another user logs in to it: it neither brings a user back, nor writes into
// what is another's.
import { SessionManager } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import { afterEach, describe, expect, it } from 'vitest'
import { APPS, startApp } from './apps.ts'
import { lateRequests } from './late.ts'
import { called, HANDLERS, serve, userOf } from './service.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()!()
})

describe.each(Object.keys(APPS))('%s', name => {
  lateRequests(async () => {
    const sessions = new SessionManager({ store: new MemoryStore(), sweepInterval: false })
    const service = await startApp(name, connectStore(sessions, { userOf: userOf as never }))
    open.push(service.close, () => sessions.close())
    return { sessions, ...service }
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
    service = await serve({ ...HANDLERS, '/change': change(isInOrder) })
    const [one, copy, phone] = [service.browser(), service.browser(), service.browser()]
    for (const each of [one, phone]) await each.go('/login?user=42')
    for (const [name, value] of one.cookies) copy.cookies.set(name, value)
    const { status } = await one.go('/change')
    const seen = await Promise.all([one, copy, phone].map(async each => JSON.parse((await each.go('/read')).body).user))
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
  const byHand = (end: (request: any) => Promise<unknown>) =>
    serve({
      ...HANDLERS,
      '/again': async (request, response) => {
        const { user } = request.session
        await end(request)
        request.sessionStore.generate(request)
        request.session.user = user
        await called(callback => request.session.save(callback))
        response.end(user)
      },
    })

  it.each([
    ['that destroys its session', (request: any) => called(callback => request.session.destroy(callback))],
    ['that destroys it and waits for no callback', async (request: any) => request.session.destroy()],
    ['that leaves it alone', async () => {}],
  ])('a request %s may begin the next one for the same user', async (_, end) => {
    const { browser, sessions } = await byHand(end)
    const one = browser()
    await one.go('/login?user=42')
    expect((await one.go('/again')).status).toBe(200)
    expect(JSON.parse((await one.go('/read')).body).user).toBe('42')
    expect((await sessions.list(42n)).length).toBeGreaterThan(0)
  })

  it.each([
    ['destroy', (request: any) => called(callback => request.session.destroy(callback))],
    ['nothing', async () => {}],
  ])('a request whose session another one has ended begins none for its user, by %s', async (_, end) => {
    let service: Awaited<ReturnType<typeof byHand>>
    const ending = async (request: any) => {
      await service.sessions.invalidateUser(42n)
      await end(request)
    }
    service = await byHand(ending)
    const one = service.browser()
    await one.go('/login?user=42')
    expect(await one.go('/again')).toMatchObject({ status: 401, body: 'ERR_SESSION_UNAUTHENTICATED' })
    expect(await service.sessions.list(42n)).toEqual([])
    // Not once more after the answer, where an error cuts the connection.
    expect(service.errors).toHaveLength(1)
    expect((await one.go('/read')).body).toBe('{}')
  })
})
