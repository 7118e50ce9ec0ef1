import assert from 'node:assert/strict'
import type { SessionId, UserSession } from 'coatcheck'
import { describe, it } from 'vitest'
import {
  BOUNDARY_IDS,
  type Data,
  type GuaranteeKit,
  isCode,
  newUser,
  type Options,
  type SetUp,
  times,
} from '../support/guarantee-kit.ts'
import { MINUTE } from '../support/test-clock.ts'

export function logOutEverywhereIsComplete({ setUp, atEveryPoint }: GuaranteeKit): void {
  describe('G3: logout-everywhere is complete', () => {
    type Session = UserSession<Data, 'bigint'>
    const remembering = { rememberFor: '30d' } as const
    const derivations: Record<string, { options?: Options; run: (at: SetUp, context: any) => Promise<unknown> }> = {
      regenerate: { run: ({ sessions }, { session }) => sessions.regenerate(session) },
      'regenerate by ID': { run: ({ sessions }, { session }) => sessions.regenerate(session.secret) },
      rotate: { run: ({ sessions }, { session }) => sessions.regenerate(session.secret, { grace: '1m' }) },
      update: { run: ({ sessions }, { session }) => sessions.update(session, { a: 1 }) },
      'get with a touch': { run: ({ sessions }, { session }) => sessions.get(session.secret) },
      remember: { options: remembering, run: ({ sessions }, { session }) => sessions.issueRememberToken(session) },
      recall: { options: remembering, run: ({ sessions }, { token }) => sessions.redeemRememberToken(token) },
    }
    for (const [name, { options = {}, run }] of Object.entries(derivations)) {
      for (const passwordVersion of [undefined, 2]) {
        const how = passwordVersion === undefined ? '' : ' with a password version'
        it(`nothing that follows from a session by ${name} outlives invalidateUser${how}, at any point`, () =>
          atEveryPoint(
            options,
            async at => {
              const session: Session = await at.sessions.create({ user: { ...at.user, passwordVersion: 1 } })
              const token = options.rememberFor ? await at.sessions.issueRememberToken(session) : ''
              at.clock.advance(10 * MINUTE)
              return { session, token }
            },
            run,
            ({ sessions, user }) =>
              sessions.invalidateUser(
                user.id,
                passwordVersion === undefined ? {} : { minPasswordVersion: passwordVersion },
              ),
            async (at, { session, token }, outcome, where) => {
              const result: any = outcome.status === 'fulfilled' ? outcome.value : null
              assert.deepEqual(await at.sessions.list(at.user.id), [], where)
              assert.equal(await at.sessions.get(session.secret), null, where)
              if (typeof result === 'string') assert.equal(await at.sessions.redeemRememberToken(result), null, where)
              if (result?.session) assert.equal(await at.sessions.get(result.session.secret), null, where)
              if (result?.token) assert.equal(await at.sessions.redeemRememberToken(result.token), null, where)
              if (result?.secret) assert.equal(await at.sessions.get(result.secret), null, where)
              if (token) assert.equal(await at.sessions.redeemRememberToken(token), null, where)
              assert.deepEqual(await at.sessions.list(at.user.id), [], where)
            },
          ))
      }
    }

    for (const [name, run] of Object.entries<(at: SetUp, before: string) => Promise<Session>>({
      create: ({ sessions, user }) => sessions.create({ user: { ...user, passwordVersion: 1 } }),
      'regenerate of an anonymous session': ({ sessions, user }, before) =>
        sessions.logIn(before as SessionId, { user: { ...user, passwordVersion: 1 } }),
    })) {
      it(`a login by ${name} that verified the old password gets no session, at any point`, () =>
        atEveryPoint(
          {},
          async ({ sessions }) => (await sessions.create()).secret,
          run,
          ({ sessions, user }) => sessions.invalidateUser(user.id, { minPasswordVersion: 2 }),
          async ({ sessions, user }, _before, outcome, where) => {
            assert.deepEqual(await sessions.list(user.id), [], where)
            if (outcome.status === 'rejected') assert.equal(outcome.reason.code, 'ERR_SESSION_STALE_LOGIN', where)
            else assert.equal(await sessions.get(outcome.value), null, where)
          },
        ))
    }

    it('a login with the new password version, and one with a newer, gets its session', async () => {
      const { sessions, user } = await setUp()
      await sessions.invalidateUser(user.id, { minPasswordVersion: 2 })
      for (const passwordVersion of [2, 3]) {
        const session = await sessions.create({ user: { ...user, passwordVersion } })
        assert.equal((await sessions.get(session))?.user?.passwordVersion, passwordVersion)
      }
    })

    it('a login without a password version counts as version 0, and the minimum never falls', async () => {
      const { sessions, user } = await setUp()
      await sessions.invalidateUser(user.id, { minPasswordVersion: 5 })
      await sessions.invalidateUser(user.id, { minPasswordVersion: 3 })
      await sessions.invalidateUser(user.id)
      for (const passwordVersion of [undefined, null, 0, 3, 4])
        await assert.rejects(sessions.create({ user: { ...user, passwordVersion } }), isCode('ERR_SESSION_STALE_LOGIN'))
      await sessions.create({ user: { ...user, passwordVersion: 5 } })
    })

    it('a refused login leaves the anonymous session as it was', async () => {
      const { sessions, user } = await setUp()
      const before = await sessions.create({ data: { cart: 1 } })
      await sessions.invalidateUser(user.id, { minPasswordVersion: 1 })
      await assert.rejects(sessions.logIn(before, { user }), isCode('ERR_SESSION_STALE_LOGIN'))
      assert.equal((await sessions.get(before))?.data.cart, 1)
    })

    it('the order of a password change leaves the caller alone, under a new ID', async () => {
      const { sessions, user } = await setUp({ rememberFor: '30d' })
      const [caller, second, third] = [
        await sessions.create({ user: { ...user, passwordVersion: 1 } }),
        await sessions.create({ user: { ...user, passwordVersion: 1 } }),
        await sessions.create({ user: { ...user, passwordVersion: 1 } }),
      ]
      const token = await sessions.issueRememberToken(second)
      const next = await sessions.logIn(caller, { user: { ...user, passwordVersion: 2 } })
      assert.equal(await sessions.invalidateUser(user.id, { except: next, minPasswordVersion: 2 }), 2)
      for (const dead of [caller, second, third]) assert.equal(await sessions.get(dead.secret), null)
      assert.equal(await sessions.redeemRememberToken(token), null)
      assert.equal((await sessions.get(next))?.key, next.key)
      assert.deepEqual(
        (await sessions.list(user.id)).map(({ key }) => key),
        [next.key],
      )
    })

    it('`except` takes a session or a key, and counts only what was ended', async () => {
      const { sessions, user } = await setUp()
      const [a, b] = [await sessions.create({ user }), await sessions.create({ user })]
      assert.equal(await sessions.invalidateUser(user.id, { except: a.key }), 1)
      assert.equal(await sessions.get(b), null)
      assert.equal(await sessions.invalidateUser(user.id, { except: a }), 0)
      assert.equal(await sessions.invalidateUser(user.id, { except: null }), 1)
      assert.equal(await sessions.invalidateUser(user.id), 0)
    })

    it('gets that are asked for in the turn in which invalidateUser resolved find none of the user, all of the others', async () => {
      const { sessions, manager, user } = await setUp()
      const nodes = [sessions, manager()]
      const others = await Promise.all(times(10).map(() => sessions.create({ user: { id: newUser(), name: 'max' } })))
      for (const passwordVersion of [undefined, 2]) {
        const held = await Promise.all(times(10).map(() => sessions.create({ user: { ...user, passwordVersion: 1 } })))
        const gets = () =>
          [...held, ...others, ...held].map(({ secret }, index) => nodes[index % 2]!.get(secret, { touch: false }))
        const early = Promise.all(gets())
        const ended = await sessions.invalidateUser(
          user.id,
          passwordVersion === undefined ? {} : { minPasswordVersion: passwordVersion },
        )
        const [after, before] = await Promise.all([Promise.all(gets()), early])
        assert.equal(ended, 10)
        assert.deepEqual(
          after.map(session => session?.user?.name),
          [...held.map(() => undefined), ...others.map(() => 'max'), ...held.map(() => undefined)],
        )
        for (const session of before.slice(10, 20)) assert.equal(session?.user?.name, 'max')
      }
    })

    it('user IDs at the boundaries of 64 bits never match each other', async () => {
      const { manager } = await setUp()
      // The IDs are the same in each test: a tenant of its own keeps them apart from others in this store.
      const sessions = manager().namespace(`edge${newUser()}`.slice(0, 32))
      const held = new Map<bigint, Session>()
      for (const id of BOUNDARY_IDS) held.set(id, await sessions.create({ user: { id, name: '' } }))
      for (const id of BOUNDARY_IDS) {
        const list = await sessions.list(id)
        assert.deepEqual(
          list.map(({ key, user }) => [key, user?.id, user?.name]),
          [[held.get(id)!.key, id, '']],
        )
      }
      for (const [index, id] of BOUNDARY_IDS.entries()) {
        assert.equal(await sessions.invalidateUser(id), 1)
        for (const [at, other] of BOUNDARY_IDS.entries())
          assert.equal((await sessions.get(held.get(other)!)) === null, at <= index, `${other} after ${id}`)
      }
    })

    it('invalidateUser beside 20 parallel regenerates, renewals and saves leaves nothing', async () => {
      const { sessions, manager, user } = await setUp()
      const other = manager()
      for (const _ of times(3)) {
        const held = await Promise.all(times(5).map(() => sessions.create({ user })))
        const results = await Promise.all([
          ...times(20).map(index => {
            const session = held[index % 5]!
            const node = index % 2 ? sessions : other
            if (index % 3 === 0) return node.regenerate(session.secret)
            return index % 3 === 1 ? node.regenerate(session, { grace: '1m' }) : node.update(session, { index })
          }),
          other.invalidateUser(user.id),
        ])
        assert.deepEqual(await sessions.list(user.id), [])
        for (const result of results)
          if (typeof result === 'object' && result !== null) assert.equal(await sessions.get(result.secret), null)
      }
    })
  })
}
