import { type SessionEvent, type SessionId, SessionManager, SessionStoreError } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it, vi } from 'vitest'
import { BarrierStore, faults } from '../support/barrier-store.ts'
import { onlyHost } from '../support/only-host.ts'
import { HOUR, MINUTE, SECOND, testClock } from '../support/test-clock.ts'

const user = { id: 1, name: 'ada' }
function setUp(options: object = {}) {
  const store = BarrierStore.over(new MemoryStore())
  const clock = testClock()
  return { store, clock, sessions: new SessionManager({ store, now: clock, sweepInterval: false, ...options }) }
}

describe('the option getPasswordVersion, alone', () => {
  it('refuses an older session, and accepts the same and a newer one', async () => {
    let current = 2
    const { sessions } = setUp({ getPasswordVersion: async (id: bigint) => (id === 1n ? current : 0) })
    const [none, older, same, newer] = await Promise.all(
      [null, 1, 2, 3].map(passwordVersion => sessions.create({ user: { ...user, passwordVersion } })),
    )
    const other = await sessions.create({ user: { id: 2, name: 'max', passwordVersion: null } })
    const anonymous = await sessions.create()
    for (const dead of [none!, older!]) {
      expect(await sessions.get(dead.secret)).toBeNull()
      expect(await sessions.regenerate(dead.secret)).toBeNull()
      expect(await sessions.regenerate(dead.secret, { grace: '1m' })).toBeNull()
    }
    for (const live of [same!, newer!, other, anonymous]) expect(await sessions.get(live.secret)).not.toBeNull()
    expect(new Set((await sessions.list(1)).map(({ key }) => key))).toEqual(new Set([same!.key, newer!.key]))
    current = 3
    expect(await sessions.get(same!.secret)).toBeNull()
    expect(await sessions.get(newer!.secret)).not.toBeNull()
  })

  it('a login that does not say the version is a TypeError that says what to give, and nothing is stored or ended', async () => {
    const { sessions, store } = setUp({ getPasswordVersion: (id: bigint) => (id === 1n ? 2 : 0) })
    const session = await sessions.create({ user: { ...user, passwordVersion: 2 } })
    store.reset()
    const told = 'user.passwordVersion: expected the version that was read with the password hash'
    const request = { method: 'GET', secure: true, cookie: `session_id=${session.secret}`, header: () => null }
    const visit = openVisit(sessions, request)
    for (const logIn of [
      () => sessions.create({ user }),
      () => sessions.create({ user: { ...user, passwordVersion: undefined } }),
      () => sessions.logIn(session, { user }),
      () => sessions.namespace('acme').create({ user }),
      () => visit.logIn({ user }),
    ])
      await expect(logIn()).rejects.toThrow(told)
    for (const verb of ['create', 'replace', 'delete']) expect(store.counts()).not.toHaveProperty(verb)
    expect(await sessions.get(session.secret)).not.toBeNull()
    // Of a user who has none: it lives while the application answers 0.
    const none = await sessions.create({ user: { id: 2, name: 'max', passwordVersion: null } })
    expect(await sessions.get(none.secret)).not.toBeNull()
  })

  it('a login with an outdated session leaves nothing under the old ID', async () => {
    const { sessions, store } = setUp({ getPasswordVersion: () => 2 })
    const old = await sessions.create({ user: { ...user, passwordVersion: 1 } })
    await sessions.logIn(old.secret, { user: { ...user, passwordVersion: 2 } })
    expect(await store.inner.read(old.key, { now: 0 })).toBeNull()
  })

  it('that throws, or answers nonsense, is an error and no logout', async () => {
    let answer: () => unknown = () => 1
    const { sessions } = setUp({ getPasswordVersion: () => answer() })
    const session = await sessions.create({ user: { ...user, passwordVersion: 1 } })
    answer = () => {
      throw new Error('users are down')
    }
    await expect(sessions.get(session.secret)).rejects.toThrow('users are down')
    answer = () => Promise.reject(new Error('users are down'))
    await expect(sessions.get(session.secret)).rejects.toThrow('users are down')
    answer = () => '1'
    await expect(sessions.get(session.secret)).rejects.toThrow('getPasswordVersion(): expected a whole number')
    answer = () => 1
    expect(await sessions.get(session.secret)).not.toBeNull()
  })

  it('that never answers is an outage after storeTimeout, no logout and no hang', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    try {
      let answer: () => unknown = () => 1
      const errors: SessionStoreError[] = []
      const onEvent = (event: SessionEvent) => event.type === 'store-error' && errors.push(event.error)
      const { sessions, store } = setUp({
        getPasswordVersion: () => answer(),
        rememberFor: '30d',
        storeTimeout: '3s',
        onEvent,
      })
      const session = await sessions.create({ user: { ...user, passwordVersion: 1 } })
      const token = await sessions.issueRememberToken(session)
      let answerLate!: (error: Error) => void
      answer = () => new Promise((_, reject) => (answerLate = reject))
      for (const call of [
        () => sessions.get(session.secret),
        () => sessions.list(1),
        () => sessions.redeemRememberToken(token),
        () => sessions.regenerate(session.secret),
        () => sessions.regenerate(session.secret, { grace: '1m' }),
        () => sessions.logIn(session.secret, { user: { ...user, passwordVersion: 1 } }),
      ]) {
        const settled = call().then(
          () => 'an answer',
          (error: unknown) => error,
        )
        await vi.advanceTimersByTimeAsync(2998)
        const early = await Promise.race([settled, Promise.resolve('nothing yet')])
        expect(early).toBe('nothing yet')
        await vi.advanceTimersByTimeAsync(4)
        const error = (await Promise.race([settled, Promise.resolve('a hang')])) as SessionStoreError
        expect(error).toBeInstanceOf(SessionStoreError)
        expect(error).toMatchObject({
          status: 503,
          operation: 'read',
          outcome: 'not-applied',
          message: 'read: getPasswordVersion() did not answer within storeTimeout',
        })
        answerLate(new Error('too late'))
      }
      expect(errors).toHaveLength(6)
      expect(store.counts()).not.toHaveProperty('delete')
      expect(store.counts()).not.toHaveProperty('replace')
      answer = () => 1
      expect(await sessions.get(session.secret)).not.toBeNull()
    } finally {
      vi.useRealTimers()
    }
  })

  it('has what the store left of storeTimeout, not all of it once more', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    try {
      const { sessions, store } = setUp({
        getPasswordVersion: () => new Promise(resolve => setTimeout(resolve, 1500, 1)),
        storeTimeout: '2s',
      })
      const session = await sessions.create({ user: { ...user, passwordVersion: 1 } })
      store.next('read', async proceed => {
        await new Promise(resolve => setTimeout(resolve, 1000))
        return proceed()
      })
      const call = sessions.get(session.secret).catch((error: unknown) => error)
      await vi.advanceTimersByTimeAsync(2002)
      expect(await Promise.race([call, Promise.resolve('still waiting')])).toBeInstanceOf(SessionStoreError)
    } finally {
      vi.useRealTimers()
    }
  })

  it('is asked once by list, however many sessions the user has, and not where there is none', async () => {
    const asked: bigint[] = []
    const { sessions } = setUp({
      getPasswordVersion: (id: bigint) => {
        asked.push(id)
        return 2
      },
    })
    for (const passwordVersion of [1, 2, 2, 3, null]) await sessions.create({ user: { ...user, passwordVersion } })
    expect(await sessions.list(1)).toHaveLength(3)
    expect(asked).toEqual([1n])
    expect(await sessions.list(2)).toEqual([])
    expect(asked).toEqual([1n])
  })
})

