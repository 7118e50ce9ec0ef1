// The end of a remember-me series: where the store fails on the way, and beside what else goes on. What ends it rejects if the
// store fails, and the same call, repeated anywhere, finishes it.
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { BarrierStore, faults } from '../support/barrier-store.ts'
import { open, times, user } from '../support/manager-kit.ts'
import { WINDOW } from './devices.ts'
import { type At, LEAVING, type Node, setUpSeries as setUp, steal, visit, WAYS } from './ways-to-end.ts'

describe.each(Object.entries(WAYS))('%s', (_, { options, before, end }) => {
  it('leaves nothing of the series, wherever the store fails before it is repeated', async () => {
    let failures = 0
    for (const fault of [faults.rejects, faults.rejectsAfter, faults.throws])
      for (const place of times(12)) {
        const at = await setUp(options)
        await before?.(at)
        const failure = await end(at.failing(place, fault), at).catch((error: unknown) => error)
        if (failure instanceof Error) {
          expect(failure).toMatchObject({ code: 'ERR_SESSION_STORE' })
          failures += 1
          await end(at.node(), at)
        }
        expect(await at.left(), `failing at call ${place}`).toEqual([])
        for (const { session, token } of [at.first, at.begun]) {
          expect(await at.node().get(session.secret)).toBeNull()
          expect(await at.node().redeemRememberToken(token)).toBeNull()
        }
      }
    expect(failures).toBeGreaterThan(9)
  })
})

it('a theft is told, once unless the store fails in the call that deletes the series', async () => {
  for (const onTheft of ['end-device', 'invalidate-user'])
    for (const fault of [faults.rejects, faults.rejectsAfter])
      for (const place of times(10)) {
        const at = await setUp({ onTheft })
        await visit(at)
        const failure = await steal(at.failing(place, fault), at).catch((error: unknown) => error)
        const isDeleting = (failure as { operation?: string } | null)?.operation === 'delete'
        await Promise.all(times(3).map(() => steal(at.node(), at)))
        expect(isDeleting ? [1, 2] : [1], `${onTheft} ${place}`).toContain(at.thefts().length)
        expect(await at.left()).toEqual([])
      }
})

it('a token that was lost with its answer ends the session that the browser never got, by the next rotation at the latest', async () => {
  let failures = 0
  for (const fault of [faults.rejects, faults.rejectsAfter, faults.throws])
    for (const place of times(8)) {
      const at = await setUp()
      at.clock.advance(WINDOW + 1)
      await steal(at.failing(place, fault), at).catch(() => (failures += 1))
      const answer = (await steal(at.node(), at))!
      expect(await at.node().get(answer.session.secret), `failing at call ${place}`).not.toBeNull()
      const isLeft = (await at.node().get(at.begun.session.secret, { touch: false })) !== null
      // Written down, and failed before it could end that session.
      if (isLeft) expect([1, 2]).toContain(place)
      // Nor does a parallel request end what goes on under a new ID.
      const renewed = (await at.node().regenerate(answer.session))!
      await steal(at.node(), at)
      expect(await at.node().get(renewed.secret)).not.toBeNull()
      expect(await at.node().redeemRememberToken(answer.token)).not.toBeNull()
      expect(await at.node().get(at.begun.session.secret, { touch: false }), `failing at call ${place}`).toBeNull()
      expect(at.thefts()).toEqual([])
    }
  expect(failures).toBeGreaterThan(9)
})

it.each(LEAVING)(
  '%s lets the other devices of the user go on, also where a theft would end them',
  async (_, { end }) => {
    const at = await setUp({ onTheft: 'invalidate-user' })
    at.clock.advance(1)
    const other = await at.node().create({ user })
    const token = await at.node().issueRememberToken(other)
    await end(at.node(), at)
    expect((await at.node().get(other.secret))?.key).toBe(other.key)
    expect(await at.node().redeemRememberToken(token)).not.toBeNull()
  },
)

it.each(LEAVING)('%s ends the token where none are given any more', async (_, { end }) => {
  const at = await setUp()
  await end(at.node(at.store, { rememberFor: undefined }), at)
  expect(await at.left()).toEqual([])
})

