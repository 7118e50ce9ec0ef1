import assert from 'node:assert/strict'
import { openVisit } from 'coatcheck/custom-server'
import { describe, it } from 'vitest'
import type { Verb } from '../support/barrier-store.ts'
import { CROWDS } from '../support/crowd.ts'
import { type GuaranteeKit, times } from '../support/guarantee-kit.ts'
import { onlyHost } from '../support/only-host.ts'
import { MINUTE } from '../support/test-clock.ts'

export function oneStoreCommand({ setUp, backend: { commands } }: GuaranteeKit): void {
  describe('G9: at most one store command per request', () => {
    it('each verb makes as few calls as promised', async () => {
      const { sessions, store, clock, user } = await setUp()
      const cost = async (what: () => Promise<unknown>): Promise<Partial<Record<Verb, number>>> => {
        store.reset()
        await what()
        return store.counts()
      }
      let session: any
      assert.deepEqual(await cost(async () => (session = await sessions.create({ user }))), { create: 1 })
      assert.deepEqual(await cost(() => sessions.get(session.secret)), { read: 1 })
      clock.advance(3 * MINUTE)
      assert.deepEqual(await cost(() => sessions.get(session.secret)), { read: 1, touch: 1 })
      assert.deepEqual(await cost(() => sessions.get(session.secret)), { read: 1 })
      session = await sessions.get(session.secret)
      assert.deepEqual(await cost(async () => (session = await sessions.update(session, { a: 1 }))), { update: 1 })
      assert.deepEqual(await cost(() => sessions.take(session, 'nothing')), { read: 1 })
      assert.deepEqual(await cost(() => sessions.take(session, 'a')), { update: 1 })
      session = await sessions.get(session.secret)
      assert.deepEqual(await cost(async () => (session = await sessions.regenerate(session))), { replace: 1 })
      assert.deepEqual(await cost(async () => (session = await sessions.logIn(session, { user }))), { replace: 1 })
      assert.deepEqual(await cost(async () => (session = await sessions.regenerate(session.secret))), {
        read: 1,
        replace: 1,
      })
      assert.deepEqual(await cost(async () => (session = await sessions.regenerate(session, { grace: '1m' }))), {
        replace: 1,
      })
      assert.deepEqual(await cost(() => sessions.list(user.id)), { listUser: 1 })
      assert.deepEqual(await cost(() => sessions.destroy(session)), { delete: 1 })
      // For the remember token that the session may have begun with.
      assert.deepEqual(await cost(() => sessions.destroy(session.secret)), { read: 1, delete: 1 })
      assert.deepEqual(await cost(() => sessions.invalidateUser(user.id)), { deleteUser: 1 })
    })

    it('a login under a limit makes two lists more', async () => {
      const { manager, store, user } = await setUp()
      for (const onLimit of ['refuse', 'end-oldest'] as const) {
        const sessions = manager({ limit: { max: 4, onLimit } })
        store.reset()
        const session = await sessions.create({ user })
        assert.deepEqual(store.counts(), { create: 1, listUser: 2 })
        store.reset()
        await sessions.logIn(session, { user })
        assert.deepEqual(store.counts(), { replace: 1, listUser: 2 })
      }
    })

    it('one write per interval, however many requests run in parallel; one read, however often a visit is asked', async () => {
      const { sessions, store, clock, user } = await setUp()
      const { secret } = await sessions.create({ user })
      clock.advance(3 * MINUTE)
      store.reset()
      await Promise.all(times(8).map(() => sessions.get(secret)))
      assert.deepEqual(store.counts(), { read: 8, touch: 1 })
      store.reset()
      const cookie = `session_id=${secret}`
      const visit = openVisit(sessions, { method: 'GET', secure: true, header: onlyHost, cookie })
      for (const session of await Promise.all(times(8).map(() => visit.get()))) assert.equal(session?.secret, secret)
      assert.deepEqual(store.counts(), { read: 1 })
    })

    for (const [edge, crowd] of Object.entries(CROWDS))
      it(`no more than one call per request, and one command of the database for 1 or for 64 in one turn, over ${edge}`, async () => {
        const { sessions, store, user } = await setUp()
        const held = await Promise.all(times(64).map(() => sessions.create({ user })))
        const cookies = held.map(({ secret }) => ({ cookie: `session_id=${secret}` }))
        await crowd(sessions, async ask => {
          const cost = async (requests: typeof cookies): Promise<number | null> => {
            store.reset()
            const before = await commands?.()
            for (const { body } of await ask(requests)) assert.equal(body, 'ada')
            assert.deepEqual(store.counts(), { read: requests.length })
            const after = await commands?.()
            return before == null || after == null ? null : after - before
          }
          await cost(cookies) // what a store does once: it learns what its database can do
          for (const requests of [cookies.slice(0, 1), cookies, times(64).map(() => cookies[0]!)]) {
            let counted = await cost(requests)
            // Once a minute a connection asks for the clock of its server, and that may fall between.
            for (let more = 0; more < 3 && counted !== null && counted > 1; more++) counted = await cost(requests)
            assert.ok(counted === null || counted === 1, `${counted} commands for ${requests.length} requests`)
          }
        })
      })

    it('1,000 parallel requests of one session write its visit down once', async () => {
      const { sessions, store, clock } = await setUp()
      const { secret } = await sessions.create()
      clock.advance(3 * MINUTE)
      store.reset()
      const seen = await Promise.all(times(1000).map(() => sessions.get(secret)))
      assert.ok(seen.every(session => session !== null))
      assert.deepEqual(store.counts(), { read: 1000, touch: 1 })
    })
  })
}
