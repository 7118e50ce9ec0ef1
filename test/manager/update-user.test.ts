// One change for all sessions of a user: what it asks of the store, and what one session's trouble is to the others.

import type { Session } from 'coatcheck'
import { CLOCK_TOLERANCE, type SessionRecord } from 'coatcheck/custom-store'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { barrierManagers } from '../support/barrier-managers.ts'
import { faults } from '../support/barrier-store.ts'

const user = { id: 1, name: 'ada' }
const increment = (data: Record<string, unknown>) => {
  data.n = ((data.n as number | undefined) ?? 0) + 1
}

async function withSessions(count: number, options: object = {}) {
  const at = barrierManagers(new MemoryStore(), options)
  const made: Session[] = []
  for (let index = 0; index < count; index += 1) made.push(await at.sessions.create({ user, data: { index } }))
  at.store.reset()
  const counters = async () => Promise.all(made.map(async ({ secret }) => (await at.sessions.get(secret))?.data.n ?? 0))
  return { ...at, made, counters }
}

it('costs two lists and a write for each session, and one list where the user has none', async () => {
  const { sessions, store } = await withSessions(3)
  expect(await sessions.updateUserSessions(1, increment)).toBe(3)
  expect(store.counts()).toEqual({ listUser: 2, update: 3 })
  store.reset()
  expect(await sessions.updateUserSessions(2, increment)).toBe(0)
  expect(store.counts()).toEqual({ listUser: 1 })
})

it('leaves alone what got a new ID after its change, and lists no third time for it', async () => {
  const { sessions, store, manager, made } = await withSessions(1)
  store.next('listUser', proceed => proceed())
  const pause = store.pause('listUser', 'before')
  const updating = sessions.updateUserSessions(1, increment)
  await pause.reached
  const next = (await manager().regenerate(made[0]!.secret))!
  pause.resume()
  expect(await updating).toBe(1)
  expect((await sessions.get(next.secret))?.data.n).toBe(1)
  expect(store.counts().listUser).toBe(2)
})

it.each([1, 8, 9, 10, 30])(
  'changes a session once that gets %i new IDs before its change, or after it',
  async count => {
    for (const isBefore of [true, false]) {
      const { sessions, store, manager, made } = await withSessions(1)
      let last = made[0]!
      const renew = async () => {
        for (let times = 0; times < count; times += 1) last = (await manager().regenerate(last, { grace: '1m' }))!
      }
      if (!isBefore) store.next('listUser', proceed => proceed())
      store.next('listUser', async proceed => {
        if (!isBefore) await renew()
        const list = await proceed()
        if (isBefore) await renew()
        return list
      })
      expect(await sessions.updateUserSessions(1, increment)).toBe(1)
      expect((await sessions.get(last.secret))?.data.n).toBe(1)
    }
  },
)

describe('a session that a login begins with the data of another one meanwhile', () => {
  const again = { user, data: (before: Record<string, unknown>) => before }

  it.each([
    ['before its change', 'update', { listUser: 3, update: 2 }],
    ['after its change', 'listUser', { listUser: 2, update: 1 }],
  ] as const)('gets the change once: %s', async (_, verb, counts) => {
    const { sessions, store, manager, made } = await withSessions(1)
    if (verb === 'listUser') store.next(verb, proceed => proceed())
    const pause = store.pause(verb, 'before')
    const updating = sessions.updateUserSessions(1, increment)
    await pause.reached
    const next = await manager().logIn(made[0]!, again)
    pause.resume()
    expect(await updating).toBe(1)
    expect((await sessions.get(next.secret))?.data).toEqual({ index: 0, n: 1 })
    expect(store.counts()).toMatchObject(counts)
  })

  it('gets each of two changes once, and keeps them under another ID', async () => {
    const { sessions, store, manager, made } = await withSessions(1)
    store.next('listUser', proceed => proceed())
    const pause = store.pause('listUser', 'before')
    const updating = sessions.updateUserSessions(1, increment)
    await pause.reached
    expect(await manager().updateUserSessions(1, increment)).toBe(1)
    const next = await manager().logIn(made[0]!.secret, again)
    await manager().update(next, { more: true })
    const last = (await manager().regenerate(next))!
    pause.resume()
    expect(await updating).toBe(1)
    expect((await sessions.get(last.secret))?.data).toEqual({ index: 0, n: 2, more: true })
  })

  it('gets the change where it began with other data', async () => {
    const { sessions, store, manager, made } = await withSessions(1)
    store.next('listUser', proceed => proceed())
    const pause = store.pause('listUser', 'before')
    const updating = sessions.updateUserSessions(1, increment)
    await pause.reached
    const next = await manager().logIn(made[0]!, { user, data: { index: 1 } })
    pause.resume()
    expect(await updating).toBe(2)
    expect((await sessions.get(next.secret))?.data).toEqual({ index: 1, n: 1 })
  })
})

