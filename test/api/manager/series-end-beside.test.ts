// The end of a remember-me series beside what else goes on: other devices, other requests of its browser, other processes,
// and records that no manager of ours wrote.

import { openVisit } from 'coatcheck/custom-server'
import { CLOCK_TOLERANCE } from 'coatcheck/custom-store'
import { describe, expect, it } from 'vitest'
import { BarrierStore, faults } from '../../support/barrier-store.ts'
import { type At, type Node, setUpSeries as setUp, thefts, visit, WAYS } from '../../support/ending-series.ts'
import { times, user } from '../../support/remembered.ts'
import { MINUTE } from '../../support/test-clock.ts'

it('two requests that finish the end of one series find that it is over', async () => {
  const at = await setUp()
  await expect(at.failing(2, faults.rejects).revokeRememberToken(at.begun.token!)).rejects.toMatchObject({
    operation: 'listUser',
  })
  // The one has read where the series stands now, when the other finishes its end.
  const late = at.failing(1, async proceed => {
    expect(await at.node().redeemRememberToken(at.token)).toBeNull()
    return proceed()
  })
  expect(await late.redeemRememberToken(at.token)).toBeNull()
  expect(await at.left()).toEqual([])
})

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
    await at.store.create(foreign, {}, { now: at.clock() })
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

