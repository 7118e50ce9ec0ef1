import { SessionManager } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { BarrierStore } from './services/barrier-store.ts'
import { MINUTE, SECOND, testClock } from './services/test-clock.ts'

const user = { id: 1, name: 'ada' }
function setUp(options: object = {}) {
  const store = BarrierStore.over(new MemoryStore())
  const clock = testClock()
  return { store, clock, sessions: new SessionManager({ store, now: clock, sweepEvery: false, ...options }) }
}

describe('the option passwordVersion, alone', () => {
  it('refuses an older session, and accepts the same and a newer one', async () => {
    let current = 2
    const { sessions } = setUp({ passwordVersion: async (id: bigint) => (id === 1n ? current : 0) })
    const [none, older, same, newer] = await Promise.all(
      [null, 1, 2, 3].map(passwordVersion => sessions.create({ user: { ...user, passwordVersion } })),
    )
    const other = await sessions.create({ user: { id: 2, name: 'max' } })
    const anonymous = await sessions.create()
    for (const dead of [none!, older!]) {
      expect(await sessions.get(dead.secret)).toBeNull()
      expect(await sessions.regenerate(dead.secret)).toBeNull()
      expect(await sessions.renew(dead.secret, { grace: '1m' })).toBeNull()
    }
    for (const live of [same!, newer!, other, anonymous]) expect(await sessions.get(live.secret)).not.toBeNull()
    expect(new Set((await sessions.list(1)).map(({ key }) => key))).toEqual(new Set([same!.key, newer!.key]))
    current = 3
    expect(await sessions.get(same!.secret)).toBeNull()
    expect(await sessions.get(newer!.secret)).not.toBeNull()
  })

  it('a login with an outdated session leaves nothing under the old ID', async () => {
    const { sessions, store } = setUp({ passwordVersion: () => 2 })
    const old = await sessions.create({ user: { ...user, passwordVersion: 1 } })
    await sessions.regenerate(old.secret, { user: { ...user, passwordVersion: 2 } })
    expect(await store.inner.read(old.key, 0)).toBeNull()
  })

  it('that throws, or answers nonsense, is an error and no log-out', async () => {
    let answer: () => unknown = () => 1
    const { sessions } = setUp({ passwordVersion: () => answer() })
    const session = await sessions.create({ user: { ...user, passwordVersion: 1 } })
    answer = () => {
      throw new Error('users are down')
    }
    await expect(sessions.get(session.secret)).rejects.toThrow('users are down')
    answer = () => Promise.reject(new Error('users are down'))
    await expect(sessions.get(session.secret)).rejects.toThrow('users are down')
    answer = () => '1'
    await expect(sessions.get(session.secret)).rejects.toThrow('passwordVersion(): expected a whole number')
    answer = () => 1
    expect(await sessions.get(session.secret)).not.toBeNull()
  })
})

it('isFresh: a password, verified lately, by this person', async () => {
  const { sessions, clock } = setUp()
  const session = await sessions.create({ user })
  expect(sessions.isFresh(session, '10m')).toBe(true)
  clock.advance(10 * MINUTE)
  const renewed = (await sessions.regenerate(session))!
  expect([sessions.isFresh(renewed, '10m'), sessions.isFresh(renewed, '9m')]).toEqual([true, false])
  expect(sessions.isFresh(await sessions.create(), '10m')).toBe(false)
  expect(sessions.isFresh(null, '10m')).toBe(false)
})

it('update: a function that is asynchronous is refused before anything is written', async () => {
  const { sessions, store } = setUp()
  const session = await sessions.create({ data: { a: 1 } })
  store.reset()
  await expect(
    sessions.update(session, (async (draft: any) => {
      draft.a = 2
      throw new Error('late')
    }) as never),
  ).rejects.toThrow('update: the function must be synchronous')
  expect(store.calls).toEqual([])
})

it('update: what the function throws is the caller’s, and the old data stays', async () => {
  const { sessions } = setUp()
  const session = await sessions.create({ data: { a: 1 } })
  await expect(
    sessions.update(session, draft => {
      draft.a = 2
      throw new Error('mine')
    }),
  ).rejects.toThrow('mine')
  expect((await sessions.get(session))?.data).toEqual({ a: 1 })
  expect((await sessions.update(session, { a: undefined }))?.data).toEqual({})
})

it('a session that a parallel request renewed is not renewed again, nor shown once it is gone', async () => {
  const { sessions, clock } = setUp()
  const old = await sessions.create({ user })
  const next = (await sessions.renew(old, { grace: '1m' }))!
  clock.advance(SECOND)
  const followed = (await sessions.get(old.secret))!
  expect((await sessions.renew(followed, { grace: '1m' }))?.secret).toBe(next.secret)
  expect((await sessions.renew(old.secret, { grace: '1m' }))?.secret).toBe(next.secret)
  await sessions.destroy(next)
  expect(await sessions.renew(followed, { grace: '1m' })).toBeNull()
})

it('anonymous traffic writes nothing', async () => {
  const { sessions, store } = setUp()
  for (const current of [null, undefined, '', 'x', 'x'.repeat(43)]) {
    expect(await sessions.get(current)).toBeNull()
    expect(await sessions.regenerate(current)).toBeNull()
  }
  expect(store.counts()).toEqual({ read: 2 })
})

it('touch: false leaves the visit unwritten, for polls and sockets', async () => {
  const { sessions, store, clock } = setUp()
  const { secret, expiresAt } = await sessions.create()
  clock.advance(20 * MINUTE)
  store.reset()
  expect((await sessions.get(secret, { touch: false }))?.expiresAt).toBe(expiresAt)
  expect(store.counts()).toEqual({ read: 1 })
})
