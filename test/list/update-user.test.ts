// The same keys for all sessions of a user: what it asks of the store, and what one session's trouble is to the others.
import type { Session } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it } from 'vitest'
import { barrierManagers } from '../support/barrier-managers.ts'
import { faults } from '../support/barrier-store.ts'

const user = { id: 1, name: 'ada' }
const admin = { role: 'admin' }

async function withSessions(count: number, options: object = {}) {
  const at = barrierManagers(new MemoryStore(), options)
  const made: Session[] = []
  for (let index = 0; index < count; index += 1) made.push(await at.sessions.create({ user, data: { index } }))
  at.store.reset()
  const roles = async () => Promise.all(made.map(async ({ secret }) => (await at.sessions.get(secret))?.data.role))
  return { ...at, made, roles }
}

it('costs one list, and a write for each session', async () => {
  const { sessions, store } = await withSessions(3)
  expect(await sessions.updateUserSessions(1, admin)).toBe(3)
  expect(store.counts()).toEqual({ listUser: 1, update: 3 })
  store.reset()
  expect(await sessions.updateUserSessions(2, admin)).toBe(0)
  expect(store.counts()).toEqual({ listUser: 1 })
})

it.each([1, 8, 9, 10, 30])('reaches a session that gets %i new IDs before its keys are set', async count => {
  const { sessions, store, manager, made } = await withSessions(1)
  let last = made[0]!
  store.next('listUser', async proceed => {
    const list = await proceed()
    for (let times = 0; times < count; times += 1) last = (await manager().regenerate(last))!
    return list
  })
  expect(await sessions.updateUserSessions(1, admin)).toBe(1)
  expect((await sessions.get(last.secret))?.data).toEqual({ index: 0, role: 'admin' })
})

it('removes a key that is set to undefined', async () => {
  const { sessions, made } = await withSessions(1)
  expect(await sessions.updateUserSessions(1, { index: undefined, role: 'admin' })).toBe(1)
  expect((await sessions.get(made[0]!.secret))?.data).toEqual(admin)
})

it('does no harm when it is repeated, and lets what is stored grow no further', async () => {
  const { sessions, store, clock, made, roles } = await withSessions(2)
  const stored = async () => ((await store.inner.read(made[0]!.key, { now: clock() })) as { data: string }).data
  await sessions.updateUserSessions(1, admin)
  const once = await stored()
  for (let times = 0; times < 5; times += 1) expect(await sessions.updateUserSessions(1, admin)).toBe(2)
  expect(await stored()).toBe(once)
  expect(await roles()).toEqual(['admin', 'admin'])
})

it('goes on where one session cannot hold the keys, which is told when the others have them', async () => {
  const { sessions, made, roles } = await withSessions(12, { maxDataBytes: 100 })
  for (const index of [0, 5, 10]) await sessions.update(made[index]!, { text: 'x'.repeat(75) })
  await expect(sessions.updateUserSessions(1, admin)).rejects.toMatchObject({ code: 'ERR_SESSION_DATA' })
  expect(await roles()).toEqual(made.map((_, index) => (index % 5 === 0 ? undefined : 'admin')))
})

it('begins no further write after one that the store failed at', async () => {
  const { sessions, store } = await withSessions(40)
  store.every('update', faults.rejects)
  await expect(sessions.updateUserSessions(1, admin)).rejects.toMatchObject({
    code: 'ERR_SESSION_STORE',
    operation: 'update',
  })
  // As many as are under way at once.
  expect(store.counts()).toEqual({ listUser: 1, update: 8 })
})
