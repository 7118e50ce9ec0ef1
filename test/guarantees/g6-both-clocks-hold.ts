import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { type GuaranteeKit, times } from '../support/guarantee-kit.ts'
import { HOUR, MINUTE } from '../support/test-clock.ts'

export function bothClocksHold({ setUp }: GuaranteeKit): void {
  describe('G6: both clocks hold', () => {
    it('a session ends after the idle time, and not a moment before', async () => {
      const { sessions, clock, user } = await setUp()
      const session = await sessions.create({ user })
      clock.advance(30 * MINUTE - 1)
      assert.equal((await sessions.get(session, { touch: false }))?.key, session.key)
      clock.advance(1)
      assert.equal(await sessions.get(session, { touch: false }), null)
      assert.equal(await sessions.update(session, { a: 1 }), null)
      assert.equal(await sessions.regenerate(session), null)
      assert.deepEqual(await sessions.list(user.id), [])
    })

    it('of many gets in one turn each is decided by the clock of its own node, and of its own moment', async () => {
      const { sessions, clock, manager, user } = await setUp()
      const held = await Promise.all(times(5).map(() => sessions.create({ user })))
      clock.advance(30 * MINUTE - 1)
      const nodes = [0, 1, -MINUTE, MINUTE, -1, 0].map(skew => ({ skew, node: manager({ now: clock.skewed(skew) }) }))
      const gets = () => held.flatMap(({ secret }) => nodes.map(({ node }) => node.get(secret, { touch: false })))
      const before = gets()
      // The clock jumps within the turn: whoever asked before is decided by the time before.
      clock.advance(1)
      const after = gets()
      for (const [index, session] of (await Promise.all(before)).entries())
        assert.equal(session !== null, nodes[index % nodes.length]!.skew < 1, `before: ${index}`)
      for (const [index, session] of (await Promise.all(after)).entries())
        assert.equal(session !== null, nodes[index % nodes.length]!.skew < 0, `after: ${index}`)
    })

    it('a session in use lives on, until the absolute time ends it', async () => {
      const { sessions, clock } = await setUp()
      const session = await sessions.create()
      for (const _ of times(71)) {
        clock.advance(10 * MINUTE)
        assert.equal((await sessions.get(session.secret))?.absoluteExpiresAt, session.absoluteExpiresAt)
      }
      clock.advance(10 * MINUTE - 1)
      assert.equal((await sessions.get(session.secret))?.expiresAt, session.absoluteExpiresAt)
      clock.advance(1)
      assert.equal(await sessions.get(session.secret), null)
    })

    it('neither a new ID nor a save makes the absolute time longer; a login begins anew', async () => {
      const { sessions, clock, user } = await setUp()
      let session: any = await sessions.create({ user })
      const end = session.absoluteExpiresAt
      for (const next of ['regenerate', 'rotate', 'update'] as const) {
        clock.advance(20 * MINUTE)
        if (next === 'rotate') session = await sessions.regenerate(session, { grace: '1m' })
        else session = next === 'update' ? await sessions.update(session, { a: 1 }) : await sessions.regenerate(session)
        assert.equal(session.absoluteExpiresAt, end)
        // A save is no use of the session: the idle time runs on.
        assert.equal(session.expiresAt, clock() + (next === 'update' ? 10 : 30) * MINUTE)
      }
      const login = await sessions.logIn(session, { user })
      assert.equal(login.absoluteExpiresAt, clock() + 12 * HOUR)
    })

    it('a clock that runs backwards neither extends a session nor ends it', async () => {
      const { sessions, clock } = await setUp()
      const session = await sessions.create()
      clock.advance(-2 * HOUR)
      const seen = await sessions.get(session.secret)
      assert.equal(seen?.expiresAt, session.expiresAt)
      assert.equal((await sessions.update(session, { a: 1 }))?.expiresAt, session.expiresAt)
      clock.advance(2 * HOUR + 29 * MINUTE)
      assert.equal((await sessions.get(session.secret, { touch: false }))?.expiresAt, session.expiresAt)
      clock.advance(MINUTE)
      assert.equal(await sessions.get(session.secret), null)
    })

    for (const skew of [-HOUR, -5 * MINUTE, 5 * MINUTE, HOUR]) {
      it(`a node whose clock is ${skew / MINUTE} minutes off does not end the sessions of the others`, async () => {
        const { sessions, clock, manager, user } = await setUp()
        const wrong = manager({ now: clock.skewed(skew) })
        const session = await sessions.create({ user })
        for (const _ of times(10)) {
          clock.advance(3 * MINUTE)
          await wrong.get(session.secret)
          await wrong.list(user.id)
          // A sweep allows for minutes, see SWEEP_MARGIN.
          if (skew < HOUR) await wrong.sweep()
          assert.notEqual(await sessions.get(session.secret), null)
        }
        const end = session.absoluteExpiresAt
        assert.ok(
          (await sessions.get(session.secret))!.expiresAt <= Math.min(end, clock() + Math.max(0, skew) + 30 * MINUTE),
        )
        clock.advance(12 * HOUR)
        assert.equal(await sessions.get(session.secret), null)
      })
    }
  })
}
