// invalidateAll, and what it meets on the way: long walks, clocks that are set back, new IDs, and what is not its own.

import { type Session, SessionStoreError, type Store } from 'coatcheck'
import { CLOCK_TOLERANCE, FORWARD_LIFETIME } from 'coatcheck/custom-store'
import { ReferenceStore } from 'coatcheck/custom-store/testing'
import { expect, it, onTestFinished, vi } from 'vitest'
import { type BarrierStore, faults } from '../support/barrier-store.ts'
import { grace, setUp as memory, other, populate, times, user } from '../support/manager-kit.ts'
import { MINUTE } from '../support/test-clock.ts'

function setUp(options: object = {}, inner: Store = new ReferenceStore()) {
  const at = memory({ rememberFor: '30d', idleTimeout: '2h', ...options }, inner)
  return { ...at, node: at.manager }
}

it('ends every session and token of all users, visitors and tenants, says how many, and tells whose', async () => {
  const { sessions, events } = setUp()
  const { acme, mine, theirs, visitors, token, old } = await populate(sessions)
  events.length = 0
  const progress: unknown[] = []
  expect(await sessions.invalidateAll({ onProgress: each => progress.push(each) })).toBe(6)
  for (const { secret } of [...mine, ...visitors, old]) expect(await sessions.get(secret)).toBeNull()
  for (const { secret } of [...theirs, ...visitors]) expect(await acme.get(secret)).toBeNull()
  expect(await sessions.redeemRememberToken(token)).toBeNull()
  expect(await sessions.count()).toBe(0)
  // Six sessions, a series, and the forward of the one that was rotated.
  expect(progress).toEqual([{ ended: 6, met: 8 }])
  const told = events.map(({ type, userId, namespace = null, reason }) => `${type} ${userId} ${namespace} ${reason}`)
  expect(told.sort()).toEqual(
    [
      'destroyed null null invalidated',
      'destroyed null null invalidated',
      'invalidated 0 acme undefined',
      'invalidated 0 null undefined',
      `invalidated ${2n ** 64n - 1n} null undefined`,
      'invalidated 7 acme undefined',
    ].sort(),
  )
  expect(await sessions.invalidateAll()).toBe(0)
})

it('ends the sessions of users of another kind, and names no user that is none of its own', async () => {
  const { sessions, events, manager } = setUp()
  const theirs = await manager({ userIds: 'string' }).create({ user: { id: 'ada' as never, name: '' } })
  const mine = await sessions.create({ user: { id: 7, name: '' } })
  expect(await sessions.invalidateAll()).toBe(2)
  for (const { secret } of [theirs, mine]) expect(await manager({ userIds: 'string' }).get(secret)).toBeNull()
  const told = events.filter(({ type }) => type === 'invalidated')
  expect(told).toEqual([{ type: 'invalidated', userId: 7n, count: 1 }])
})

it('of a tenant ends the sessions and tokens of its users, and those of no other', async () => {
  const { sessions } = setUp()
  const { acme, mine, theirs, visitors, token } = await populate(sessions)
  const theirToken = await acme.issueRememberToken(theirs[1] as never)
  expect(await acme.invalidateAll()).toBe(2)
  for (const { secret } of theirs) expect(await acme.get(secret)).toBeNull()
  expect(await acme.redeemRememberToken(theirToken)).toBeNull()
  for (const { key, secret } of mine) expect((await sessions.get(secret))?.key).toBe(key)
  expect((await sessions.get(visitors[0]!.secret))?.key).toBe(visitors[0]!.key)
  expect((await acme.get(visitors[1]!.secret))?.key).toBe(visitors[1]!.key)
  expect(await sessions.redeemRememberToken(token)).not.toBeNull()
})

it('spares the excepted session, by itself and by its key, under its old ID and its new one', async () => {
  for (const owner of [user, null]) {
    for (const moved of ['before', 'after', 'never'])
      for (const by of ['session', 'key']) {
        const { sessions, clock } = setUp()
        const start = owner === null ? {} : { user: owner }
        const [first, other] = [await sessions.create(start as never), await sessions.create(start as never)]
        const visitor = await sessions.create()
        const mine = moved === 'before' ? (await sessions.regenerate(first, grace))! : first
        let latest = moved === 'never' ? first : mine
        // The old session and the new one lead to the same.
        const except = moved === 'after' ? first : mine
        if (moved === 'after') latest = (await sessions.regenerate(first, grace))!
        clock.advance(MINUTE)
        const ended = await sessions.invalidateAll({ except: by === 'session' ? except : except.key })
        expect(ended, `${owner?.id} ${moved} ${by}`).toBe(2)
        expect((await sessions.get(latest.secret))?.key).toBe(latest.key)
        for (const { secret } of [other, visitor]) expect(await sessions.get(secret)).toBeNull()
      }
  }
})

