// The end of a remember-me series beside what else goes on: other devices, other requests of its browser, other processes,
// and records that no manager of ours wrote.

import { openVisit } from 'coatcheck/custom-server'
import { CLOCK_TOLERANCE } from 'coatcheck/custom-store'
import { describe, expect, it } from 'vitest'
import { BarrierStore, faults } from '../support/barrier-store.ts'
import { type At, type Node, setUpSeries as setUp, thefts, visit, WAYS } from './ending-series.ts'
import { onlyHost } from '../support/only-host.ts'
import { times, user } from '../support/remembered.ts'
import { MINUTE } from '../support/test-clock.ts'

it('the other devices of the user go on, also where a theft would end them', async () => {
  for (const [name, { end }] of Object.entries(WAYS)) {
    if (name.includes('theft') || name.includes('stolen')) continue
    const at = await setUp({ onTheft: 'invalidate-user' })
    at.clock.advance(1)
    const other = await at.node().create({ user })
    const token = await at.node().issueRememberToken(other)
    await end(at.node(), at)
    expect((await at.node().get(other.secret))?.key, name).toBe(other.key)
    expect(await at.node().redeemRememberToken(token), name).not.toBeNull()
  }
})

it('a series that no manager of ours wrote ends too, and hinders the end of no other', async () => {
  for (const [name, { end }] of Object.entries(WAYS)) {
    if (name.includes('stolen')) continue
    const at = await setUp()
    const [mine] = await at.store.listUser('1', 'remember', { now: at.clock() })
    const foreign = { ...mine!, key: mine!.key.replace(/.{4}$/, 'AAAA') as never, data: 'null', writeId: 'AAAA' }
    await at.store.create(foreign, { now: at.clock() })
    await end(at.node(), at)
    expect(
      (await at.left()).map(({ key }) => key),
      name,
    ).toEqual([foreign.key])
  }
  // The session that asked for the token leads to its series no more: what says so cannot be read.
  for (const [name, { end }] of Object.entries(WAYS)) {
    if (name.includes('stolen') || name.includes('asked')) continue
    for (const place of times(8)) {
      const at = await setUp()
      const [mine] = await at.store.listUser('1', 'remember', { now: at.clock() })
      const { key, version, seenAt, expiresAt } = mine!
      const change = { data: 'null', seenAt, expiresAt, writeId: 'AAAA' }
      expect(await at.store.update(key, version, change, { now: at.clock() })).toBe('updated')
      await end(at.failing(place, faults.rejects), at).catch(() => {})
      await end(at.node(), at)
      expect(await at.left(), `${name}, failing at call ${place}`).toEqual([])
    }
  }
})

it('a series without a user, which no manager of ours wrote, is removed, and the sessions of no user are asked for', async () => {
  const at = await setUp()
  const barrier = BarrierStore.over(at.store)
  barrier.next('read', proceed => proceed().then(record => ({ ...record, userId: null })))
  await at.node(barrier).revokeRememberToken(at.begun.token!)
  expect(barrier.counts().listUser).toBeUndefined()
  expect(await at.node().redeemRememberToken(at.begun.token!)).toBeNull()
})

it('revoking costs four calls, where no tokens are given too: another node may give them', async () => {
  for (const remember of [undefined, '30d']) {
    const at = await setUp()
    const barrier = BarrierStore.over(at.store)
    const sessions = at.node(barrier, { rememberFor: remember })
    const session = await sessions.create({ user })
    barrier.reset()
    await sessions.revoke(1, session.key)
    expect(barrier.counts()).toEqual({ read: 1, delete: 1, listUser: 2 })
  }
})

it('a service without remember-me ends the tokens of its sessions too', async () => {
  for (const [name, { end }] of Object.entries(WAYS)) {
    if (name.includes('stolen')) continue
    const at = await setUp()
    await end(at.node(at.store, { rememberFor: undefined }), at)
    expect(await at.left(), name).toEqual([])
  }
})

