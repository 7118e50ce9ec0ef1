// What a session's data is after `update` and `take`, and which cookie the answer asks for.

import { SessionManager, SessionStoreError } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it, vi } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { grace, setUp as memory, openWith, schemaOf, user } from '../support/manager-kit.ts'
import { MINUTE } from '../support/test-clock.ts'

const initial = () => ({ flash: 'hello', theme: 'light', note: undefined as string | undefined, n: 0 })
const setUp = (options: object = {}) => memory({ initial, ...options })

describe('take', () => {
  it('leaves the start value in place of what it took, and all other keys as they were', async () => {
    const { sessions } = setUp()
    const session = await sessions.create({ data: { flash: 'saved', theme: 'dark', n: 7 } })
    expect(await sessions.take(session, 'flash')).toBe('saved')
    expect((await sessions.get(session.secret))?.data).toEqual({ flash: 'hello', theme: 'dark', n: 7 })
  })

  it('answers a start value at each call, and writes nothing', async () => {
    const { sessions, store } = setUp()
    const session = await sessions.create({ data: { n: 7 } })
    store.reset()
    for (let times = 0; times < 3; times += 1) expect(await sessions.take(session, 'flash')).toBe('hello')
    expect(store.counts()).toEqual({ read: 3 })
  })

  it('of a key that has no value, or that there is not, answers nothing and writes nothing', async () => {
    const { sessions, store } = setUp()
    const session = await sessions.create()
    store.reset()
    expect(await sessions.take(session, 'note')).toBeUndefined()
    expect(await sessions.take(session, 'toString' as never)).toBeUndefined()
    expect(store.counts()).toEqual({ read: 2 })
  })

  it('leaves data that a schema accepts, which asks for the key', async () => {
    const schema = schemaOf((value: any) =>
      typeof value?.flash === 'string' ? { value } : { issues: [{ message: 'flash is missing' }] },
    )
    const { sessions } = setUp({ schema })
    const session = await sessions.create({ data: { flash: 'saved' } })
    expect(await sessions.take(session, 'flash')).toBe('saved')
    expect((await sessions.get(session.secret))?.data.flash).toBe('hello')
  })

  it('of a session that is gone answers nothing, and a visit has no session from then on', async () => {
    const { sessions } = setUp()
    const session = await sessions.create({ data: { flash: 'saved' } })
    const visit = openWith(sessions, session)
    await visit.get()
    await sessions.destroy(session)
    expect(await visit.take('flash')).toBeUndefined()
    expect(await visit.get()).toBeNull()
    expect(await sessions.take(session, 'flash')).toBeUndefined()
  })
})

it('update: what the function throws is the caller’s, and the old data stays; undefined leaves the start value', async () => {
  const { sessions } = setUp()
  const session = await sessions.create({ data: { n: 1 } })
  const change = (draft: Record<string, unknown>) => {
    draft.n = 2
    throw new Error('mine')
  }
  await expect(sessions.update(session, change)).rejects.toThrow('mine')
  expect((await sessions.get(session))?.data.n).toBe(1)
  expect((await sessions.update(session, { n: undefined }))?.data.n).toBe(0)
})

it('update refuses what is no change, by its name', async () => {
  const { sessions } = setUp()
  const session = await sessions.create()
  for (const wrong of [undefined, null, 'dark', 7, [], new Map()])
    await expect(sessions.update(session, wrong as never)).rejects.toThrow(
      'update: expected keys to set or a function that edits them, got ',
    )
})

it('a visit that finds a value taken by another process meanwhile keeps its session', async () => {
  const { sessions, manager } = setUp()
  const session = await sessions.create({ data: { note: 'once' } })
  const visit = openWith(sessions, session)
  expect((await visit.get())?.data.note).toBe('once')
  expect(await manager().take(session, 'note')).toBe('once')
  expect(await visit.take('note')).toBeUndefined()
  expect((await visit.get())?.key).toBe(session.key)
})

