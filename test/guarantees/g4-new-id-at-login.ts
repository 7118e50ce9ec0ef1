import assert from 'node:assert/strict'
import type { SessionId } from 'coatcheck'
import { CLOCK_TOLERANCE } from 'coatcheck/custom-store'
import { describe, it } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { type Data, type GuaranteeKit, isCode, newUser, times } from '../support/guarantee-kit.ts'
import { MINUTE, SECOND } from '../support/test-clock.ts'

export function newIdAtLogin({ setUp }: GuaranteeKit): void {
  describe('G4: a new login gets a new ID', () => {
    it('the old ID is dead after a login, whichever user had it', async () => {
      const { sessions, user } = await setUp()
      const other = { id: newUser(), name: 'max' }
      for (const before of [
        await sessions.create({ data: { cart: 1 } }),
        await sessions.create({ user }),
        await sessions.create({ user: other }),
      ]) {
        const next = await sessions.logIn(before.secret, { user })
        assert.notEqual(next.secret, before.secret)
        assert.equal(await sessions.get(before.secret), null)
      }
    })

    for (const [how, current] of [
      ['by session', (session: any) => session],
      ['by ID', (session: any) => session.secret],
    ] as const)
      it(`a login ${how} may carry over the data of an anonymous session or the user's own, never another's`, async () => {
        const { sessions, manager, user } = await setUp({ initial: () => ({ cart: 'empty' }) })
        const other = { id: newUser(), name: 'max' }
        for (const [owner, expected] of [
          [undefined, 'book'],
          [user, 'book'],
          [other, 'empty'],
        ] as const) {
          const data = { cart: 'book', secret: 'of the one before' }
          const before = owner ? await sessions.create({ user: owner, data }) : await sessions.create({ data })
          // Met twice: what a conflict makes it read again is no different.
          await manager().update(before, { seen: 1 })
          const offered: Data[] = []
          const login = await sessions.logIn(current(before), {
            user,
            data: held => {
              offered.push({ ...held })
              return held
            },
          })
          assert.equal(login.data.cart, expected)
          assert.equal(login.data.secret, expected === 'book' ? data.secret : undefined)
          assert.equal((await sessions.get(login))?.data.cart, expected)
          if (owner === other) for (const held of offered) assert.deepEqual(held, { cart: 'empty' })
        }
      })

    it('an ID that the client made up is not taken over', async () => {
      const { sessions, user } = await setUp()
      const chosen = 'chosen-by-the-client-0123456789-0123456789A'
      assert.equal(chosen.length, 43)
      assert.equal(await sessions.get(chosen as SessionId), null)
      assert.equal(await sessions.regenerate(chosen as SessionId), null)
      const login = await sessions.logIn(chosen as SessionId, { user })
      assert.notEqual(login.secret, chosen)
      assert.equal(await sessions.get(chosen as SessionId), null)
    })

    for (const [how, current] of [
      ['by session', (session: any) => session],
      ['by ID', (session: any) => session.secret],
    ] as const) {
      it(`20 parallel regenerates ${how} in two processes end in one successor or in none`, async () => {
        const { sessions, manager, user } = await setUp()
        const other = manager()
        const session = await sessions.create({ user })
        const results = await Promise.all(
          times(20).map(index => (index % 2 ? sessions : other).regenerate(current(session))),
        )
        const next = new Set(results.flatMap(result => (result === null ? [] : [result.secret])))
        assert.equal(next.size, 1)
        assert.equal(await sessions.get(session.secret), null)
        assert.equal((await sessions.list(user.id)).length, 1)
      })

      it(`20 parallel renewals ${how} in two processes all end in one successor`, async () => {
        const { sessions, manager, user } = await setUp()
        const other = manager()
        const session = await sessions.create({ user, data: { cart: 1 } })
        const results = await Promise.all(
          times(20).map(index => (index % 2 ? sessions : other).regenerate(current(session), { grace: '1m' })),
        )
        assert.equal(new Set(results.map(result => result?.secret)).size, 1)
        assert.equal((await sessions.get(results[0]!))?.data.cart, 1)
        assert.equal((await sessions.list(user.id)).length, 1)
      })

      it(`20 parallel logins ${how} leave the old ID dead, and every one of them a session of its own`, async () => {
        const { sessions, manager, user } = await setUp()
        const other = manager()
        const before = await sessions.create()
        const logins = await Promise.all(
          times(20).map(index => (index % 2 ? sessions : other).logIn(current(before), { user })),
        )
        assert.equal(new Set(logins.map(({ secret }) => secret)).size, 20)
        assert.equal(await sessions.get(before.secret), null)
      })
    }

    it('a login whose old session cannot be ended is refused, and nothing is left of it', async () => {
      const { sessions, store, user } = await setUp()
      const before = await sessions.create({ data: { cart: 1 } })
      store.next('replace', faults.rejects)
      await assert.rejects(sessions.logIn(before, { user }), isCode('ERR_SESSION_STORE'))
      assert.deepEqual(await sessions.list(user.id), [])
      assert.equal((await sessions.get(before))?.data.cart, 1)
    })

    it('the old ID of a renewal leads to the new session on nodes whose clocks are 5 minutes apart', async () => {
      const { sessions, manager, clock, user } = await setUp()
      for (const skew of [-5 * MINUTE, 5 * MINUTE]) {
        const other = manager({ now: () => clock() + skew })
        const before = await sessions.create({ user })
        const next = await sessions.regenerate(before, { grace: '30s' })
        clock.advance(29 * SECOND)
        const followed = await other.get(before.secret)
        assert.equal(followed?.secret, next?.secret)
        assert.equal((await other.regenerate(before.secret, { grace: '30s' }))?.secret, next?.secret)
      }
    })

    it('the old ID of a renewal leads to the new session until grace and clock tolerance are over', async () => {
      const { sessions, clock, user } = await setUp()
      const before = await sessions.create({ user })
      const next = await sessions.regenerate(before, { grace: '30s' })
      clock.advance(30 * SECOND + CLOCK_TOLERANCE - 1)
      const followed = await sessions.get(before.secret)
      assert.equal(followed?.secret, next?.secret)
      clock.advance(1)
      assert.equal(await sessions.get(before.secret), null)
      assert.equal((await sessions.get(next))?.key, next?.key)
      await sessions.destroy(before.secret)
      assert.equal(await sessions.get(next), null)
    })
  })
}