it('a token that the session asks for while it is revoked ends too', async () => {
  const at = await setUp()
  const barrier = BarrierStore.over(at.store)
  const asking = await at.node().create({ user })
  const pause = barrier.pause('delete', 'before')
  const ending = at.node(barrier).revoke(1, asking.key)
  await pause.reached
  const token = await at.node().issueRememberToken(asking)
  pause.resume()
  await ending
  expect(await at.node().redeemRememberToken(token)).toBeNull()
})

describe('a request of that browser that comes later, with the token alone', () => {
  const late = (sessions: Node, { begun }: At) =>
    openVisit(sessions, {
      method: 'POST',
      secure: true,
      header: onlyHost,
      cookie: `remember_token=${begun.token}`,
    })
  const logOuts = Object.entries(WAYS).filter(([name]) => name === 'logout' || name.startsWith('forget'))
  it.each(logOuts)('begins nothing after a %s', async (_, { end }) => {
    const at = await setUp()
    const sessions = at.node()
    await end(sessions, at)
    await expect(late(sessions, at).create()).rejects.toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
    expect(await late(sessions, at).update({ n: 1 })).toBeNull()
    for await (const session of sessions.all()) expect(session.key).toBe(at.asked.key)
  })

  it('begins as a visitor after it was revoked from another device', async () => {
    const at = await setUp()
    const sessions = at.node()
    await sessions.revoke(1, at.begun.session.key)
    const session = await late(sessions, at).create()
    expect((await sessions.get(session.secret))?.user).toBeNull()
  })

  it('is a visitor if the user is at a limit', async () => {
    const at = await setUp()
    const sessions = at.node(at.store, { limit: { max: 1, onLimit: 'refuse' } })
    const visitor = await late(sessions, at).create()
    expect((await sessions.get(visitor.secret))?.user).toBeNull()
  })
})

it('a theft that another call overtakes is told once at most, and leaves nothing', async () => {
  const others = Object.entries(WAYS).filter(([name]) => /^(?:forget|a login|revoking the)/.test(name))
  expect(others).toHaveLength(4)
  for (const [name, { end }] of others)
    for (const verb of ['listUser', 'delete'] as const) {
      const at = await setUp()
      await visit(at)
      const barrier = BarrierStore.over(at.store)
      const paused = barrier.pause(verb, 'before')
      const stolen = at.node(barrier).redeemRememberToken(at.first.token!)
      await paused.reached
      await end(at.node(), at)
      paused.resume()
      expect(await stolen, name).toBeNull()
      expect(thefts(at.events).length, name).toBeLessThan(2)
      expect(await at.left(), name).toEqual([])
    }
})

it('a series that is written to while it ends has ended afterwards', async () => {
  const at = await setUp()
  const sessions = at.failing(1, async proceed => {
    // Between the read of the series and the look for its sessions: a visit, and a rotation of the token.
    await at.node().get(at.begun.session.secret)
    await at.node().redeemRememberToken(at.begun.token!)
    return proceed()
  })
  await sessions.revokeRememberToken(at.begun.token!)
  expect(await at.left()).toEqual([])
})

describe('a series that begins a session in another process while it ends', () => {
  /** Its sessions are listed, and it is not deleted yet. */
  const meeting = async (options: object = {}) => {
    const at = await setUp(options)
    const barrier = BarrierStore.over(at.store)
    barrier.next(Object.hasOwn(options, 'onTheft') ? 'deleteUser' : 'listUser', async proceed => {
      const answer = await proceed()
      expect(await at.node().redeemRememberToken(at.begun.token!)).not.toBeNull()
      return answer
    })
    return { ...at, barrier }
  }

  it('ends with that session, whatever ends it', async () => {
    for (const [name, { options, before, end }] of Object.entries(WAYS)) {
      // The first list is of the series of the device.
      if (name.startsWith('revoking')) continue
      const at = await meeting(options)
      await before?.(at)
      await end(at.node(at.barrier), at)
      expect(at.barrier.calls.length, name).toBeGreaterThan(3)
      expect(await at.left(), name).toEqual([])
    }
  })

  it('is found by a repeated call where the store failed after that', async () => {
    const at = await meeting()
    at.barrier.next('delete', faults.rejects)
    await expect(at.node(at.barrier).revokeRememberToken(at.begun.token!)).rejects.toMatchObject({
      operation: 'delete',
    })
    await at.node().revokeRememberToken(at.begun.token!)
    expect(await at.left()).toEqual([])
  })

  it('leaves that session where the store fails in the look after the series is deleted', async () => {
    const at = await meeting()
    at.barrier.next('listUser', faults.rejects)
    await expect(at.node(at.barrier).revokeRememberToken(at.begun.token!)).rejects.toMatchObject({
      operation: 'listUser',
      outcome: 'unknown',
    })
    await at.node().revokeRememberToken(at.begun.token!)
    expect((await at.left()).map(({ kind }) => kind)).toEqual(['session'])
    await at.node().invalidateUser(1)
    expect(await at.left()).toEqual([])
  })
})