describe('a series that no manager of ours wrote', () => {
  it.each(LEAVING)('hinders %s of no other series', async (_, { end }) => {
    const at = await setUp()
    const [mine] = await at.store.listUser('1', 'remember', { now: at.clock() })
    const foreign = { ...mine!, key: mine!.key.replace(/.{4}$/, 'AAAA') as never, data: 'null', writeId: 'AAAA' }
    await at.store.create(foreign, { now: at.clock() })
    await end(at.node(), at)
    expect((await at.left()).map(({ key }) => key)).toEqual([foreign.key])
  })

  it.each(LEAVING.filter(([, { readsSeries }]) => !readsSeries))(
    'ends by %s, also after a failure',
    async (_, { end }) => {
      for (const place of times(8)) {
        const at = await setUp()
        const [mine] = await at.store.listUser('1', 'remember', { now: at.clock() })
        const { key, version, seenAt, expiresAt } = mine!
        const change = { data: 'null', seenAt, expiresAt, writeId: 'AAAA' }
        expect(await at.store.update(key, version, change, { now: at.clock() })).toBe('updated')
        await end(at.failing(place, faults.rejects), at).catch(() => {})
        await end(at.node(), at)
        expect(await at.left(), `failing at call ${place}`).toEqual([])
      }
    },
  )

  it('and that has no user is removed, and the sessions of no user are asked for', async () => {
    const at = await setUp()
    const barrier = BarrierStore.over(at.store)
    barrier.next('read', proceed => proceed().then(record => ({ ...record, userId: null })))
    await at.node(barrier).revokeRememberToken(at.begun.token)
    expect(barrier.counts().listUser).toBeUndefined()
    expect(await at.node().redeemRememberToken(at.begun.token)).toBeNull()
  })
})

it('revoking costs four calls, where no tokens are given too: another node may give them', async () => {
  for (const rememberFor of [undefined, '30d']) {
    const at = await setUp()
    const barrier = BarrierStore.over(at.store)
    const sessions = at.node(barrier, { rememberFor })
    const session = await sessions.create({ user })
    barrier.reset()
    await sessions.revoke(1, session.key)
    expect(barrier.counts()).toEqual({ read: 1, delete: 1, listUser: 2 })
  }
})

it('revokeRememberToken costs four store calls, and one for each session that began with the token', async () => {
  const at = await setUp()
  const barrier = BarrierStore.over(at.store)
  await at.node(barrier).revokeRememberToken(at.begun.token)
  expect(barrier.counts()).toEqual({ read: 1, listUser: 2, delete: 3 })
})