it('isFresh: a password, verified lately, by this person', async () => {
  const { sessions, clock } = setUp()
  const session = await sessions.create({ user })
  expect(sessions.isFresh(session, '10m')).toBe(true)
  clock.advance(10 * MINUTE)
  const next = (await sessions.regenerate(session))!
  expect([sessions.isFresh(next, '10m'), sessions.isFresh(next, '9m')]).toEqual([true, false])
  expect(sessions.isFresh(await sessions.create(), '10m')).toBe(false)
  expect(sessions.isFresh(null, '10m')).toBe(false)
})

describe('verifiedAt: a login whose password was verified elsewhere, earlier or never', () => {
  it('counts for isFresh from then on, or never, and says nothing about when the session ends', async () => {
    const { sessions, clock } = setUp()
    const now = clock()
    const earlier = await sessions.create({ user, verifiedAt: now - 8 * MINUTE })
    const never = await sessions.create({ user, verifiedAt: null })
    const unsaid = await sessions.create({ user, verifiedAt: undefined })
    expect([earlier, never, unsaid].map(session => sessions.isFresh(session, '9m'))).toEqual([true, false, true])
    expect(sessions.isFresh(never, '400d')).toBe(false)
    clock.advance(2 * MINUTE)
    expect([earlier, never, unsaid].map(session => sessions.isFresh(session, '9m'))).toEqual([false, false, true])
    for (const session of [earlier, never]) {
      expect(session.createdAt).toBe(now)
      expect(session.absoluteExpiresAt).toBe(unsaid.absoluteExpiresAt)
    }
  })

  it('is honoured by requireUser', async () => {
    const { sessions, clock } = setUp()
    const { secret } = await sessions.create({ user, verifiedAt: clock() - HOUR })
    const visit = openVisit(sessions, {
      method: 'GET',
      secure: true,
      cookie: `session_id=${secret}`,
      header: onlyHost,
    })
    expect((await visit.requireUser({ freshWithin: '1h' })).user.id).toBe(1n)
    await expect(visit.requireUser({ freshWithin: '59m' })).rejects.toMatchObject({ code: 'ERR_SESSION_NOT_FRESH' })
  })

  it('survives each change of the session but the next login, and is no part of the data', async () => {
    for (const verifiedAt of [null, 8]) {
      const { sessions, clock } = setUp({ initial: () => ({ n: 1, flash: 'hi' }), rememberFor: '30d' })
      const given = verifiedAt === null ? null : clock() - verifiedAt * MINUTE
      const freshness = (session: any) => ['9m', '7m'].map(within => sessions.isFresh(session, within as '9m'))
      const anonymous = await sessions.create({ data: { n: 5 } })
      let session: any = await sessions.logIn(anonymous, {
        user,
        verifiedAt: given,
        data: (d: any) => ({ n: d.n }),
      })
      const expected = [verifiedAt !== null, false]
      const steps: (() => Promise<any>)[] = [
        () => sessions.get(session.secret),
        () => sessions.update(session, { n: 2 } as object),
        () =>
          sessions.update(session, (draft: any) => {
            draft.n += 1
          }),
        () => sessions.take(session, 'flash' as never).then(() => sessions.get(session.secret)),
        () => sessions.regenerate(session, { grace: '1m' }),
        () => sessions.regenerate(session),
        () => sessions.regenerate(session.secret),
      ]
      for (const step of steps) {
        session = await step()
        expect(freshness(session)).toEqual(expected)
      }
      expect(session.data).toEqual({ n: 3, flash: 'hi' })
      const remembered = await sessions.redeemRememberToken(await sessions.issueRememberToken(session))
      expect(freshness(remembered!.session)).toEqual([false, false])
      const again = await sessions.logIn(session, { user, data: (before: any) => before })
      expect(freshness(again)).toEqual([true, true])
      expect(again.data).toEqual({ n: 3, flash: 'hi' })
    }
  })

  it('costs a session without it nothing, and does not count in maxDataBytes', async () => {
    const { sessions, store, clock } = setUp({ maxDataBytes: 9 })
    await sessions.create({ user, data: { a: '1' } })
    await sessions.create({ user, data: { a: '1' }, verifiedAt: clock() - 1 })
    expect(store.calls.map(({ args }) => args[0].data)).toEqual(['{"a":"1"}', `@v${clock() - 1}@{"a":"1"}`])
  })

  it('may be ahead of this clock by what clocks may differ, which is now', async () => {
    const { sessions, store, clock } = setUp()
    const session = await sessions.create({ user, verifiedAt: clock() + 5 * MINUTE })
    expect(store.calls[0]!.args[0].data).toBe('{}')
    clock.advance(MINUTE)
    expect(sessions.isFresh(session, '59s')).toBe(false)
  })

  it('that is nonsense, in the future, or in seconds is a TypeError, and nothing begins', async () => {
    const { sessions, store, clock } = setUp({ rememberFor: '30d' })
    const { secret } = (await sessions.redeemRememberToken(
      await sessions.issueRememberToken(await sessions.create({ user })),
    ))!.session
    store.reset()
    const wrong = [clock() + 6 * MINUTE, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '2026-01-01', 5n, new Date()]
    for (const verifiedAt of wrong as never[]) {
      const message = /^verifiedAt: expected epoch milliseconds, not in the future, or null for never, got /
      await expect(sessions.create({ user, verifiedAt })).rejects.toThrow(message)
      await expect(sessions.logIn(secret, { user, verifiedAt })).rejects.toThrow(message)
    }
    const seconds = Math.floor(clock() / 1000)
    await expect(sessions.create({ user, verifiedAt: seconds })).rejects.toThrow(
      'which looks like seconds: multiply by 1000',
    )
    await expect(sessions.create({ data: {}, verifiedAt: null } as object)).rejects.toThrow(
      'create: "verifiedAt" is not an option; it belongs to a login: { user, … } (there are: data)',
    )
    expect(store.calls).toEqual([])
  })

  it('a copy of a session is not fresh, but an error: it does not know when the password was verified', async () => {
    const { sessions } = setUp()
    const session = await sessions.create({ user, verifiedAt: null })
    expect(() => sessions.isFresh({ ...session } as never, '1h')).toThrow(
      /^session: expected the object that get\(\) or logIn\(\) returned/,
    )
  })

  it('that was broken in the store is never', async () => {
    const { sessions, store } = setUp()
    const session = await sessions.create({ user, data: { a: 1 }, verifiedAt: 5e11 })
    const record: any = await store.inner.read(session.key, { now: 0 })
    store.every('read', faults.answers(Promise.resolve({ ...record, data: '@vx@{"a":1}' })))
    const seen = (await sessions.get(session.secret))!
    expect(sessions.isFresh(seen, '400d')).toBe(false)
    expect(seen.data).toEqual({})
  })
})