it('where two processes end a series at once and fail, a third finds what is left of it', async () => {
  const at = await setUp()
  for (const _ of times(2))
    await expect(at.failing(2, faults.rejects).revokeRememberToken(at.begun.token!)).rejects.toMatchObject({
      operation: 'delete',
    })
  expect(await at.left()).not.toEqual([])
  await at.node().revokeRememberToken(at.begun.token!)
  expect(await at.left()).toEqual([])
})

it('costs four store calls, and one for each session that began with it', async () => {
  const at = await setUp()
  const barrier = BarrierStore.over(at.store)
  await at.node(barrier).revokeRememberToken(at.begun.token!)
  expect(barrier.counts()).toEqual({ read: 1, listUser: 2, delete: 3 })
})

it('an end that failed twice is finished by the third call', async () => {
  const at = await setUp()
  for (const _ of times(2)) {
    const barrier = BarrierStore.over(at.store)
    barrier.next('listUser', faults.rejects)
    await expect(at.node(barrier).revokeRememberToken(at.begun.token!)).rejects.toMatchObject({ operation: 'listUser' })
  }
  expect(await at.left()).not.toEqual([])
  await at.node().revokeRememberToken(at.begun.token!)
  expect(await at.left()).toEqual([])
})

it('a token that is presented again after its answer was lost ends what that began, as revoked, and nothing later', async () => {
  const at = await setUp()
  at.clock.advance(MINUTE + CLOCK_TOLERANCE + 1)
  const again = (await at.node().redeemRememberToken(at.first.token!))!
  const ended = at.events.filter(({ type }) => type === 'destroyed')
  expect(ended.map(({ reason }) => reason)).toEqual(ended.map(() => 'revoked'))
  expect(ended.map(({ key }) => key)).toContain(at.begun.session.key)
  expect(await at.node().get(again.session.secret)).not.toBeNull()
  // A parallel request, once the browser has used that session.
  expect((await at.node().redeemRememberToken(at.first.token!))?.session.key).toBe(again.session.key)
  expect(await at.node().get(again.session.secret)).not.toBeNull()
})

it('all that a revoked device had is told as revoked', async () => {
  for (const of of [({ asked }: At) => asked.key, ({ begun }: At) => begun.session.key]) {
    const at = await setUp()
    await at.node().revoke(1, of(at))
    const ended = at.events.filter(({ type }) => type === 'destroyed')
    expect(ended.length).toBeGreaterThan(1)
    expect(ended.map(({ reason }) => reason)).toEqual(ended.map(() => 'revoked'))
  }
})

it('a stolen token that comes twice at once is one theft, also where the other is done before the series is deleted', async () => {
  const at = await setUp()
  await visit(at)
  const barrier = BarrierStore.over(at.store)
  const steal = (sessions: Node) => sessions.redeemRememberToken(at.first.token!)
  barrier.next('listUser', async proceed => {
    expect(await steal(at.node())).toBeNull()
    return proceed()
  })
  expect(await steal(at.node(barrier))).toBeNull()
  expect(thefts(at.events)).toHaveLength(1)
})