it('stops after the page under way at its signal, and may be repeated', async () => {
  const { sessions, store } = setUp()
  for (const made of times(1200)) await sessions.create({ user: { id: made, name: '' } })
  const controller = new AbortController()
  let last = { ended: 0, met: 0 }
  const onProgress = (progress: typeof last) => {
    last = progress
    controller.abort(new Error('interrupted'))
  }
  await expect(sessions.invalidateAll({ signal: controller.signal, onProgress })).rejects.toThrow('interrupted')
  expect(last).toEqual({ ended: 500, met: 500 })
  expect(store.counts().scan).toBe(1)
  expect(await sessions.count()).toBe(700)
  expect(await sessions.invalidateAll()).toBe(700)
})

it('waits for what onProgress answers before the next page, and rejects with what it throws', async () => {
  const { sessions, store } = setUp()
  for (const _ of times(600)) await sessions.create()
  store.reset()
  let scans = 0
  await sessions.invalidateAll({
    onProgress: async () => {
      scans = store.counts().scan!
      await new Promise(setImmediate)
      expect(store.counts().scan).toBe(scans)
    },
  })
  expect(scans).toBe(2)
  await sessions.create()
  const fails = () => {
    throw new RangeError('a defect of the caller')
  }
  await expect(sessions.invalidateAll({ onProgress: fails })).rejects.toThrow(RangeError)
})

it('says how many were ended if the store fails, begins nothing more, and ends the rest when it is repeated', async () => {
  const { sessions, store } = setUp()
  for (const made of times(30)) await sessions.create({ user: { id: made, name: '' } })
  for (let call = 0; call < 10; call++) store.next('deleteUser', proceed => proceed())
  store.every('deleteUser', faults.rejects)
  const error = await sessions.invalidateAll().catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(SessionStoreError)
  expect(error).toMatchObject({ operation: 'deleteUser', outcome: 'unknown', status: 503 })
  expect((error as Error).cause).toBeInstanceOf(SessionStoreError)
  expect((error as Error).message).toContain('invalidateAll: 10 sessions were ended, then the store failed: repeat it')
  const calls = store.counts().deleteUser
  await new Promise(setImmediate)
  expect(store.counts().deleteUser).toBe(calls)
  store.every('deleteUser', null)
  expect(await sessions.invalidateAll()).toBe(20)
})

it('asks the store for few things at once', async () => {
  const { sessions, store } = setUp()
  for (const made of times(100)) await sessions.create(made % 2 ? { user: { id: made, name: '' } } : ({} as never))
  let [underWay, most] = [0, 0]
  for (const verb of ['delete', 'deleteUser'] as const)
    store.every(verb, async proceed => {
      underWay += 1
      most = Math.max(most, underWay)
      await new Promise(setImmediate)
      underWay -= 1
      return proceed()
    })
  expect(await sessions.invalidateAll()).toBe(100)
  expect(most).toBe(8)
})

it('asks the store once for each user and each visitor', async () => {
  const { sessions, store } = setUp()
  for (const _ of times(3)) await sessions.create({ user })
  await sessions.create({ user: other })
  await sessions.create()
  store.reset()
  expect(await sessions.invalidateAll()).toBe(5)
  expect(store.counts()).toEqual({ scan: 1, deleteUser: 2, delete: 1 })
})

/** The walk under way takes long, and what is stored gets out of its way. */
const hide = (store: BarrierStore, run: () => unknown) =>
  store.next('scan', async proceed => {
    await run()
    return { ...((await proceed()) as object), records: [], forwards: [] }
  })

it('walks as often as walks are long and meet something, at the length too that a forward stands for sure', async () => {
  const { sessions, store, clock } = setUp()
  const held = [await sessions.create({ user }), await sessions.create(), await sessions.create({ user: other })]
  const long = () => clock.advance(FORWARD_LIFETIME - CLOCK_TOLERANCE)
  hide(store, long)
  store.next('scan', async proceed => {
    long()
    const page = (await proceed()) as { records: { key: string }[] }
    return { ...page, records: page.records.filter(({ key }) => key !== held[2]!.key), forwards: [] }
  })
  expect(await sessions.invalidateAll()).toBe(3)
  expect(store.counts().scan).toBe(3)
  for (const { secret } of held) expect(await sessions.get(secret)).toBeNull()
})

