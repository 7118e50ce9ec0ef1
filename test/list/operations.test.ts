// What operators ask of all sessions, and do to all of them.

import { SessionManager, SessionStoreError, type StoredSession } from 'coatcheck'
import { FORWARD_LIFETIME } from 'coatcheck/custom-store'
import { ReferenceStore } from 'coatcheck/custom-store/testing'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it, vi } from 'vitest'
import { barrierManagers } from '../support/barrier-managers.ts'
import { faults } from '../support/barrier-store.ts'
import { HOUR, MINUTE, type testClock } from '../support/test-clock.ts'

const user = (id: number | bigint) => ({ id, name: `user ${id}` })

function setUp(options: object = {}, inner: object = new ReferenceStore()) {
  return barrierManagers(inner as ReferenceStore, { rememberFor: '30d', ...options })
}

/** A store that has neither a walk nor a count, as one of an earlier version of the contract. */
class WithoutAWalk extends ReferenceStore {
  override readonly scan = undefined as never
  override readonly count = undefined as never
}
/** One that only a walk counts, as Redis. */
class WithoutACount extends ReferenceStore {
  override readonly count = undefined as never
}

const increment = (data: any) => {
  data.n += 1
}

const gather = async <D, I extends 'bigint'>(walk: AsyncIterable<StoredSession<D, I>>) => {
  const met: StoredSession<D, I>[] = []
  for await (const each of walk) met.push(each)
  return met
}
const aborted = (reason: unknown) => AbortSignal.abort(reason)

async function populate(sessions: SessionManager) {
  const acme = sessions.namespace('acme')
  const mine = [await sessions.create({ user: user(0) }), await sessions.create({ user: user(2n ** 64n - 1n) })]
  const theirs = [await acme.create({ user: user(0) }), await acme.create({ user: user(7) })]
  const visitors = [await sessions.create(), await acme.create({ data: { cart: [1] } })]
  const token = await sessions.issueRememberToken(mine[0] as never)
  const rotated = (await sessions.regenerate(mine[1]!, { grace: '1m' }))!
  return { acme, mine: [mine[0]!, rotated], theirs, visitors, token, old: mine[1]! }
}

describe('count', () => {
  it.each([
    ['by the store', ReferenceStore],
    ['by a walk', WithoutACount],
  ])('says how many live sessions there are, of all tenants and visitors: %s', async (how, Store) => {
    const { sessions, clock, store } = setUp({}, new Store())
    expect(await sessions.count()).toBe(0)
    const { acme } = await populate(sessions)
    store.reset()
    expect(await sessions.count()).toBe(6)
    expect(store.counts()).toEqual(how === 'by the store' ? { count: 1 } : { scan: 1 })
    // Which tenant a visitor belongs to, the store does not know.
    expect(await acme.count()).toBe(2)
    expect(await sessions.namespace('acm').count()).toBe(0)
    clock.advance(HOUR)
    expect([await sessions.count(), await acme.count()]).toEqual([0, 0])
  })

  it('ends with the reason of its signal, and asks the store no more', async () => {
    const { sessions, store } = setUp({}, new WithoutACount())
    const controller = new AbortController()
    const reason = new Error('the operator left')
    await expect(sessions.count({ signal: aborted(reason) })).rejects.toBe(reason)
    expect(store.calls).toEqual([])
    const counting = setUp()
    await expect(counting.sessions.count({ signal: aborted(reason) })).rejects.toBe(reason)
    expect(counting.store.calls).toEqual([])
    for (let made = 0; made < 1200; made++) await sessions.create()
    store.reset()
    store.next('scan', async proceed => {
      controller.abort(reason)
      return proceed()
    })
    await expect(sessions.count({ signal: controller.signal })).rejects.toBe(reason)
    expect(store.counts()).toEqual({ scan: 1 })
  })

  it('walks where the count of the store takes too long, and rejects in an outage', async () => {
    const { sessions, store } = setUp({ storeTimeout: '300ms' })
    await sessions.create()
    store.next('count', faults.hang)
    expect(await sessions.count()).toBe(1)
    store.every('count', faults.rejects)
    expect(await sessions.count()).toBe(1)
    store.every('scan', faults.rejects)
    await expect(sessions.count()).rejects.toMatchObject({ code: 'ERR_SESSION_STORE', operation: 'scan' })
    const counting = setUp({}, Object.assign(new ReferenceStore(), { scan: undefined }))
    counting.store.every('count', faults.rejects)
    await expect(counting.sessions.count()).rejects.toMatchObject({ operation: 'count', outcome: 'not-applied' })
  })

  it('rejects within storeTimeout where neither the count nor the first page of a walk is answered', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
    try {
      const { sessions, store } = setUp({ storeTimeout: '2s' })
      for (const verb of ['count', 'scan'] as const) store.every(verb, faults.hang)
      const counting = sessions.count().catch(error => error)
      await vi.advanceTimersByTimeAsync(1999)
      expect(store.counts()).toEqual({ count: 1, scan: 1 })
      await vi.advanceTimersByTimeAsync(2)
      expect(await counting).toMatchObject({ operation: 'scan', outcome: 'not-applied' })
    } finally {
      vi.useRealTimers()
    }
  })

  it('gives the event loop to others between two pages', async () => {
    const { sessions } = setUp({}, new WithoutACount())
    for (let made = 0; made < 2600; made++) await sessions.create()
    let turns = 0
    const timer = setInterval(() => undefined, 1000)
    const loop = () => {
      turns += 1
      if (timer.hasRef()) setImmediate(loop)
    }
    setImmediate(loop)
    expect(await sessions.count()).toBe(2600)
    clearInterval(timer.unref())
    expect(turns).toBeGreaterThanOrEqual(5)
  })
})

