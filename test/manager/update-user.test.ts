// One change for all sessions of a user: what it asks of the store, and what one session's trouble is to the others.
import { CLOCK_TOLERANCE, type Session, type SessionRecord } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it } from 'vitest'
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
  expect(await sessions.updateUser(1, increment)).toBe(3)
  expect(store.counts()).toEqual({ listUser: 2, update: 3 })
  store.reset()
  expect(await sessions.updateUser(2, increment)).toBe(0)
  expect(store.counts()).toEqual({ listUser: 1 })
})

it('leaves alone what got a new ID after its change, and lists no third time for it', async () => {
  const { sessions, store, manager, made } = await withSessions(1)
  store.next('listUser', proceed => proceed())
  const pause = store.pause('listUser', 'before')
  const updating = sessions.updateUser(1, increment)
  await pause.reached
  const next = (await manager().regenerate(made[0]!.secret))!
  pause.resume()
  expect(await updating).toBe(1)
  expect((await sessions.get(next.secret))?.data.n).toBe(1)
  expect(store.counts().listUser).toBe(2)
})

it('reaches a session that is listed under its old ID and its new one once, however long the list is', async () => {
  const { sessions, store, manager, made, counters } = await withSessions(12)
  const listed: SessionRecord[] = await store.inner.listUser('1', 'session', { now: made[0]!.createdAt })
  const old = listed.find(({ key }) => key === made[0]!.key)!
  const next = (await manager().rotate(made[0]!.secret, { grace: '1m' }))!
  const moved = await store.inner.read(next.key, { now: made[0]!.createdAt })
  // Beside the first, and when others are done.
  for (const place of [1, 11]) {
    const shown: any[] = [old, ...listed.filter(record => record !== old)]
    shown.splice(place, 0, moved)
    store.next('listUser', async () => shown)
    expect(await sessions.updateUser(1, increment)).toBe(12)
  }
  expect(await counters()).toEqual(Array(12).fill(2))
})

it('ends though the user logs in at each moment: after eight lists', async () => {
  const { sessions, store } = await withSessions(0)
  store.every('listUser', async proceed => {
    await sessions.create({ user })
    return proceed()
  })
  expect(await sessions.updateUser(1, increment)).toBe(8)
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
  expect(await sessions.updateUser(1, increment)).toBe(changed)
})

it('goes on where one session cannot hold the change, which is told when the others have it', async () => {
  const { sessions, counters } = await withSessions(12)
  const change = (data: Record<string, unknown>) => {
    increment(data)
    if ((data.index as number) % 5 === 0) data.large = 'x'.repeat(20_000)
  }
  await expect(sessions.updateUser(1, change)).rejects.toMatchObject({ code: 'ERR_SESSION_DATA' })
  expect(await counters()).toEqual(Array.from({ length: 12 }, (_, index) => (index % 5 === 0 ? 0 : 1)))
})

it('begins no further write after one that the store failed at', async () => {
  const { sessions, store } = await withSessions(40)
  store.every('update', faults.rejects)
  await expect(sessions.updateUser(1, increment)).rejects.toMatchObject({
    code: 'ERR_SESSION_STORE',
    operation: 'update',
  })
  // As many as are under way at once.
  expect(store.counts().update).toBe(8)
  expect(store.counts().listUser).toBe(1)
})
