import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import type { Verb } from '../support/barrier-store.ts'
import { type GuaranteeKit, times } from '../support/guarantee-kit.ts'
import { MINUTE } from '../support/test-clock.ts'

export function oneStoreCommand({ setUp }: GuaranteeKit): void {
  describe('G9: one store command per request', () => {
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
      assert.deepEqual(await cost(async () => (session = await sessions.regenerate(session, { user }))), { replace: 1 })
      assert.deepEqual(await cost(async () => (session = await sessions.regenerate(session.secret))), {
        read: 1,
        replace: 1,
      })
      assert.deepEqual(await cost(async () => (session = await sessions.rotate(session, { grace: '1m' }))), {
        replace: 1,
      })
      assert.deepEqual(await cost(() => sessions.list(user.id)), { listUser: 1 })
      assert.deepEqual(await cost(() => sessions.destroy(session)), { delete: 1 })
      assert.deepEqual(await cost(() => sessions.destroy(session.secret)), { delete: 1 })
      assert.deepEqual(await cost(() => sessions.invalidateUser(user.id)), { deleteUser: 1 })
    })

    it('1,000 parallel requests of one session write its visit down once', async () => {
      const { sessions, store, clock } = await setUp({ storeTimeout: '20s' })
      const { secret } = await sessions.create()
      clock.advance(3 * MINUTE)
      store.reset()
      const seen = await Promise.all(times(1000).map(() => sessions.get(secret)))
      assert.ok(seen.every(session => session !== null))
      assert.deepEqual(store.counts(), { read: 1000, touch: 1 })
    })
  })
}