it('walks once in a process that has run for long', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  vi.advanceTimersByTime(1e9)
  const { sessions, store } = setUp()
  await sessions.create({ user })
  expect(await sessions.invalidateAll()).toBe(1)
  expect(store.counts().scan).toBe(1)
})

it('follows a chain of new IDs to its end, however long a client made it, and spares the excepted one of any length', async () => {
  for (const isSpared of [false, true]) {
    const { sessions, store, node } = setUp()
    const first = await sessions.create()
    let last = first
    for (const _ of times(30)) last = (await sessions.regenerate(last))!
    store.next('scan', async proceed => {
      const page = (await proceed()) as { records: object[]; forwards: string[] }
      return { ...page, records: [], forwards: page.forwards.filter(key => key === first.key) }
    })
    await sessions.invalidateAll(isSpared ? { except: last } : {})
    expect((await node().get(last.secret)) !== null).toBe(isSpared)
  }
})

it('of a tenant ends its own session behind any number of new IDs, and no visitor or session of another tenant', async () => {
  const { sessions, store, node } = setUp()
  const [own, another] = [sessions.namespace('a'), sessions.namespace('b')]
  let mine: Session = await own.create({ user })
  let theirs: Session = await another.create({ user })
  let visitor = await sessions.create()
  for (const _ of times(30)) {
    mine = (await own.regenerate(mine, grace))!
    theirs = (await another.regenerate(theirs, grace))!
    visitor = (await sessions.regenerate(visitor))!
  }
  store.next('scan', async proceed => ({ ...((await proceed()) as object), records: [] }))
  expect(await node().namespace('a').invalidateAll()).toBe(1)
  expect(await own.get(mine.secret)).toBeNull()
  expect((await another.get(theirs.secret))?.key).toBe(theirs.key)
  expect((await sessions.get(visitor.secret))?.key).toBe(visitor.key)
})

it('of a tenant deletes nothing that it did not see to be its own', async () => {
  const { sessions, store } = setUp()
  const visitor = await sessions.create()
  await sessions.regenerate(visitor)
  store.reset()
  store.every('read', () => null)
  expect(await sessions.namespace('a').invalidateAll()).toBe(0)
  expect(store.counts()).toEqual({ scan: 1, read: 1 })
})

it('reads each new ID of a session once, though each of them leads to its end', async () => {
  const { sessions, store } = setUp()
  let last = await sessions.create()
  for (const _ of times(30)) last = (await sessions.regenerate(last))!
  store.reset()
  store.next('scan', async proceed => ({ ...((await proceed()) as object), records: [] }))
  expect(await sessions.invalidateAll()).toBe(1)
  expect(store.counts()).toEqual({ scan: 1, read: 31, delete: 1 })
})

it('knows a long walk by the wall clock too where the clock of the manager stands still or is set back', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  for (const step of [0, -MINUTE]) {
    const { sessions, store, clock } = setUp()
    const session = await sessions.create({ user })
    hide(store, () => {
      clock.advance(step)
      vi.advanceTimersByTime(FORWARD_LIFETIME)
    })
    expect(await sessions.invalidateAll()).toBe(1)
    expect(await sessions.get(session.secret)).toBeNull()
  }
})

it('ends what it meets in each of its walks, and walks again only for what is older than the call', async () => {
  for (const [ahead, walks] of [
    [CLOCK_TOLERANCE, 3],
    [CLOCK_TOLERANCE + 1, 2],
  ] as const) {
    const { sessions, clock, node, store } = setUp()
    const session = await node({ now: clock.skewed(ahead) }).create()
    const long = async (proceed: () => unknown) => {
      const page = await proceed()
      clock.advance(FORWARD_LIFETIME)
      return page
    }
    hide(store, () => clock.advance(FORWARD_LIFETIME))
    store.next('scan', long)
    await sessions.invalidateAll()
    expect(await sessions.get(session.secret)).toBeNull()
    expect(store.counts().scan).toBe(walks)
  }
})

it('counts no visitor who had expired, and ends that session for nodes whose clock is behind', async () => {
  const { sessions, clock } = setUp()
  await sessions.create()
  clock.advance(2 * 60 * MINUTE)
  expect(await sessions.invalidateAll()).toBe(0)
  expect(await sessions.count()).toBe(0)
})

it('an error that is none of the store goes through as it is', async () => {
  const { node } = setUp()
  let isBroken = false
  const sessions = node({
    now: () => {
      if (isBroken) throw new RangeError('no clock')
      return Date.now()
    },
  })
  await sessions.create()
  const onProgress = () => {
    isBroken = true
  }
  await expect(sessions.invalidateAll({ onProgress })).rejects.toThrow(new RangeError('no clock'))
})
