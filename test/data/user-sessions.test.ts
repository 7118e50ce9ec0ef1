// updateUserSessions: the same keys for all sessions of a user, such as a role.
import { type Session, type SessionManager, SessionStoreError } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { expect, it, vi } from 'vitest'
import { grace, other, setUp, times, user } from '../support/manager-kit.ts'
import { MINUTE } from '../support/test-clock.ts'

const admin = { role: 'admin' }

async function withSessions(count: number, options: object = {}) {
  const at = setUp(options)
  const made: Session[] = []
  for (const index of times(count)) made.push(await at.sessions.create({ user, data: { index } }))
  at.store.reset()
  const roles = async () => Promise.all(made.map(async ({ secret }) => (await at.sessions.get(secret))?.data.role))
  return { ...at, made, roles }
}

it('writes to each live session of the user by one list and one write, to those of no one else, and prolongs none', async () => {
  const { sessions, store, clock, made } = await withSessions(2, { rememberFor: '30d' })
  const tenant = sessions.namespace('acme')
  const others = await sessions.create({ user: other })
  const theirs = await tenant.create({ user })
  await sessions.issueRememberToken(made[0] as never)
  clock.advance(10 * MINUTE)
  store.reset()
  expect(await sessions.updateUserSessions(1, admin)).toBe(2)
  expect(store.counts()).toEqual({ listUser: 1, update: 2 })
  for (const each of made) {
    const { seenAt, expiresAt, csrfToken } = each
    const now = await sessions.get(each.secret, { touch: false })
    expect(now).toMatchObject({ data: { ...each.data, ...admin }, seenAt, expiresAt, csrfToken })
  }
  expect((await sessions.get(others.secret))?.data).toEqual({})
  expect((await tenant.get(theirs.secret))?.data).toEqual({})
  expect(await tenant.updateUserSessions(1n, { role: 'guest' })).toBe(1)
  expect((await sessions.list(1)).map(({ data }) => data.role)).toEqual(['admin', 'admin'])
})

it('asks a bounded number of times where the session gets a new ID before each attempt', async () => {
  vi.useFakeTimers({ toFake: ['performance'] }) // as many attempts as there may be, not as storeTimeout lets them have
  vi.spyOn(Math, 'random').mockReturnValue(0) // no waits between the attempts
  const { sessions, store, manager, made } = await withSessions(1, { idleTimeout: '2h' })
  const node = manager() // another process: its writers and ours do not take turns
  let last: Session | null = made[0]!
  const refused: string[] = []
  store.every('update', async proceed => {
    const next = await node.regenerate(last).catch(error => void refused.push(error.code))
    last = next ?? last
    return proceed()
  })
  expect(await sessions.updateUserSessions(1, admin)).toBe(1)
  const { read = 0, ...others } = store.counts()
  // The node asks once more than it gets, and is refused before it writes.
  expect(others).toEqual({ listUser: 1, update: 33, replace: 32 })
  expect(refused).toEqual(['ERR_SESSION_CONFLICT'])
  expect(read).toBeLessThanOrEqual(65)
  expect((await manager().get(last.secret))?.data.role).toBe('admin')
})

type Renewal = (sessions: SessionManager, session: any) => Promise<any>
it.each<[string, Renewal]>([
  ['gets a new ID', (sessions, session) => sessions.regenerate(session)],
  ['gets a new ID with a grace', (sessions, session) => sessions.regenerate(session, grace)],
  [
    'gets two new IDs',
    async (sessions, session) => sessions.regenerate(await sessions.regenerate(session, grace), grace),
  ],
  ['is updated', (sessions, session) => sessions.update(session, admin)],
])('reaches a session that %s meanwhile, at whichever point', async (_, renew) => {
  for (const point of times(3))
    for (const when of ['before', 'after'] as const) {
      const { sessions, store, manager, made } = await withSessions(2)
      for (const _ of times(point)) store.next('any', proceed => proceed())
      const pause = store.pause('any', when)
      const updating = sessions.updateUserSessions(1, { n: 7 })
      await pause.reached
      const renewed = await renew(manager(), made[0])
      pause.resume()
      expect(await updating, `${when} call ${point + 1}`).toBe(2)
      for (const { secret } of [renewed, made[1]])
        expect((await manager().get(secret))?.data.n, `${when} call ${point + 1}`).toBe(7)
    }
})