it('revoking costs two calls where no tokens are given, and two more where they are', async () => {
  for (const remember of [undefined, '30d']) {
    const at = await setUp()
    const barrier = BarrierStore.over(at.store)
    const sessions = at.node(barrier, { rememberFor: remember })
    const session = await sessions.create({ user })
    barrier.reset()
    await sessions.revoke(1, session.key)
    expect(barrier.counts()).toEqual({ read: 1, delete: 1, ...(remember && { listUser: 2 }) })
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
      header: () => null,
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

it('a theft is told once, whatever else ends the series between its mark and its end', async () => {
  const others = Object.entries(WAYS).filter(([name]) => /^(?:forget|a login|revoking the)/.test(name))
  expect(others).toHaveLength(4)
  for (const [name, { end }] of others) {
    const at = await setUp()
    await visit(at)
    const barrier = BarrierStore.over(at.store)
    const marked = barrier.pause('listUser', 'before')
    const other = BarrierStore.over(at.store)
    let recalled: Promise<unknown> | null = null
    // It has looked at the series, and the thief moves it first.
    other.next('replace', async proceed => {
      recalled = at.node(barrier).redeemRememberToken(at.first.token!)
      await marked.reached
      return proceed()
    })
    await end(at.node(other), at)
    marked.resume()
    expect(await recalled, name).toBeNull()
    expect(thefts(at.events), name).toHaveLength(1)
    expect(await at.left(), name).toEqual([])
  }
})

it('a series that is written to while it ends has ended afterwards', async () => {
  const at = await setUp()
  const sessions = at.failing(1, async proceed => {
    // Between the look at the series and its move: a visit, and a rotation of the token.
    await at.node().get(at.begun.session.secret)
    await at.node().redeemRememberToken(at.begun.token!)
    return proceed()
  })
  await sessions.revokeRememberToken(at.begun.token!)
  expect(await at.left()).toEqual([])
})

describe('a series that another process writes to while it ends', () => {
  /** The process that ends it finds a newer version; from there on the test says what its calls come to. */
  const meeting = async () => {
    const at = await setUp()
    const barrier = BarrierStore.over(at.store)
    const other: { answer: Awaited<ReturnType<Node['redeemRememberToken']>> } = { answer: null }
    barrier.next('replace', async proceed => {
      other.answer = await at.node().redeemRememberToken(at.begun.token!)
      return proceed()
    })
    return { ...at, barrier, other }
  }

  it('begins no session any more once the sessions that began with it are listed', async () => {
    const at = await meeting()
    at.barrier.next('listUser', async proceed => {
      const listed = await proceed()
      expect(await at.node().redeemRememberToken(at.other.answer!.token!)).toBeNull()
      return listed
    })
    await at.node(at.barrier).revokeRememberToken(at.begun.token!)
    expect(at.other.answer).not.toBeNull()
    expect(await at.left()).toEqual([])
  })

  it('is found by a repeated call where the store failed after that', async () => {
    const at = await meeting()
    at.barrier.next('listUser', faults.rejects)
    await expect(at.node(at.barrier).revokeRememberToken(at.begun.token!)).rejects.toMatchObject({
      operation: 'listUser',
    })
    await at.node().revokeRememberToken(at.begun.token!)
    expect(await at.left()).toEqual([])
  })

  it('is one theft where it has ended before it is read again', async () => {
    const at = await setUp()
    await visit(at)
    const barrier = BarrierStore.over(at.store)
    const steal = (sessions: Node) => sessions.redeemRememberToken(at.first.token!)
    barrier.next('replace', async proceed => {
      await at.node().redeemRememberToken(at.begun.token!)
      const outcome = await proceed()
      await steal(at.node())
      return outcome
    })
    expect(await steal(at.node(barrier))).toBeNull()
    expect(thefts(at.events)).toHaveLength(1)
    expect(await at.left()).toEqual([])
  })
})

it('where two processes end a series at once and fail, a third finds what is left of it', async () => {
  const at = await setUp()
  const barrier = BarrierStore.over(at.store)
  barrier.next('replace', async proceed => {
    await expect(at.failing(2, faults.rejects).revokeRememberToken(at.begun.token!)).rejects.toMatchObject({
      operation: 'listUser',
    })
    return proceed()
  })
  barrier.next('listUser', faults.rejects)
  await expect(at.node(barrier).revokeRememberToken(at.begun.token!)).rejects.toMatchObject({ operation: 'listUser' })
  expect(await at.left()).not.toEqual([])
  await at.node().revokeRememberToken(at.begun.token!)
  expect(await at.left()).toEqual([])
})

it('costs four store calls, and one for each session that began with it', async () => {
  const at = await setUp()
  const barrier = BarrierStore.over(at.store)
  await at.node(barrier).revokeRememberToken(at.begun.token!)
  expect(barrier.counts()).toEqual({ read: 1, replace: 1, listUser: 1, delete: 3 })
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
  at.clock.advance(MINUTE + 2 * CLOCK_TOLERANCE + 1)
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

it('a stolen token that comes twice at once is one theft, also where the other is done before the series moves', async () => {
  const at = await setUp()
  await visit(at)
  const barrier = BarrierStore.over(at.store)
  const steal = (sessions: Node) => sessions.redeemRememberToken(at.first.token!)
  barrier.next('replace', async proceed => {
    expect(await steal(at.node())).toBeNull()
    return proceed()
  })
  expect(await steal(at.node(barrier))).toBeNull()
  expect(thefts(at.events)).toHaveLength(1)
})

it('a series of a user who is being logged out everywhere ends at once, where it is', async () => {
  const at = await setUp()
  const barrier = BarrierStore.over(at.store)
  barrier.every('replace', () => ({ outcome: 'stale-login', ended: [] }))
  await at.node(barrier).revokeRememberToken(at.begun.token!)
  expect(barrier.counts().replace).toBe(1)
  expect(await at.left()).toEqual([])
})

it('what a lost answer began ends by the next request too, where the store failed in between', async () => {
  const at = await setUp()
  at.clock.advance(MINUTE + 2 * CLOCK_TOLERANCE + 1)
  const barrier = BarrierStore.over(at.store)
  barrier.next('listUser', faults.rejects)
  await expect(at.node(barrier).redeemRememberToken(at.first.token!)).rejects.toMatchObject({ operation: 'listUser' })
  expect(await at.node().redeemRememberToken(at.first.token!)).not.toBeNull()
  expect(await at.node().get(at.begun.session.secret, { touch: false })).toBeNull()
})
