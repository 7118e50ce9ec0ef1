// What operators ask of all sessions, and what a user sees of the own ones.

import type { Store, StoredSession } from 'coatcheck'
import { ReferenceStore } from 'coatcheck/custom-store/testing'
import { describe, expect, it, vi } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { setUp as memory, populate, times, user } from '../support/manager-kit.ts'
import { HOUR, MINUTE, SECOND } from '../support/test-clock.ts'

const setUp = (options: object = {}, store: Store = new ReferenceStore()) =>
  memory({ rememberFor: '30d', ...options }, store)

/** A store that has neither a walk nor a count, as one of an earlier version of the contract. */
class WithoutAWalk extends ReferenceStore {
  override readonly scan = undefined as never
  override readonly count = undefined as never
}
/** One that only a walk counts, as Redis. */
class WithoutACount extends ReferenceStore {
  override readonly count = undefined as never
}

const gather = async <D, I extends 'bigint'>(walk: AsyncIterable<StoredSession<D, I>>) => {
  const met: StoredSession<D, I>[] = []
  for await (const each of walk) met.push(each)
  return met
}

it('list shows the session first that was seen last', async () => {
  const { sessions, clock } = setUp()
  const made: string[] = []
  for (const _ of times(4)) {
    made.push((await sessions.create({ user })).key)
    clock.advance(SECOND)
  }
  expect((await sessions.list(1)).map(({ key }) => key)).toEqual(made.reverse())
})

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
    await expect(sessions.count({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(store.calls).toEqual([])
    const counting = setUp()
    await expect(counting.sessions.count({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(counting.store.calls).toEqual([])
    for (const _ of times(1200)) await sessions.create()
    store.reset()
    store.next('scan', async proceed => {
      controller.abort(reason)
      return proceed()
    })
    await expect(sessions.count({ signal: controller.signal })).rejects.toBe(reason)
    expect(store.counts()).toEqual({ scan: 1 })
  })

  it('walks if the store takes too long to count, and rejects in an outage', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
    const { sessions, store } = setUp()
    await sessions.create()
    store.next('count', faults.hang)
    const answer = sessions.count()
    await vi.advanceTimersByTimeAsync(1999)
    expect(await answer).toBe(1)
    store.every('count', faults.rejects)
    expect(await sessions.count()).toBe(1)
    store.every('scan', faults.rejects)
    await expect(sessions.count()).rejects.toMatchObject({ code: 'ERR_SESSION_STORE', operation: 'scan' })
    const counting = setUp({}, Object.assign(new ReferenceStore(), { scan: undefined }))
    counting.store.every('count', faults.rejects)
    await expect(counting.sessions.count()).rejects.toMatchObject({ operation: 'count', outcome: 'not-applied' })
  })

  it('rejects within storeTimeout if neither the count nor the first page of a walk is answered', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
    const { sessions, store } = setUp({ storeTimeout: '2s' })
    for (const verb of ['count', 'scan'] as const) store.every(verb, faults.hang)
    const counting = sessions.count().catch(error => error)
    await vi.advanceTimersByTimeAsync(1999)
    expect(store.counts()).toEqual({ count: 1, scan: 1 })
    await vi.advanceTimersByTimeAsync(2)
    expect(await counting).toMatchObject({ operation: 'scan', outcome: 'not-applied' })
  })

  it('gives the event loop to others between two pages', async () => {
    const { sessions } = setUp({}, new WithoutACount())
    for (const _ of times(2600)) await sessions.create()
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
    for (const _ of times(5)) await sessions.create()
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

  it('asks for no further page if the reader leaves, and for none before the first session is wanted', async () => {
    const { sessions, store } = setUp()
    for (const _ of times(10)) await sessions.create()
    store.reset()
    const walk = sessions.all({ pageSize: 3 })
    expect(store.calls).toEqual([])
    for await (const _ of walk) break
    expect(store.counts()).toEqual({ scan: 1 })
    expect(await walk.next()).toEqual({ done: true, value: undefined })
  })

  it('ends with the reason of its signal, within a page too', async () => {
    const { sessions } = setUp()
    for (const _ of times(10)) await sessions.create()
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
    const [one, two] = [await sessions.create({ user }), await sessions.create()]
    await setUp({ userIds: 'string' }, store.inner).sessions.create({ user: { id: 'ada', name: 'ada' } } as never)
    // Within a page, and in the next one.
    let before: unknown[] = []
    store.every('scan', async proceed => {
      const page = (await proceed()) as { records: unknown[] }
      const records = [...before, ...page.records, ...page.records]
      before = page.records
      return { ...page, records }
    })
    const keys = (await gather(sessions.all({ pageSize: 1 }))).map(({ key }) => key)
    expect(keys.sort()).toEqual([one.key, two.key].sort())
  })

  it('leaves out what expires while the reader takes its time, from that moment on', async () => {
    const { sessions, clock } = setUp()
    for (const _ of times(4)) await sessions.create()
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

  it('rejects if a page fails, and does not look like the end', async () => {
    const { sessions, store } = setUp()
    for (const _ of times(10)) await sessions.create()
    store.next('scan', proceed => proceed())
    store.next('scan', faults.rejects)
    await expect(gather(sessions.all({ pageSize: 4 }))).rejects.toMatchObject({
      code: 'ERR_SESSION_STORE',
      operation: 'scan',
      outcome: 'not-applied',
    })
  })
})

describe('what operators ask for wrongly', () => {
  it.each<[string, object | null, string]>([
    ['count', { signal: 'now' }, 'signal: expected an AbortSignal, got "now"'],
    ['count', { signl: undefined }, '(there are: signal)'],
    ['count', null, 'count: expected an object of options'],
    ['invalidateAll', { onProgress: true }, 'onProgress: expected a function, got true'],
    ['invalidateAll', { except: 'a secret' }, 'except: expected a session or its key'],
    ['invalidateAll', { except: {} }, 'session: expected the object that get() or logIn() returned'],
    ['invalidateAll', { passwordVersion: 1 }, 'invalidateAll: "passwordVersion" is not an option'],
  ])('is refused by %s, with the name of the option and what would be right: %j', async (method, options, message) => {
    const { sessions, store } = setUp() as any
    const error = await (async () => sessions[method](options))().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(TypeError)
    expect(error.message).toContain(message)
    expect(store.calls).toEqual([])
  })

  it('is refused by all at once: whoever walks later would never see why', () => {
    const { sessions, store } = setUp() as any
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
    await sessions.create({ user })
    expect(await sessions.updateUserSessions(1, { role: 'admin' })).toBe(1)
    const { sessions: counting } = setUp({}, Object.assign(new ReferenceStore(), { scan: undefined }))
    expect(await counting.count()).toBe(0)
    await expect(counting.namespace('acme').count()).rejects.toThrow(`count: ${lacks}`)
  })
})
