import assert from 'node:assert/strict'
import type { SessionId, UserSession } from 'coatcheck'
import { describe, it } from 'vitest'
import { CROWDS } from '../support/crowd.ts'
import { type Data, type GuaranteeKit, type SetUp, times } from '../support/guarantee-kit.ts'
import { MINUTE, SECOND } from '../support/test-clock.ts'

export function destroyedStaysDestroyed({ setUp, atEveryPoint }: GuaranteeKit): void {
  describe('G1: destroyed stays destroyed', () => {
    const lateWriters: Record<string, (at: SetUp, session: UserSession<Data, 'bigint'>) => Promise<unknown>> = {
      'a touch': async ({ sessions }, session) => sessions.get(session.secret),
      'an update': async ({ sessions }, session) => sessions.update(session, { late: true }),
      'a take': async ({ sessions }, session) => sessions.take(session, 'flash'),
      'a regenerate': async ({ sessions }, session) => sessions.regenerate(session),
      'a regenerate by ID': async ({ sessions }, session) => sessions.regenerate(session.secret),
      'a rotation': async ({ sessions }, session) => sessions.regenerate(session, { grace: '1m' }),
    }
    for (const [name, write] of Object.entries(lateWriters)) {
      it(`${name} that arrives around a logout does not revive the session`, () =>
        atEveryPoint(
          {},
          async at => {
            const session = await at.sessions.create({ user: at.user, data: { flash: 'hello' } })
            at.clock.advance(10 * MINUTE)
            return session
          },
          write,
          ({ sessions }, session) => sessions.destroy(session.secret),
          async ({ sessions, user }, session, outcome, where) => {
            assert.equal(await sessions.get(session.secret), null, where)
            assert.deepEqual(await sessions.list(user.id), [], where)
            const result = outcome.status === 'fulfilled' ? (outcome.value as { secret?: string } | null) : null
            if (result?.secret) assert.equal(await sessions.get(result.secret as SessionId), null, where)
          },
        ))

      it(`${name} after the logout says that the session is gone`, async () => {
        const at = await setUp()
        const session = await at.sessions.create({ user: at.user, data: { flash: 'hello' } })
        at.clock.advance(10 * MINUTE)
        await at.sessions.destroy(session)
        assert.equal((await write(at, session)) ?? null, null)
        assert.deepEqual(await at.sessions.list(at.user.id), [])
      })
    }

    it('destroying an ID that was regenerated a moment ago ends its successor', async () => {
      const { sessions, user } = await setUp()
      const session = await sessions.create({ user })
      const next = await sessions.regenerate(session)
      await sessions.destroy(session.secret)
      assert.equal(await sessions.get(next), null)
    })

    it('destroying an ID ends the last of a chain of renewals', async () => {
      const { sessions, clock, user } = await setUp()
      const first = await sessions.create({ user })
      const chain = [first]
      for (const _ of times(4)) {
        clock.advance(5 * SECOND)
        chain.push((await sessions.regenerate(chain.at(-1), { grace: '1m' }))! as typeof first)
      }
      assert.equal(new Set(chain.map(({ secret }) => secret)).size, 5)
      await sessions.destroy(first.secret)
      for (const { secret } of chain) assert.equal(await sessions.get(secret), null)
      assert.deepEqual(await sessions.list(user.id), [])
    })

    it('what a remember token began and the limit has ended does not begin again with it', async () => {
      const { sessions, user } = await setUp({ rememberFor: '30d', limit: { max: 1, onLimit: 'end-oldest' } })
      const token = await sessions.issueRememberToken(await sessions.create({ user }))
      const { session } = (await sessions.redeemRememberToken(token))!
      await sessions.get(session.secret)
      const login = await sessions.create({ user })
      assert.equal(await sessions.redeemRememberToken(token), null)
      assert.equal(await sessions.get(session.secret), null)
      assert.notEqual(await sessions.get(login), null)
    })

    it('destroying twice, an unknown ID, or nothing is no error', async () => {
      const { sessions, user } = await setUp()
      const session = await sessions.create({ user })
      await sessions.destroy(session)
      await sessions.destroy(session)
      await sessions.destroy(session.secret)
      await sessions.destroy('x'.repeat(43) as SessionId)
      await sessions.destroy(null)
      await sessions.destroy(undefined)
    })

    for (const [edge, crowd] of Object.entries(CROWDS))
      it(`a logout among 50 requests of one turn ends the session for whoever asks after it, over ${edge}`, async () => {
        const { sessions, user } = await setUp()
        const other = await sessions.create({ user: { ...user, name: 'max' } })
        const strangers = times(5).map(() => ({ cookie: `session_id=${other.secret}` }))
        await crowd(sessions, async ask => {
          for (const place of [0, 25, 49]) {
            const { secret } = await sessions.create({ user })
            const cookie = `session_id=${secret}`
            const requests = times(50).map(index => ({ path: index === place ? '/logout' : '/', cookie }))
            const replies = await ask([...strangers, ...requests])
            for (const { status, body } of replies.slice(5))
              assert.ok(status === 200 && (body === 'ada' || body === ''), `${status} ${body}`)
            assert.equal(replies[5 + place]!.body, '')
            // The logout alone clears the cookie.
            for (const [index, { cookies }] of replies.entries())
              assert.equal(cookies.length, index === 5 + place ? 1 : 0)
            for (const { body } of await ask(times(50).map(() => ({ cookie })))) assert.equal(body, '')
            for (const { body } of replies.slice(0, 5)) assert.equal(body, 'max')
          }
        })
      })

    it('of 100 gets in one turn with a logout, those that are asked for after it resolved find nothing', async () => {
      const { sessions, user } = await setUp()
      const other = await sessions.create({ user: { ...user, name: 'max' } })
      const turn = () => new Promise<void>(resolve => setImmediate(resolve))
      for (const turns of times(4)) {
        const { secret } = await sessions.create({ user })
        const early = times(50).map(() => sessions.get(secret))
        for (const _ of times(turns)) await turn()
        const destroyed = sessions.destroy(secret)
        const meanwhile = times(20).map(() => sessions.get(secret))
        await destroyed
        const after = times(50).map(index => sessions.get(index % 10 === 0 ? other.secret : secret))
        for (const [index, session] of (await Promise.all(after)).entries())
          assert.equal(session?.user?.name, index % 10 === 0 ? 'max' : undefined)
        for (const session of await Promise.all([...early, ...meanwhile]))
          assert.ok(session === null || session.user?.name === 'ada')
      }
    })

    it('20 parallel logouts, touches, updates and renewals of one session leave nothing', async () => {
      const { sessions, clock, user } = await setUp()
      for (const _ of times(3)) {
        const session = await sessions.create({ user })
        clock.advance(5 * MINUTE)
        await Promise.all(
          times(20).map(async index => {
            if (index === 7) return sessions.destroy(session.secret)
            if (index % 4 === 0) return sessions.get(session.secret)
            if (index % 4 === 1) return sessions.update(session, { [`k${index}`]: index })
            if (index % 4 === 2) return sessions.regenerate(session, { grace: '1m' })
            return sessions.regenerate(session.secret)
          }),
        )
        assert.equal(await sessions.get(session.secret), null)
        assert.deepEqual(await sessions.list(user.id), [])
      }
    })
  })
}