it('update: a function that is asynchronous is refused before anything is written', async () => {
  const { sessions, store } = setUp()
  const session = await sessions.create({ data: { a: 1 } })
  store.reset()
  await expect(
    sessions.update(session, (async (draft: any) => {
      draft.a = 2
      throw new Error('late')
    }) as never),
  ).rejects.toThrow('update: make the function synchronous')
  expect(store.calls).toEqual([])
})

describe('update with a function that returns something', () => {
  const data = () => ({ n: 1, tags: ['a', 'b'], queue: [{ id: 1 }, { id: 2 }], deep: { list: [3, 1, 2] } })
  type Data = ReturnType<typeof data>
  const begin = async () => {
    const made = setUp({ initial: data })
    const session: any = await made.sessions.create()
    made.store.reset()
    const update = (change: (draft: Data) => unknown) => made.sessions.update(session, change as never)
    return { ...made, session, update }
  }

  it.each<[string, (draft: Data) => unknown]>([
    ['a copy with a change', d => ({ ...d, n: d.n + 1 })],
    ['a copy without one', d => ({ ...d })],
    ['a part of the keys', d => ({ n: d.n + 1 })],
    ['an empty object', () => ({})],
    [
      'a copy, after an edit',
      d => {
        d.tags.push('c')
        return { ...d, n: d.n + 1 }
      },
    ],
    ['a structured clone', d => structuredClone(d)],
    ['a filtered list', d => d.tags.filter(tag => tag === 'a')],
    ['a mapped list', d => d.queue.map(item => ({ ...item, id: 0 }))],
    ['a copy of a part', d => ({ ...d.deep })],
    ['an object without a prototype', d => Object.assign(Object.create(null), d)],
    ['an instance', () => new Map()],
    ['a function', d => () => d],
  ])('%s is a TypeError that says what to do, and nothing is written', async (_, change) => {
    const { store, update, sessions, session } = await begin()
    await expect(update(change)).rejects.toThrow(TypeError)
    await expect(update(change)).rejects.toThrow(/^update: .* would be lost: edit the draft and return nothing/)
    expect(store.calls).toEqual([])
    expect((await sessions.get(session))?.data).toEqual(data())
  })

  it.each<[string, (draft: Data) => unknown, Partial<Data>]>([
    ['n++', d => d.n++, { n: 2 }],
    ['n += 1', d => (d.n += 1), { n: 2 }],
    ['push', d => d.tags.push('c'), { tags: ['a', 'b', 'c'] }],
    ['push of an object', d => d.queue.push({ id: 3 }), { queue: [{ id: 1 }, { id: 2 }, { id: 3 }] }],
    ['pop of text', d => d.tags.pop(), { tags: ['a'] }],
    ['shift of an object', d => d.queue.shift(), { queue: [{ id: 2 }] }],
    ['splice', d => d.tags.splice(0, 1), { tags: ['b'] }],
    ['splice of objects', d => d.queue.splice(1), { queue: [{ id: 1 }] }],
    ['sort', d => d.deep.list.sort(), { deep: { list: [1, 2, 3] } }],
    ['an assigned list', d => (d.tags = d.tags.filter(tag => tag === 'b')), { tags: ['b'] }],
    ['an assigned object', d => (d.deep = { list: [] }), { deep: { list: [] } }],
    ['Object.assign', d => Object.assign(d, { n: 5 }), { n: 5 }],
    [
      'the draft',
      d => {
        d.n = 7
        return d
      },
      { n: 7 },
    ],
    [
      'a part of it',
      d => {
        d.deep.list.push(4)
        return d.deep
      },
      { deep: { list: [3, 1, 2, 4] } },
    ],
    ['delete', d => delete (d as Partial<Data>).n, { n: 1 }],
    [
      'null',
      d => {
        d.n = 3
        return null
      },
      { n: 3 },
    ],
  ])('%s is an edit like any other', async (_, change, expected) => {
    const { update } = await begin()
    expect((await update(change))?.data).toEqual({ ...data(), ...expected })
  })
})

