// Whoever holds a session may ask for new IDs in a loop. Each leaves a forward, and whoever ends the session by an old ID,
// or spares it by one, follows them all: so there are not many.
import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { type GuaranteeKit, isCode, type SetUp, times } from '../support/guarantee-kit.ts'
import { MINUTE } from '../support/test-clock.ts'

/** New IDs of one line within the life of a forward. */
const MAX_IDS = 32
const LIFE = 9 * MINUTE
/** How many commands of the database one call may need: to follow each forward of two windows, and to delete it. */
const MAX_COMMANDS = 4 * MAX_IDS + 20
const roomy = { idleTimeout: '2h' } as const

export function chainsAreBounded({ setUp, backend: { commands } }: GuaranteeKit): void {
  describe('chains of new IDs are bounded', () => {
    /** As many forwards as may stand at once: those of the end of one window and of the begin of the next. */
    async function longest({ sessions, clock, user }: SetUp, grace?: '2m') {
      const renew = async (session: any) => (await sessions.regenerate(session, grace && { grace }))!
      // The window begins with the first new ID; the forward that it leaves does not outlive it.
      const first: any = await renew(await sessions.create({ user }))
      let last = first
      clock.advance(LIFE - MINUTE)
      for (const _ of times(MAX_IDS - 1)) last = await renew(last)
      await assert.rejects(renew(last), isCode('ERR_SESSION_CONFLICT'))
      clock.advance(MINUTE)
      for (const _ of times(MAX_IDS)) last = await renew(last)
      return { first, last }
    }

    /** Runs a call, and answers how often it asked the store. The database counts how often it was read. */
    async function cost({ store }: SetUp, call: () => Promise<unknown>) {
      store.reset()
      const before = await commands?.()
      await call()
      const read = (await commands?.()) ?? 0
      assert.ok(read - (before ?? 0) <= MAX_COMMANDS, `the database was read ${read - (before ?? 0)} times`)
      return store.counts()
    }

    it('the next is refused, the session goes on as it is, and it gets new IDs again later', async () => {
      const at = await setUp({ ...roomy })
      const { sessions, clock, user, events } = at
      let last: any = await sessions.create({ user, data: { n: 1 } })
      for (const _ of times(MAX_IDS)) last = await sessions.regenerate(last)
      for (const ref of [last, last.secret])
        for (const options of [{}, { grace: '1m' }] as const)
          await assert.rejects(sessions.regenerate(ref, options), isCode('ERR_SESSION_CONFLICT'))
      assert.equal(events.at(-1).type, 'write-refused')
      assert.equal((await sessions.get(last.secret))?.key, last.key)
      assert.equal((await sessions.list(user.id)).length, 1)
      clock.advance(LIFE)
      const next = (await sessions.regenerate(last.secret))!
      assert.deepEqual(next.data, { n: 1 })
      assert.equal(await sessions.get(last.secret), null)
    })

    it('of parallel requests for new IDs, no more are granted', async () => {
      const { sessions, user, manager } = await setUp({ ...roomy })
      let last: any = await sessions.create({ user })
      for (const _ of times(MAX_IDS - 1)) last = await sessions.regenerate(last)
      const outcomes = await Promise.allSettled(times(6).map(at => (at % 2 ? sessions : manager()).regenerate(last)))
      const granted = outcomes.flatMap(each => (each.status === 'fulfilled' && each.value !== null ? [each.value] : []))
      assert.equal(granted.length, 1)
      await assert.rejects(sessions.regenerate(granted[0]!), isCode('ERR_SESSION_CONFLICT'))
    })

    it('a login begins to count anew, with each ID that was there before', async () => {
      const { sessions, user } = await setUp({ ...roomy })
      let last: any = await sessions.create({ user })
      for (const _ of times(3)) {
        for (const _ of times(MAX_IDS)) last = await sessions.regenerate(last)
        await assert.rejects(sessions.regenerate(last), isCode('ERR_SESSION_CONFLICT'))
        last = await sessions.logIn(last, { user })
      }
      assert.equal((await sessions.list(user.id)).length, 1)
    })

    for (const grace of [undefined, '2m'] as const) {
      const how = grace ? 'with a grace' : 'without a grace'

      it(`G1: the first ID still ends the session, at a bounded cost: ${how}`, async () => {
        const at = await setUp({ ...roomy })
        const { first, last } = await longest(at, grace)
        const { read = 0, ...others } = await cost(at, () => at.sessions.destroy(first.secret))
        assert.deepEqual(others, { delete: 1 })
        assert.ok(read <= 2 * MAX_IDS + 1, `${read} reads`)
        assert.equal(await at.manager().get(last.secret), null)
        assert.deepEqual(await at.sessions.list(at.user.id), [])
      })

      it(`G4: a login over the first ID ends the session, at a bounded cost: ${how}`, async () => {
        const at = await setUp({ ...roomy })
        const { first, last } = await longest(at, grace)
        let login: any
        const { read = 0, ...others } = await cost(at, async () => {
          login = await at.sessions.logIn(first.secret, { user: at.user })
        })
        assert.deepEqual(others, { create: 1, delete: 1 })
        // The few that a request follows, and all of them for the remember token that the session may have begun with.
        assert.ok(read <= 9 + 2 * MAX_IDS, `${read} reads`)
        assert.equal(await at.manager().get(last.secret), null)
        assert.deepEqual(
          (await at.sessions.list(at.user.id)).map(({ key }) => key),
          [login.key],
        )
      })

      it(`G3: invalidateUser spares what the first ID leads to, and ends it otherwise, at a bounded cost: ${how}`, async () => {
        const at = await setUp({ ...roomy })
        const { first, last } = await longest(at, grace)
        const other = await at.sessions.create({ user: at.user })
        const spare = () => at.sessions.invalidateUser(at.user.id, { except: first })
        assert.deepEqual(await cost(at, spare), { deleteUser: 1 })
        assert.equal(await at.manager().get(other.secret), null)
        assert.equal((await at.manager().get(last.secret))?.key, last.key)
        assert.deepEqual(await cost(at, () => at.sessions.invalidateUser(at.user.id)), { deleteUser: 1 })
        assert.equal(await at.manager().get(last.secret), null)
      })

      it(`G3: revoking the first key ends the session, at a bounded cost: ${how}`, async () => {
        const at = await setUp({ ...roomy })
        const { first, last } = await longest(at, grace)
        let isEnded: unknown
        const { read = 0, ...others } = await cost(at, async () => {
          isEnded = await at.sessions.revoke(at.user.id, first.key)
        })
        assert.equal(isEnded, true)
        assert.deepEqual(others, { listUser: 2, delete: 1 })
        assert.ok(read <= 2 * MAX_IDS + 1, `${read} reads`)
        assert.equal(await at.manager().get(last.secret), null)
      })
    }
  })
}