it('counts a session once that is listed under its old ID and its new one', async () => {
  const { sessions, store, made } = await withSessions(2)
  // As a store answers that lists in pieces: what it read first is no more when it reads the rest.
  store.next('listUser', async proceed => {
    const before = await proceed()
    await sessions.regenerate(made[0]!, grace)
    return [...(await proceed()), before.find(({ key }: { key: string }) => key === made[0]!.key)]
  })
  expect(await sessions.updateUserSessions(1, admin)).toBe(2)
  for (const { data } of await sessions.list(1)) expect(data.role).toBe('admin')
})

it('sets no key in the session of another user who has logged in there meanwhile, as connect allows', async () => {
  const { sessions, store, clock, made } = await withSessions(1)
  const record = (await store.inner.read(made[0]!.key, { now: clock() })) as SessionRecord
  store.next('update', async proceed => {
    const next = { ...record, key: `${record.key.slice(0, 3)}${'x'.repeat(43)}`, userId: '2', writeId: 'another1' }
    const forward = { salt: '', until: clock() }
    await store.inner.replace(record.key, record.version, next, { forward }, { now: clock() })
    return proceed()
  })
  expect(await sessions.updateUserSessions(1, admin)).toBe(0)
  expect((await sessions.list(2)).map(({ data }) => data.role)).toEqual([undefined])
})

it('loses nothing of what others write beside it', async () => {
  const { sessions, manager, made } = await withSessions(1)
  const increment = (data: any) => void data.index++
  const writes = [sessions, manager()].flatMap(each =>
    times(5).flatMap(() => [each.updateUserSessions(1, admin), each.update(made[0]!, increment)] as Promise<unknown>[]),
  )
  await Promise.all(writes)
  expect((await sessions.get(made[0]!.secret))?.data).toEqual({ index: 10, ...admin })
})

it('does not count a session that ends meanwhile, and revives none', async () => {
  const { sessions, store, made } = await withSessions(1)
  const pause = store.pause('update', 'before')
  const updating = sessions.updateUserSessions(1, admin)
  await pause.reached
  await sessions.destroy(made[0]!)
  pause.resume()
  expect(await updating).toBe(0)
  expect(await sessions.list(1)).toEqual([])
})

it('removes a key that is set to undefined', async () => {
  const { sessions, made } = await withSessions(1)
  expect(await sessions.updateUserSessions(1, { index: undefined, ...admin })).toBe(1)
  expect((await sessions.get(made[0]!.secret))?.data).toEqual(admin)
})

it('does no harm when it is repeated, and lets what is stored grow no further', async () => {
  const { sessions, store, clock, made, roles } = await withSessions(2)
  const stored = async () => ((await store.inner.read(made[0]!.key, { now: clock() })) as { data: string }).data
  await sessions.updateUserSessions(1, admin)
  const once = await stored()
  for (const _ of times(5)) expect(await sessions.updateUserSessions(1, admin)).toBe(2)
  expect(await stored()).toBe(once)
  expect(await roles()).toEqual(['admin', 'admin'])
})

it('goes on where one session cannot hold the keys, which is told when the others have them', async () => {
  const { sessions, made, roles } = await withSessions(12, { maxDataBytes: 100 })
  for (const index of [0, 5, 10]) await sessions.update(made[index]!, { text: 'x'.repeat(75) })
  await expect(sessions.updateUserSessions(1, admin)).rejects.toMatchObject({ code: 'ERR_SESSION_DATA' })
  expect(await roles()).toEqual(made.map((_, index) => (index % 5 === 0 ? undefined : 'admin')))
})

it.each([
  [1, 'not-applied'],
  [40, 'unknown'],
])('begins no further write of %i after one that the store refused, and says: %s', async (count, outcome) => {
  const { sessions, store } = await withSessions(count)
  store.every('update', () => Promise.reject(new SessionStoreError('update', 'not-applied', 'down')))
  await expect(sessions.updateUserSessions(1, admin)).rejects.toMatchObject({ operation: 'update', outcome })
  // As many as are under way at once.
  expect(store.counts()).toEqual({ listUser: 1, update: Math.min(count, 8) })
})

it('refuses what is not keys to set, such as a function: a repeated call would run it again', async () => {
  const { sessions } = await withSessions(1)
  for (const wrong of [undefined, null, 'admin', [], 7, () => {}])
    await expect(sessions.updateUserSessions(1, wrong as never)).rejects.toThrow(
      'updateUserSessions: expected keys to set, got ',
    )
  await expect(sessions.updateUserSessions('1' as never, {})).rejects.toThrow('user ID: expected')
})

it('leaves alone a session that the password version of the application refuses', async () => {
  const { sessions } = setUp({ getPasswordVersion: () => 2 })
  for (const passwordVersion of [1, 2]) await sessions.create({ user: { ...user, passwordVersion } })
  expect(await sessions.updateUserSessions(1, admin)).toBe(1)
})