it('makes each change of a session, however many, and lets what is stored grow for the first sixteen only', async () => {
  const { sessions, store, clock, made, counters } = await withSessions(1)
  const sizes: number[] = []
  for (let count = 1; count <= 40; count += 1) {
    expect(await sessions.updateUserSessions(1, data => increment(data))).toBe(1)
    const { data } = (await store.inner.read(made[0]!.key, { now: clock() })) as SessionRecord
    sizes.push(data.length - `${count}`.length)
  }
  expect(await counters()).toEqual([40])
  expect(new Set(sizes.slice(15)).size).toBe(1)
  expect(sizes[15]! - sizes[0]!).toBe(15 * 8)
})

it('makes a change once where more others are made meanwhile than a session keeps the names of', async () => {
  for (const isMoved of [false, true]) {
    const { sessions, store, manager, made } = await withSessions(1)
    let last = made[0]!
    if (isMoved)
      store.next('listUser', async proceed => {
        const list = await proceed()
        last = (await manager().regenerate(last, { grace: '1m' }))!
        return list
      })
    else store.next('listUser', proceed => proceed())
    const pause = store.pause('listUser', 'before')
    const updating = sessions.updateUserSessions(1, increment)
    await pause.reached
    for (let others = 0; others < 16; others += 1) await manager().updateUserSessions(1, increment)
    pause.resume()
    expect(await updating).toBe(1)
    expect((await sessions.get(last.secret))?.data.n).toBe(17)
  }
})

it('reaches a session that is listed under its old ID and its new one once, however long the list is', async () => {
  const { sessions, store, manager, made, counters } = await withSessions(12)
  const listed: SessionRecord[] = await store.inner.listUser('1', 'session', { now: made[0]!.createdAt })
  const old = listed.find(({ key }) => key === made[0]!.key)!
  const next = (await manager().regenerate(made[0]!.secret, { grace: '1m' }))!
  const moved = await store.inner.read(next.key, { now: made[0]!.createdAt })
  // Beside the first, and when others are done.
  for (const place of [1, 11]) {
    const shown: any[] = [old, ...listed.filter(record => record !== old)]
    shown.splice(place, 0, moved)
    store.next('listUser', async () => shown)
    expect(await sessions.updateUserSessions(1, increment)).toBe(12)
  }
  expect(await counters()).toEqual(Array(12).fill(2))
})

it('ends though the user logs in at each moment: after eight lists', async () => {
  const { sessions, store } = await withSessions(0)
  store.every('listUser', async proceed => {
    await sessions.create({ user })
    return proceed()
  })
  expect(await sessions.updateUserSessions(1, increment)).toBe(8)
  expect(store.counts().listUser).toBe(8)
})

it.each([
  ['reaches a session that began meanwhile by a clock that is ahead by what clocks may differ', CLOCK_TOLERANCE, 2],
  ['leaves alone a session that began later than that', CLOCK_TOLERANCE + 1, 1],
] as const)('%s', async (_, ahead, changed) => {
  const { sessions, store, clock, manager } = await withSessions(1)
  store.next('listUser', async proceed => {
    const list = await proceed()
    await manager({ now: clock.skewed(ahead) }).create({ user })
    return list
  })
  expect(await sessions.updateUserSessions(1, increment)).toBe(changed)
})

it('goes on where one session cannot hold the change, which is told when the others have it', async () => {
  const { sessions, counters } = await withSessions(12)
  const change = (data: Record<string, unknown>) => {
    increment(data)
    if ((data.index as number) % 5 === 0) data.large = 'x'.repeat(20_000)
  }
  await expect(sessions.updateUserSessions(1, change)).rejects.toMatchObject({ code: 'ERR_SESSION_DATA' })
  expect(await counters()).toEqual(Array.from({ length: 12 }, (_, index) => (index % 5 === 0 ? 0 : 1)))
})

it('begins no further write after one that the store failed at', async () => {
  const { sessions, store } = await withSessions(40)
  store.every('update', faults.rejects)
  await expect(sessions.updateUserSessions(1, increment)).rejects.toMatchObject({
    code: 'ERR_SESSION_STORE',
    operation: 'update',
  })
  // As many as are under way at once.
  expect(store.counts().update).toBe(8)
  expect(store.counts().listUser).toBe(1)
})
