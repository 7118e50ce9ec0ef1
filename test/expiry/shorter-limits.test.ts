// A service that lives on with shorter time limits, while another one on the same store keeps the longer ones.
import { SessionManager } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { BarrierStore } from '../support/barrier-store.ts'
import { times } from '../support/manager-kit.ts'
import { HOUR, MINUTE, testClock } from '../support/test-clock.ts'

const DAY = 24 * HOUR
const user = { id: 'ada', name: 'ada' }
type Node = SessionManager<Record<string, unknown>, 'string'>

function setUp(limits: object = { idleTimeout: '15m', absoluteTimeout: '12h' }) {
  const store = BarrierStore.over(new MemoryStore())
  const now = testClock()
  const node = (more: object): Node =>
    new SessionManager({ store, now, userIds: 'string', sweepInterval: false, ...more })
  const before = node({ idleTimeout: '30d', absoluteTimeout: '90d', rememberFor: '90d' })
  return { store, clock: now, node, before, after: node(limits) }
}

describe('a session that began with longer time limits', () => {
  it('is over where it was idle for longer than today’s limit, and nothing is written or deleted by that', async () => {
    for (const userOf of [user, null]) {
      const { store, clock, before, after } = setUp()
      const session = await (userOf === null ? before.create() : before.create({ user: userOf }))
      clock.advance(15 * MINUTE - 1)
      expect((await after.get(session.secret, { touch: false }))?.expiresAt).toBe(clock() + 1)
      clock.advance(1)
      store.reset()
      expect(await after.get(session.secret)).toBeNull()
      expect(store.counts()).toEqual({ read: 1 })
      expect(await before.get(session.secret, { touch: false })).toMatchObject({
        expiresAt: clock() - 15 * MINUTE + 30 * DAY,
      })
    }
  })

  it('goes on as long as it is used, and no longer than today’s absolute time', async () => {
    const { clock, before, after } = setUp()
    const session = await before.create({ user })
    const end = clock() + 12 * HOUR
    for (const _ of times(71)) {
      clock.advance(10 * MINUTE)
      expect((await after.get(session.secret))?.absoluteExpiresAt).toBe(end)
    }
    clock.advance(10 * MINUTE)
    expect(await after.get(session.secret)).toBeNull()
    expect(await before.get(session.secret)).not.toBeNull()
  })

  it('lives again once it was used where the limits are longer', async () => {
    const { clock, node, after } = setUp()
    const other = node({ idleTimeout: '24h', absoluteTimeout: '30d' })
    const session = await other.create({ user })
    clock.advance(4 * HOUR)
    expect(await after.get(session.secret)).toBeNull()
    expect(await other.get(session.secret)).not.toBeNull()
    expect(await after.get(session.secret)).not.toBeNull()
  })

  it('is not written to: no new ID, and no keys for all sessions of its user', async () => {
    const { clock, before, after } = setUp()
    const session = await before.create({ user })
    clock.advance(HOUR)
    expect(await after.regenerate(session.secret)).toBeNull()
    expect(await after.updateUserSessions('ada', { role: 'admin' })).toBe(0)
    expect((await before.get(session.secret))?.data).toEqual({})
  })

  it('is in no list, and takes no place under the limit', async () => {
    const { clock, before, node } = setUp()
    await before.create({ user })
    clock.advance(HOUR)
    const after = node({ idleTimeout: '15m', absoluteTimeout: '12h', limit: { max: 1, onLimit: 'refuse' } })
    expect(await after.list('ada')).toEqual([])
    const login = await after.create({ user })
    expect((await after.list('ada')).map(({ key }) => key)).toEqual([login.key])
    await expect(after.create({ user })).rejects.toMatchObject({ code: 'ERR_SESSION_LIMIT' })
  })

  it('is counted, walked over and ended as what is stored', async () => {
    const { clock, before, after } = setUp()
    const session = await before.create({ user })
    clock.advance(HOUR)
    expect(await after.count()).toBe(1)
    const walked = []
    for await (const { key } of after.all()) walked.push(key)
    expect(walked).toEqual([session.key])
    expect(await after.revoke('ada', session.key)).toBe(true)
    await before.create({ user })
    clock.advance(HOUR)
    expect(await after.invalidateAll()).toBe(1)
  })
})

it('a session that began with shorter time limits may be idle for longer from its next use on, and lives as long as it was to', async () => {
  const { clock, node } = setUp()
  const session = await node({ idleTimeout: '30m', absoluteTimeout: '12h' }).create({ user })
  const after = node({ idleTimeout: '2h', absoluteTimeout: '24h' })
  clock.advance(29 * MINUTE)
  expect(await after.get(session.secret)).toMatchObject({
    expiresAt: clock() + 2 * HOUR,
    absoluteExpiresAt: session.absoluteExpiresAt,
  })
})

it('a remember token and what it began are held to today’s limits too, a session that was never used as well', async () => {
  const { clock, node, before } = setUp()
  const session = await before.create({ user })
  const token = await before.issueRememberToken(session)
  const issued = clock()
  const after = node({ idleTimeout: '15m', absoluteTimeout: '12h', rememberFor: '30d' })
  clock.advance(DAY)
  const first = (await before.redeemRememberToken(token))!
  clock.advance(15 * MINUTE)
  expect(await after.get(first.session.secret)).toBeNull()
  const second = (await after.redeemRememberToken(first.token))!
  expect(second.expiresAt).toBe(issued + 30 * DAY)
  clock.advance(29 * DAY - 15 * MINUTE)
  expect(await after.redeemRememberToken(second.token)).toBeNull()
  expect(await before.redeemRememberToken(second.token)).not.toBeNull()
  expect(await node({}).redeemRememberToken(second.token)).toBeNull()
})
