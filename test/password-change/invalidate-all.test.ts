// What `invalidateAll` meets on the way: long walks, clocks that are set back, new IDs, and what is not its own.

import { type Session, SessionManager } from 'coatcheck'
import { CLOCK_TOLERANCE, FORWARD_LIFETIME } from 'coatcheck/custom-store'
import { ReferenceStore } from 'coatcheck/custom-store/testing'
import { expect, it, vi } from 'vitest'
import { BarrierStore } from '../support/barrier-store.ts'
import { MINUTE, testClock } from '../support/test-clock.ts'

const user = { id: 1, name: 'ada' }
const max = { id: 2, name: 'max' }

function setUp(inner: object = new ReferenceStore()) {
  const store = BarrierStore.over(inner as ReferenceStore)
  const clock = testClock()
  const node = (more: object = {}): SessionManager =>
    new SessionManager({
      store,
      now: clock,
      sweepInterval: false,
      rememberFor: '30d',
      idleTimeout: '2h',
      ...more,
    })
  return { store, clock, node, sessions: node() }
}

it('asks the store once for each user and each visitor', async () => {
  const { sessions, store } = setUp()
  for (let made = 0; made < 3; made += 1) await sessions.create({ user })
  await sessions.create({ user: max })
  await sessions.create()
  store.reset()
  expect(await sessions.invalidateAll()).toBe(5)
  expect(store.counts()).toEqual({ scan: 1, deleteUser: 2, delete: 1 })
})

it('leaves what says that a session of another library is over', async () => {
  const { sessions, store, clock } = setUp()
  const visitor = await sessions.create()
  const [record] = (await store.inner.scan!(null, 1, { now: clock() })).records
  const note = { ...record!, key: record!.key.replace(/.{4}$/, 'AAAA') as never, kind: 'remember' as const }
  await store.inner.create(note, { now: clock() })
  expect(await sessions.invalidateAll()).toBe(1)
  expect(await sessions.get(visitor.secret)).toBeNull()
  expect(await store.inner.read(note.key, { now: clock() })).toMatchObject({ key: note.key })
})

/** The walk under way takes long, and what is stored gets out of its way. */
const hide = (store: BarrierStore, run: () => unknown) =>
  store.next('scan', async proceed => {
    await run()
    return { ...((await proceed()) as object), records: [], forwards: [] }
  })

it('walks again after a long walk that met nothing, and ends what had escaped it', async () => {
  const { sessions, store, clock } = setUp()
  const session = await sessions.create({ user })
  hide(store, () => clock.advance(FORWARD_LIFETIME))
  expect(await sessions.invalidateAll()).toBe(1)
  expect(await sessions.get(session.secret)).toBeNull()
})

it('walks as often as walks are long and meet something, at the length too that a forward stands for sure', async () => {
  const { sessions, store, clock } = setUp()
  const held = [await sessions.create({ user }), await sessions.create(), await sessions.create({ user: max })]
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
  try {
    vi.advanceTimersByTime(1e9)
    const { sessions, store } = setUp()
    await sessions.create({ user })
    expect(await sessions.invalidateAll()).toBe(1)
    expect(store.counts().scan).toBe(1)
  } finally {
    vi.useRealTimers()
  }
})

it('ends a session that it meets by the forward under its old ID alone', async () => {
  for (const owner of [{ user }, {}]) {
    const { sessions, store } = setUp()
    const other = await sessions.create()
    const old = await sessions.create(owner as never)
    const renewed = (await sessions.regenerate(old, { grace: '1m' }))!
    store.next('scan', async proceed => ({ ...((await proceed()) as object), records: [] }))
    await sessions.invalidateAll({ except: other })
    expect(await sessions.get(renewed.secret)).toBeNull()
    expect(await sessions.get(other.secret)).not.toBeNull()
  }
})

it('follows a chain of new IDs to its end, however long a client made it, and spares the excepted one of any length', async () => {
  for (const isSpared of [false, true]) {
    const { sessions, store, node } = setUp()
    const first = await sessions.create()
    let last = first
    for (let hops = 0; hops < 30; hops += 1) last = (await sessions.regenerate(last))!
    store.next('scan', async proceed => {
      const page = (await proceed()) as { records: object[]; forwards: string[] }
      return { ...page, records: [], forwards: page.forwards.filter(key => key === first.key) }
    })
    await sessions.invalidateAll(isSpared ? { except: last } : {})
    expect((await node().get(last.secret)) !== null).toBe(isSpared)
  }
})

it('of a tenant ends its own session behind any number of new IDs, and no visitor or session of another tenant', async () => {
  for (const count of [9, 30]) {
    const { sessions, store, node } = setUp()
    const [own, other] = [sessions.namespace('a'), sessions.namespace('b')]
    let mine: Session = await own.create({ user })
    let theirs: Session = await other.create({ user })
    let visitor = await sessions.create()
    for (let made = 0; made < count; made += 1) {
      mine = (await own.regenerate(mine, { grace: '1m' }))!
      theirs = (await other.regenerate(theirs, { grace: '1m' }))!
      visitor = (await sessions.regenerate(visitor))!
    }
    store.next('scan', async proceed => ({ ...((await proceed()) as object), records: [] }))
    expect(await node().namespace('a').invalidateAll()).toBe(1)
    expect(await own.get(mine.secret)).toBeNull()
    expect((await other.get(theirs.secret))?.key).toBe(theirs.key)
    expect((await sessions.get(visitor.secret))?.key).toBe(visitor.key)
  }
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
  for (let made = 0; made < 30; made += 1) last = (await sessions.regenerate(last))!
  store.reset()
  store.next('scan', async proceed => ({ ...((await proceed()) as object), records: [] }))
  expect(await sessions.invalidateAll()).toBe(1)
  expect(store.counts()).toEqual({ scan: 1, read: 31, delete: 1 })
})

it('knows a long walk by the wall clock too where the clock of the manager stands still or is set back', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  try {
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
  } finally {
    vi.useRealTimers()
  }
})

it.each([
  ['a year behind', -525_600 * MINUTE],
  ['ten minutes behind', -10 * MINUTE],
  ['forty minutes ahead', 40 * MINUTE],
  ['a year ahead', 525_600 * MINUTE],
])('ends all sessions and remember tokens from a clock that is %s, under new IDs too', async (_, skew) => {
  const { sessions, clock, node } = setUp()
  const there = node({ now: clock.skewed(skew) })
  const held = [
    await sessions.create({ user }),
    await sessions.create(),
    await sessions.namespace('a').create({ user }),
  ]
  const token = await sessions.issueRememberToken(held[0] as never)
  const renewed = [await sessions.create({ user: max }), await sessions.create()]
  for (const old of renewed) held.push((await sessions.regenerate(old, { grace: '1m' }))!)
  const spared = (await sessions.regenerate(await sessions.create(), { grace: '1m' }))!
  await there.invalidateAll({ except: spared.key })
  for (const { secret } of [...held, ...renewed]) expect(await node().get(secret)).toBeNull()
  expect(await node().namespace('a').get(held[2]!.secret)).toBeNull()
  expect(await node().redeemRememberToken(token)).toBeNull()
  expect((await node().get(spared.secret))?.key).toBe(spared.key)
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

it('names itself where an option is none', async () => {
  const { sessions } = setUp()
  await expect(sessions.invalidateAll({ passwordVersion: 1 } as never)).rejects.toThrow(
    /^invalidateAll: "passwordVersion" is not an option/,
  )
})