describe('all', () => {
  it('shows each live session once, with its user exactly and its tenant, and no secret', async () => {
    const { sessions } = setUp()
    const { acme, mine, theirs, visitors, old } = await populate(sessions)
    for (const pageSize of [1, 2, 1000]) {
      const met = await gather(sessions.all({ pageSize }))
      const shown = met.map(({ key, namespace, user: owner, data }) => ({
        key,
        namespace,
        id: owner?.id ?? null,
        data,
      }))
      const byKey = (a: { key: string }, b: { key: string }) => (a.key < b.key ? -1 : 1)
      expect(shown.sort(byKey)).toEqual(
        [
          ...mine.map(each => ({ key: each.key, namespace: null, id: each.user!.id, data: {} })),
          ...theirs.map(each => ({ key: each.key, namespace: 'acme', id: each.user!.id, data: {} })),
          ...visitors.map(each => ({ key: each.key, namespace: null, id: null, data: each.data })),
        ].sort(byKey),
      )
      expect(met.some(({ key }) => key === old.key)).toBe(false)
      expect(met.filter(each => 'secret' in each || 'csrfToken' in each)).toEqual([])
      expect(met.every(each => Object.isFrozen(each))).toBe(true)
    }
    const tenants = await gather(acme.all())
    expect(tenants.map(({ key }) => key).sort()).toEqual(theirs.map(({ key }) => key).sort())
    expect(tenants.map(({ namespace }) => namespace)).toEqual(['acme', 'acme'])
    // A walk has no ID: nothing can be done in a session's name.
    await expect(sessions.update(tenants[0] as never, { n: 1 })).rejects.toThrow(
      'expected the object that get() or logIn() returned',
    )
  })

  it('waits for a slow reader between two pages, and each page has all of storeTimeout', async () => {
    const { sessions, store, clock } = setUp()
    for (let made = 0; made < 5; made++) await sessions.create()
    let deadline = 0
    store.every('scan', (proceed, [, , call]) => {
      expect(call.deadline).toBeGreaterThan(deadline)
      deadline = call.deadline
      return proceed()
    })
    let met = 0
    for await (const { expiresAt } of sessions.all({ pageSize: 2 })) {
      met += 1
      clock.advance(2 * MINUTE)
      expect(expiresAt).toBeGreaterThan(clock())
    }
    expect(met).toBe(5)
  })

  it('asks for no further page where the reader leaves, and for none before the first session is wanted', async () => {
    const { sessions, store } = setUp()
    for (let made = 0; made < 10; made++) await sessions.create()
    store.reset()
    const walk = sessions.all({ pageSize: 3 })
    expect(store.calls).toEqual([])
    for await (const _ of walk) break
    expect(store.counts()).toEqual({ scan: 1 })
    expect(await walk.next()).toEqual({ done: true, value: undefined })
  })

  it('ends with the reason of its signal, within a page too', async () => {
    const { sessions } = setUp()
    for (let made = 0; made < 10; made++) await sessions.create()
    const controller = new AbortController()
    let met = 0
    const reading = (async () => {
      for await (const _ of sessions.all({ signal: controller.signal })) if (++met === 4) controller.abort('enough')
    })()
    await expect(reading).rejects.toBe('enough')
    expect(met).toBe(4)
  })

  it('shows once what the store shows twice, and leaves out users of another application', async () => {
    const { sessions, store } = setUp()
    const [one, two] = [await sessions.create({ user: user(1) }), await sessions.create()]
    await setUp({ userIds: 'string' }, store.inner).sessions.create({ user: { id: 'ada', name: 'ada' } } as never)
    store.every('scan', async proceed => {
      const page = (await proceed()) as { records: unknown[] }
      return { ...page, records: [...page.records, ...page.records] }
    })
    const keys = (await gather(sessions.all())).map(({ key }) => key)
    expect(keys.sort()).toEqual([one.key, two.key].sort())
  })

  it('leaves out what expires while the reader takes its time, from that moment on', async () => {
    const { sessions, clock } = setUp()
    for (let made = 0; made < 4; made++) await sessions.create()
    for (const [after, shown] of [
      [30 * MINUTE - 1, 4],
      [30 * MINUTE, 1],
    ] as const) {
      const start = clock()
      let met = 0
      for await (const _ of sessions.all()) {
        met += 1
        if (met === 1) clock.advance(after)
      }
      expect(met).toBe(shown)
      clock.advance(start - clock())
    }
  })

  it('refuses a signal that is none', async () => {
    const { sessions, store } = setUp()
    for (const signal of [{ aborted: false }, { addEventListener() {} }, null, 'SIGINT', new AbortController()]) {
      expect(() => sessions.all({ signal } as never)).toThrow('signal: expected an AbortSignal')
      await expect(sessions.count({ signal } as never)).rejects.toThrow('signal: expected an AbortSignal')
    }
    expect(store.calls).toEqual([])
  })

  it('rejects where a page fails, and does not look like the end', async () => {
    const { sessions, store } = setUp()
    for (let made = 0; made < 10; made++) await sessions.create()
    store.next('scan', proceed => proceed())
    store.next('scan', faults.rejects)
    await expect(gather(sessions.all({ pageSize: 4 }))).rejects.toMatchObject({
      code: 'ERR_SESSION_STORE',
      operation: 'scan',
      outcome: 'not-applied',
    })
  })
})