it('all that a revoked device had is told as revoked', async () => {
  for (const of of [({ asked }: At) => asked.key, ({ begun }: At) => begun.session.key]) {
    const at = await setUp()
    await at.node().revoke(1, of(at))
    expect(at.ended().length).toBeGreaterThan(1)
    expect(new Set(at.ended().map(({ reason }) => reason))).toEqual(new Set(['revoked']))
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
  const late = (sessions: Node, { begun }: At) => open(sessions, `remember_token=${begun.token}`)

  it.each(LEAVING.filter(([, { by }]) => by === 'logout'))('begins nothing after %s', async (_, { end }) => {
    const at = await setUp()
    const sessions = at.node()
    await end(sessions, at)
    await expect(late(sessions, at).create()).rejects.toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
    expect(await late(sessions, at).update({ n: 1 })).toBeNull()
    for await (const session of sessions.all()) expect(session.key).toBe(at.asked.key)
  })

  it('is a visitor after it was revoked from another device, and where the user is at a limit', async () => {
    for (const limit of [undefined, { max: 1, onLimit: 'refuse' }]) {
      const at = await setUp()
      const sessions = at.node(at.store, { limit })
      if (limit === undefined) await sessions.revoke(1, at.begun.session.key)
      const visitor = await late(sessions, at).create()
      expect((await sessions.get(visitor.secret))?.user).toBeNull()
    }
  })
})

it.each(LEAVING)('a theft that %s overtakes is told once at most, and leaves nothing', async (_, { end }) => {
  for (const verb of ['listUser', 'delete'] as const) {
    const at = await setUp()
    await visit(at)
    const barrier = BarrierStore.over(at.store)
    const paused = barrier.pause(verb, 'before')
    const stolen = steal(at.node(barrier), at)
    await paused.reached
    await end(at.node(), at)
    paused.resume()
    expect(await stolen).toBeNull()
    expect(at.thefts().length).toBeLessThan(2)
    expect(await at.left()).toEqual([])
  }
})

describe('a series that begins a session in another process while it ends', () => {
  /** Its sessions are listed, and it is not deleted yet. */
  const meeting = async (options: object = {}) => {
    const at = await setUp(options)
    const barrier = BarrierStore.over(at.store)
    barrier.next(Object.hasOwn(options, 'onTheft') ? 'deleteUser' : 'listUser', async proceed => {
      const answer = await proceed()
      expect(await at.node().redeemRememberToken(at.begun.token)).not.toBeNull()
      return answer
    })
    return { ...at, barrier }
  }

  // Where it is revoked, the first list is of the series of the device.
  it.each(Object.entries(WAYS).filter(([, { by }]) => by !== 'revoke'))(
    'ends with that session: %s',
    async (_, { options, before, end }) => {
      const at = await meeting(options)
      await before?.(at)
      await end(at.node(at.barrier), at)
      expect(at.barrier.calls.length).toBeGreaterThan(3)
      expect(await at.left()).toEqual([])
    },
  )

  it('is found by a repeated call where the store failed after that', async () => {
    const at = await meeting()
    at.barrier.next('delete', faults.rejects)
    await expect(at.node(at.barrier).revokeRememberToken(at.begun.token)).rejects.toMatchObject({ operation: 'delete' })
    await at.node().revokeRememberToken(at.begun.token)
    expect(await at.left()).toEqual([])
  })

  it('leaves that session where the store fails in the look after the series is deleted', async () => {
    const at = await meeting()
    at.barrier.next('listUser', faults.rejects)
    await expect(at.node(at.barrier).revokeRememberToken(at.begun.token)).rejects.toMatchObject({
      operation: 'listUser',
      outcome: 'unknown',
    })
    await at.node().revokeRememberToken(at.begun.token)
    expect((await at.left()).map(({ kind }) => kind)).toEqual(['session'])
    await at.node().invalidateUser(1)
    expect(await at.left()).toEqual([])
  })
})

describe('in a memory store that is full of users', () => {
  /** A series, two sessions that it began, and the session that asked for it: there is no room for more. */
  const full = (options?: object) => setUp(options, new MemoryStore({ maxRecords: 4 }))

  it.each(Object.entries(WAYS))('%s ends the series, and what begins from it meanwhile', async (_, way) => {
    const { end, before, options } = way
    for (const place of times(6))
      for (const when of ['before', 'after'] as const) {
        const at = await full(options)
        await before?.(at)
        const barrier = BarrierStore.over(at.store)
        for (const _ of times(place)) barrier.next('any', proceed => proceed())
        barrier.next('any', async proceed => {
          const redeem = () =>
            at
              .node()
              .redeemRememberToken(at.begun.token)
              .catch(() => {})
          if (when === 'before') await redeem()
          const answer = await proceed()
          if (when === 'after') await redeem()
          return answer
        })
        await end(at.node(barrier), at)
        expect(await at.left(), `${when} call ${place}`).toEqual([])
      }
  })

  it('a token whose series ends before its session is stored begins nothing, and is no outage', async () => {
    const at = await full()
    const barrier = BarrierStore.over(at.store)
    barrier.next('create', async proceed => {
      await at.node().revokeRememberToken(at.begun.token)
      for (const id of times(3)) await at.node().create({ user: { id, name: '' } })
      return proceed()
    })
    expect(await at.node(barrier).redeemRememberToken(at.begun.token)).toBeNull()
  })
})
