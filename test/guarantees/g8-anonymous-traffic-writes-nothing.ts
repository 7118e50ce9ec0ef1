import assert from 'node:assert/strict'
import type { SessionId } from 'coatcheck'
import { describe, it } from 'vitest'
import { CROWDS } from '../support/crowd.ts'
import { type GuaranteeKit, visitsOf } from '../support/guarantee-kit.ts'

export function anonymousTrafficWritesNothing({ setUp, backend }: GuaranteeKit): void {
  describe('G8: anonymous traffic writes nothing', () => {
    const malformed = [
      '',
      'x',
      'a'.repeat(42),
      'a'.repeat(44),
      `${'a'.repeat(42)}=`,
      `${'a'.repeat(42)}é`,
      'a'.repeat(4096),
    ]
    it('a visitor without a cookie, or with a malformed one, does not reach the store', async () => {
      const { sessions, store } = await setUp({ rememberFor: '30d' })
      const before = await backend.dump?.()
      store.reset()
      for (const cookie of [
        undefined,
        'other=1',
        ...malformed.map(id => `session_id=${id}`),
        ...malformed.map(id => `remember_token=${id}`),
      ])
        for (const run of visitsOf(cookie)) {
          const { headers } = await run(sessions)
          assert.deepEqual(
            headers.getSetCookie().filter(line => !line.includes('Max-Age=0')),
            [],
          )
        }
      for (const id of malformed) {
        assert.equal(await sessions.get(id as SessionId), null)
        assert.equal(await sessions.regenerate(id as SessionId), null)
        assert.equal(await sessions.regenerate(id as SessionId, { grace: '1m' }), null)
        await sessions.destroy(id as SessionId)
      }
      assert.deepEqual(store.counts(), {})
      assert.equal(await backend.dump?.(), before)
    })

    it('of many requests in one turn, those without an ID or with a malformed one do not reach the store', async () => {
      const { sessions, store, user } = await setUp()
      const { secret } = await sessions.create({ user })
      store.reset()
      await CROWDS.fetchVisits(sessions, async ask => {
        const replies = await ask(
          [secret, ...malformed, secret, ...malformed].map(id => ({ cookie: `session_id=${id}` })),
        )
        const names = ['ada', ...malformed.map(() => '')]
        assert.deepEqual(
          replies.map(({ body }) => body),
          [...names, ...names],
        )
      })
      assert.deepEqual(store.counts(), { read: 2 })
    })

    it('an ID and a token that do not exist cost at most a read each, and leave no row and no cookie', async () => {
      const { sessions, store } = await setUp({ rememberFor: '30d' })
      const before = await backend.dump?.()
      const unknown = `session_id=${'A'.repeat(43)}; remember_token=${'B'.repeat(43)}.${'C'.repeat(43)}`
      for (const run of visitsOf(unknown, ['logOut'])) {
        store.reset()
        const { headers } = await run(sessions)
        assert.deepEqual(headers.getSetCookie(), [])
        const { read, ...others } = store.counts()
        assert.deepEqual(others, {})
        assert.ok(read === 1 || read === 2, `${read} reads`)
      }
      assert.equal(await backend.dump?.(), before)
    })
  })
}
