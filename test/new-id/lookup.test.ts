// Where an ID leads: over new IDs, to what the store answers, and to nothing.
import { expect, it } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { grace, setUp, times, user } from '../support/manager-kit.ts'

it('an old ID leads on over eight new IDs that a late request has missed, and over no more', async () => {
  const { sessions } = setUp()
  const ids = [(await sessions.create()).secret]
  for (const _ of times(9)) ids.push((await sessions.regenerate(ids.at(-1)!, grace))!.secret)
  expect((await sessions.get(ids[1]))?.secret).toBe(ids[9])
  expect(await sessions.get(ids[0])).toBeNull()
})

it('an old ID leads nowhere if the forward was not made from it: a reader of the store cannot write a way to a session', async () => {
  const { sessions, store, clock } = setUp()
  const old = await sessions.create()
  await sessions.regenerate(old, grace)
  const target = await sessions.create({ user })
  const forward: any = await store.inner.read(old.key, { now: clock() })
  store.every('read', async (proceed, [key]) => (key === old.key ? { ...forward, movedTo: target.key } : proceed()))
  store.reset()
  expect(await sessions.get(old.secret)).toBeNull()
  expect(store.counts()).toEqual({ read: 1 })
})

it('forwards that lead in a circle lead nowhere', async () => {
  const { sessions, store } = setUp()
  const [one, two] = [await sessions.create({ user }), await sessions.create({ user })]
  const forward = (movedTo: string) => ({ movedTo, salt: '', until: 0 })
  store.every('read', (_, [key]) => forward(key === one.key ? two.key : one.key))
  store.reset()
  expect(await sessions.revoke(1, one.key)).toBe(false)
  expect(store.counts()).toEqual({ read: 2 })
})

it.each<[string, (record: any, now: number) => object, boolean]>([
  ['a session', record => record, true],
  ['a remember-me series', record => ({ ...record, kind: 'remember' }), false],
  ['one that has expired by the clock of the manager', (record, now) => ({ ...record, expiresAt: now }), false],
  ['one that expires a moment later', (record, now) => ({ ...record, expiresAt: now + 1 }), true],
])('a store that answers %s: whether there is a session', async (_, change, isFound) => {
  const { sessions, store, clock } = setUp()
  const session = await sessions.create({ user })
  const record = await store.inner.read(session.key, { now: 0 })
  store.every('read', faults.answers(change(record, clock())))
  expect((await sessions.get(session.secret)) !== null).toBe(isFound)
})

it('a user ID of another kind is told, and the session stays: a deployment with wrong `userIds` deletes none', async () => {
  const { sessions, store, events, manager } = setUp()
  const texts = manager({ userIds: 'string' })
  const session = await texts.create({ user: { id: 'ada@example.com' as never, name: 'ada' } })
  events.length = 0
  store.reset()
  expect(await sessions.get(session.secret)).toBeNull()
  expect(events).toEqual([{ type: 'corrupt-record', key: session.key, cause: "user ID is not of kind 'bigint'" }])
  expect(store.counts()).toEqual({ read: 1 })
  expect(await texts.get(session.secret)).not.toBeNull()
})