describe('a write', () => {
  it('meets the session under a new ID as long as its grace lasts', async () => {
    const { sessions, manager } = setUp()
    const { secret } = await sessions.create()
    const held = (await sessions.get(secret))!
    const next = (await manager().regenerate(secret, grace))!
    expect((await sessions.update(held, { n: 1 }))?.secret).toBe(next.secret)
  })

  it('does not extend the session: only a get is a use of it', async () => {
    const { sessions, clock } = setUp()
    const held = await sessions.create()
    clock.advance(5 * MINUTE)
    const written = (await sessions.update(held, { n: 1 }))!
    expect([written.seenAt, written.expiresAt]).toEqual([held.seenAt, held.expiresAt])
    await sessions.take(written, 'n')
    expect((await sessions.get(held.secret, { touch: false }))?.expiresAt).toBe(held.expiresAt)
    expect((await sessions.get(held.secret))?.expiresAt).toBe(held.expiresAt + 5 * MINUTE)
  })
})

describe('a writer for whom earlier ones left no time', () => {
  const verbs: [string, string, (sessions: any, session: any) => Promise<unknown>][] = [
    ['update', 'update', (sessions, session) => sessions.update(session, { n: 1 })],
    ['take', 'update', (sessions, session) => sessions.take(session, 'n')],
    ['updateUserSessions', 'update', sessions => sessions.updateUserSessions(1, { n: 1 })],
    ['regenerate', 'replace', (sessions, session) => sessions.regenerate(session)],
    ['regenerate with a grace', 'replace', (sessions, session) => sessions.regenerate(session, grace)],
    ['a login', 'replace', (sessions, session) => sessions.logIn(session, { user })],
  ]
  it.each(verbs)('%s: is told so, by the name of what it was to do, and that nothing was written', async (...given) => {
    const [, operation, run] = given
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const { sessions, store } = setUp({ storeTimeout: '2s' })
    const session = await sessions.create({ user, data: { n: 5 } })
    store.next('update', faults.hang)
    const first = sessions.update(session, { n: 2 }).catch((error: unknown) => error)
    const second = run(sessions, session).catch((error: unknown) => error)
    await vi.advanceTimersByTimeAsync(2001)
    expect(await first).toBeInstanceOf(SessionStoreError)
    expect(await second).toMatchObject({
      code: 'ERR_SESSION_STORE',
      operation,
      outcome: 'not-applied',
    })
    expect((await sessions.get(session.secret))?.data.n).toBe(5)
  })
})

it('where one request cannot wait for another, as on Workers, no parallel update is lost either', async () => {
  const store = Object.assign(new MemoryStore(), { isPerRequest: true })
  const sessions = new SessionManager({ store, sweepInterval: false, initial: () => ({ n: 0 }) })
  const session = await sessions.create()
  await Promise.all(Array.from({ length: 20 }, () => sessions.update(session, data => void data.n++)))
  expect((await sessions.get(session))?.data.n).toBe(20)
})

describe('a write that met another writer', () => {
  it('is tried again at once the first time, and then after waits that others do not share', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const { sessions, store } = setUp({ storeTimeout: '2s' })
    const session = await sessions.create({ data: { n: 1 } })
    store.next('update', faults.answers('conflict'))
    expect((await sessions.update(session, { n: 2 }))?.data.n).toBe(2)
    store.reset()
    store.every('update', faults.answers('conflict'))
    const update = sessions.update(session, { n: 3 }).catch((error: unknown) => error)
    await vi.advanceTimersByTimeAsync(0)
    expect(store.counts().update).toBeLessThanOrEqual(3)
    await vi.advanceTimersByTimeAsync(2100)
    expect(await update).toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
    // Not in a hurry: about 50 ms apart where it goes on, and until the deadline.
    expect(store.counts().update).toBeGreaterThan(15)
    expect(store.counts().update).toBeLessThan(400)
  })

  it('works with what the last writer of this process left, without a read of its own', async () => {
    const { sessions, store } = setUp()
    const session = await sessions.create({ data: { a: 0, b: 0 } })
    store.reset()
    const [one, two] = await Promise.all([sessions.update(session, { a: 1 }), sessions.update(session, { b: 1 })])
    expect([one?.data, two?.data]).toMatchObject([
      { a: 1, b: 0 },
      { a: 1, b: 1 },
    ])
    expect(store.counts()).toEqual({ update: 2 })
  })
})