describe('invalidateAll', () => {
  it('ends every session and token of all users, visitors and tenants, says how many, and tells whose', async () => {
    const { sessions, events } = setUp()
    const { acme, mine, theirs, visitors, token, old } = await populate(sessions)
    events.length = 0
    const progress: unknown[] = []
    expect(await sessions.invalidateAll({ onProgress: each => progress.push(each) })).toBe(6)
    for (const { secret } of [...mine, ...visitors, old]) expect(await sessions.get(secret)).toBeNull()
    for (const { secret } of [...theirs, ...visitors]) expect(await acme.get(secret)).toBeNull()
    expect(await sessions.redeemRememberToken(token)).toBeNull()
    expect(await gather(sessions.all())).toEqual([])
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

  it('lets users log in again at once', async () => {
    const { sessions } = setUp()
    await sessions.create({ user: user(1) })
    await sessions.invalidateAll()
    const again = await sessions.create({ user: user(1) })
    expect((await sessions.get(again.secret))?.key).toBe(again.key)
  })

  it('spares the excepted session, by itself and by its key, under its old ID and its new one', async () => {
    for (const owner of [user(1), null]) {
      for (const moved of ['before', 'after', 'never'])
        for (const by of ['session', 'key']) {
          const { sessions, clock } = setUp()
          const start = owner === null ? {} : { user: owner }
          const [first, other] = [await sessions.create(start as never), await sessions.create(start as never)]
          const visitor = await sessions.create()
          const mine = moved === 'before' ? (await sessions.regenerate(first, { grace: '1m' }))! : first
          let latest = moved === 'never' ? first : mine
          // The old session and the new one lead to the same.
          const except = moved === 'after' ? first : mine
          if (moved === 'after') latest = (await sessions.regenerate(first, { grace: '1m' }))!
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
    for (let made = 0; made < 1200; made++) await sessions.create({ user: user(made) })
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
    for (let made = 0; made < 600; made++) await sessions.create()
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

  it('says how many were ended where the store fails, begins nothing more, and ends the rest when it is repeated', async () => {
    const { sessions, store } = setUp()
    for (let made = 0; made < 30; made++) await sessions.create({ user: user(made) })
    for (let call = 0; call < 10; call++) store.next('deleteUser', proceed => proceed())
    store.every('deleteUser', faults.rejects)
    const error = await sessions.invalidateAll().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(SessionStoreError)
    expect(error).toMatchObject({ operation: 'deleteUser', outcome: 'unknown', status: 503 })
    expect((error as Error).cause).toBeInstanceOf(SessionStoreError)
    expect((error as Error).message).toContain(
      'invalidateAll: 10 sessions were ended, then the store failed: repeat it',
    )
    const calls = store.counts().deleteUser
    await new Promise(setImmediate)
    expect(store.counts().deleteUser).toBe(calls)
    store.every('deleteUser', null)
    expect(await sessions.invalidateAll()).toBe(20)
  })

  it('asks the store for few things at once', async () => {
    const { sessions, store } = setUp()
    for (let made = 0; made < 100; made++) await sessions.create(made % 2 ? { user: user(made) } : ({} as never))
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

  it('ends what a node whose clock is behind holds for live', async () => {
    const { sessions, store, clock } = setUp()
    const behind = new SessionManager({ store, now: clock.skewed(-4 * MINUTE), sweepInterval: false })
    const visitor = await behind.create()
    clock.advance(28 * MINUTE)
    expect(await sessions.get(visitor.secret)).toBeNull()
    expect((await behind.get(visitor.secret, { touch: false }))?.key).toBe(visitor.key)
    await sessions.invalidateAll()
    expect(await behind.get(visitor.secret)).toBeNull()
  })

  it('walks again after a walk that took longer than forwards stand, and ends what escaped it', async () => {
    const { sessions, store, clock } = setUp({ idleTimeout: '2h' })
    const held = await Promise.all(Array.from({ length: 20 }, () => sessions.create()))
    const [first] = [...held].sort((a, b) => (a.key < b.key ? -1 : 1))
    // The walk stands still behind the first key; by the time it goes on, the session has gone to a place before that.
    let escaped = first!
    store.next('scan', async proceed => {
      const page = (await proceed()) as { next: string | null; records: { key: string }[] }
      return { ...page, records: page.records.slice(0, 1), next: page.records[0]!.key }
    })
    const late = held.find(({ key }) => key !== first!.key)!
    store.next('scan', async proceed => {
      escaped = (await sessions.regenerate(late, { grace: '1m' }))!
      clock.advance(MINUTE + FORWARD_LIFETIME)
      const page = (await proceed()) as { records: { key: string }[] }
      const hidden = new Set<string>([escaped.key, late.key])
      return { ...page, records: page.records.filter(({ key }) => !hidden.has(key)), forwards: [] }
    })
    expect(await sessions.invalidateAll()).toBe(20)
    expect(await sessions.get(escaped.secret)).toBeNull()
    expect(store.counts().scan).toBe(3)
  })

  it('comes to an end though each walk takes long and others log in all the while', async () => {
    const { sessions, store, clock } = setUp({ idleTimeout: '2h' })
    await sessions.create({ user: user(1) })
    let logIns = 2
    store.every('scan', async proceed => {
      clock.advance(10 * MINUTE)
      await sessions.create({ user: user(logIns++) })
      return proceed()
    })
    // Whoever has logged in meanwhile is logged out as well; only what is older than the call makes it walk again.
    expect(await sessions.invalidateAll()).toBe(3)
    expect(store.counts().scan).toBe(2)
  })
})

describe('updateUserSessions', () => {
  const withRole = { initial: () => ({ role: 'user', n: 0 }) }
  const roles = async (sessions: any, id: number) => (await sessions.list(id)).map((each: any) => each.data.role)

  it('writes to each live session of the user, to those of no one else, and prolongs none', async () => {
    const { sessions, clock } = setUp(withRole) as never as { sessions: any; clock: ReturnType<typeof testClock> }
    const held = [await sessions.create({ user: user(1), data: { n: 5 } }), await sessions.create({ user: user(1) })]
    const other = await sessions.create({ user: user(2) })
    const theirs = await sessions.namespace('acme').create({ user: user(1) })
    await sessions.issueRememberToken(held[0])
    clock.advance(10 * MINUTE)
    expect(await sessions.updateUserSessions(1, { role: 'admin' })).toBe(2)
    for (const each of held) {
      const now = await sessions.get(each.secret, { touch: false })
      expect(now.data).toEqual({ ...each.data, role: 'admin' })
      expect([now.seenAt, now.expiresAt]).toEqual([each.seenAt, each.expiresAt])
      expect(now.csrfToken).toBe(each.csrfToken)
    }
    expect((await sessions.get(other.secret)).data.role).toBe('user')
    expect((await sessions.namespace('acme').get(theirs.secret)).data.role).toBe('user')
    expect(await sessions.namespace('acme').updateUserSessions(1n, { role: 'guest' })).toBe(1)
    expect(await roles(sessions, 1)).toEqual(['admin', 'admin'])
    expect(await sessions.updateUserSessions(3, { role: 'admin' })).toBe(0)
  })

  it('reaches a session that gets a new ID meanwhile, at whichever point', async () => {
    const renewals: Record<string, (sessions: any, session: any) => Promise<any>> = {
      rotate: (sessions, session) => sessions.regenerate(session, { grace: '1m' }),
      regenerate: (sessions, session) => sessions.regenerate(session),
      'rotate twice': async (sessions, session) =>
        sessions.regenerate(await sessions.regenerate(session, { grace: '1m' }), { grace: '1m' }),
      update: (sessions, session) => sessions.update(session, { role: 'admin' }),
    }
    for (const [name, renew] of Object.entries(renewals))
      for (let point = 0; point < 3; point++)
        for (const when of ['before', 'after'] as const) {
          const { sessions, store, clock } = setUp(withRole) as never as any
          const node: any = new SessionManager({ store, now: clock, sweepInterval: false, ...withRole })
          const held = [await sessions.create({ user: user(1) }), await sessions.create({ user: user(1) })]
          for (let before = 0; before < point; before++) store.next('any', (proceed: any) => proceed())
          const pause = store.pause('any', when)
          const updating = sessions.updateUserSessions(1, { n: 7 })
          await pause.reached
          const renewed = await renew(node, held[0])
          pause.resume()
          const where = `${name} ${when} call ${point + 1}`
          expect(await updating, where).toBe(2)
          expect((await node.get(renewed.secret)).data.n, where).toBe(7)
          expect((await node.get(held[1].secret)).data.n, where).toBe(7)
        }
  })

  it('counts a session once that is listed under its old ID and its new one', async () => {
    {
      const { sessions, store } = setUp(withRole) as never as any
      const held = await sessions.create({ user: user(1) })
      await sessions.create({ user: user(1) })
      // As a store answers that lists in pieces: what it read first is no more when it reads the rest.
      store.next('listUser', async (proceed: any) => {
        const before = await proceed()
        await sessions.regenerate(held, { grace: '1m' })
        const after = await proceed()
        const old = before.find(({ key }: any) => key === held.key)
        return [...after, old]
      })
      expect(await sessions.updateUserSessions(1, { n: 7 })).toBe(2)
      for (const { data } of await sessions.list(1)) expect(data.n).toBe(7)
    }
  })

  it('loses nothing of what others write beside it', async () => {
    const { sessions, store, clock } = setUp(withRole) as never as any
    const node: any = new SessionManager({ store, now: clock, sweepInterval: false, ...withRole })
    const session = await sessions.create({ user: user(1) })
    const writes = [sessions, node].flatMap(each => [
      ...Array.from({ length: 5 }, () => each.updateUserSessions(1, { role: 'admin' })),
      ...Array.from({ length: 5 }, () => each.update(session, increment)),
    ])
    await Promise.all(writes)
    expect((await sessions.get(session)).data).toMatchObject({ n: 10, role: 'admin' })
  })

  it('does not count a session that ends meanwhile, and revives none', async () => {
    const { sessions, store } = setUp(withRole) as never as any
    const session = await sessions.create({ user: user(1) })
    const pause = store.pause('update', 'before')
    const updating = sessions.updateUserSessions(1, { role: 'admin' })
    await pause.reached
    await sessions.destroy(session)
    pause.resume()
    expect(await updating).toBe(0)
    expect(await sessions.list(1)).toEqual([])
  })

  it('changes the other sessions where one cannot hold the change, and then says so', async () => {
    const { sessions } = setUp({ maxDataBytes: 100 }) as never as any
    await sessions.create({ user: user(1), data: { text: 'x'.repeat(80) } })
    const other = await sessions.create({ user: user(1) })
    await expect(sessions.updateUserSessions(1, { role: 'administrator' })).rejects.toMatchObject({
      code: 'ERR_SESSION_DATA',
    })
    expect((await sessions.get(other)).data.role).toBe('administrator')
  })

  it('refuses what is not keys to set, such as a function: a repeated call would run it again', async () => {
    const { sessions } = setUp() as never as any
    await sessions.create({ user: user(1) })
    for (const wrong of [undefined, null, 'admin', [], 7, () => {}])
      await expect(sessions.updateUserSessions(1, wrong)).rejects.toThrow(
        'updateUserSessions: expected keys to set, got ',
      )
    await expect(sessions.updateUserSessions('1', {})).rejects.toThrow('user ID: expected')
  })

  it('leaves alone a session that the password version of the application refuses', async () => {
    const { sessions } = setUp({ getPasswordVersion: () => 2 }) as never as any
    await sessions.create({ user: { ...user(1), passwordVersion: 1 } })
    await sessions.create({ user: { ...user(1), passwordVersion: 2 } })
    expect(await sessions.updateUserSessions(1, { role: 'admin' })).toBe(1)
  })
})

describe('what operators ask for wrongly', () => {
  it('is refused with the name of the option, and what would be right', async () => {
    const { sessions, store } = setUp() as never as any
    const wrong: [string, () => unknown, string][] = [
      ['count', () => sessions.count({ signal: 'now' }), 'signal: expected an AbortSignal, got "now"'],
      ['count', () => sessions.count({ signl: undefined }), '(there are: signal)'],
      ['count', () => sessions.count(null), 'count: expected an object of options'],
      [
        'invalidateAll',
        () => sessions.invalidateAll({ onProgress: true }),
        'onProgress: expected a function, got true',
      ],
      ['invalidateAll', () => sessions.invalidateAll({ except: 'a secret' }), 'except: expected a session or its key'],
      [
        'invalidateAll',
        () => sessions.invalidateAll({ except: {} }),
        'session: expected the object that get() or logIn() returned',
      ],
      ['invalidateAll', () => sessions.invalidateAll({ passwordVersion: 1 }), 'is not an option'],
    ]
    for (const [verb, call, message] of wrong) {
      const error = await (call() as Promise<unknown>).catch((thrown: unknown) => thrown)
      expect(error, verb).toBeInstanceOf(TypeError)
      expect((error as Error).message).toContain(message)
    }
    // At once: whoever walks later would never see why.
    for (const pageSize of [0, 1001, 1.5, '10'])
      expect(() => sessions.all({ pageSize })).toThrow('pageSize: expected a whole number from 1 to 1000')
    expect(() => sessions.all(() => {})).toThrow('all: expected an object of options')
    expect(store.calls).toEqual([])
  })

  it('names the method that a store lacks', async () => {
    const { sessions } = setUp({}, new WithoutAWalk())
    const lacks = 'this store has no scan, the method of the contract that walks over all that is stored'
    await expect(sessions.count()).rejects.toThrow(`count: ${lacks}`)
    await expect(sessions.invalidateAll()).rejects.toThrow(`invalidateAll: ${lacks}`)
    expect(() => sessions.all()).toThrow(TypeError)
    expect(() => sessions.all()).toThrow(`all: ${lacks}`)
    // What needs no walk goes on.
    await sessions.create({ user: user(1) })
    expect(await sessions.updateUserSessions(1, { role: 'admin' })).toBe(1)
    const { sessions: counting } = setUp({}, Object.assign(new ReferenceStore(), { scan: undefined }))
    expect(await counting.count()).toBe(0)
    await expect(counting.namespace('acme').count()).rejects.toThrow(`count: ${lacks}`)
  })

  it('works with a memory store that is full', async () => {
    const { sessions } = setUp({}, new MemoryStore({ maxRecords: 3 }))
    for (let made = 0; made < 3; made++) await sessions.create({ user: user(made) })
    expect(await sessions.count()).toBe(3)
    expect(await sessions.invalidateAll()).toBe(3)
    expect(await sessions.count()).toBe(0)
  })
})