it('update: what the function throws is the caller’s, and the old data stays', async () => {
  const { sessions } = setUp()
  const session = await sessions.create({ data: { a: 1 } })
  await expect(
    sessions.update(session, draft => {
      draft.a = 2
      throw new Error('mine')
    }),
  ).rejects.toThrow('mine')
  expect((await sessions.get(session))?.data).toEqual({ a: 1 })
  expect((await sessions.update(session, { a: undefined }))?.data).toEqual({})
})

it('a session that a parallel request rotated is not rotated again, nor shown once it is gone', async () => {
  const { sessions, clock } = setUp()
  const old = await sessions.create({ user })
  const next = (await sessions.regenerate(old, { grace: '1m' }))!
  clock.advance(SECOND)
  const followed = (await sessions.get(old.secret))!
  expect((await sessions.regenerate(followed, { grace: '1m' }))?.secret).toBe(next.secret)
  expect((await sessions.regenerate(old.secret, { grace: '1m' }))?.secret).toBe(next.secret)
  await sessions.destroy(next)
  expect(await sessions.regenerate(followed, { grace: '1m' })).toBeNull()
})

it('anonymous traffic writes nothing', async () => {
  const { sessions, store } = setUp()
  for (const current of [null, undefined, '', 'x', 'x'.repeat(43)]) {
    expect(await sessions.get(current as SessionId | null | undefined)).toBeNull()
    expect(await sessions.regenerate(current as SessionId | null | undefined)).toBeNull()
  }
  expect(store.counts()).toEqual({ read: 2 })
})

it('touch: false leaves the visit unwritten, for polls and sockets', async () => {
  const { sessions, store, clock } = setUp()
  const { secret, expiresAt } = await sessions.create()
  clock.advance(20 * MINUTE)
  store.reset()
  expect((await sessions.get(secret, { touch: false }))?.expiresAt).toBe(expiresAt)
  expect(store.counts()).toEqual({ read: 1 })
})
