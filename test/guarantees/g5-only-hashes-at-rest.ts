import assert from 'node:assert/strict'
import type { Session, SessionId } from 'coatcheck'
import { describe, it } from 'vitest'
import { type Data, type GuaranteeKit, isKey, times } from '../support/guarantee-kit.ts'
import { holdsPartOf, leaked, shown } from '../support/scan.ts'

export function onlyHashesAtRest({ setUp, backend: { dump } }: GuaranteeKit): void {
  describe('G5: only hashes at rest', () => {
    it('neither what a store is given nor what it keeps holds a secret, and what it keeps is no way to log in', async () => {
      const { sessions, store, user } = await setUp({ rememberFor: '30d' })
      const held: Session<Data, 'bigint'>[] = []
      const tokens: string[] = []
      const keep = <S extends Session<Data, 'bigint'> | null>(session: S): NonNullable<S> => {
        assert.ok(session)
        held.push(session)
        return session
      }
      const anonymous = keep(await sessions.create({ data: { cart: 1 } }))
      const login = keep(await sessions.logIn(anonymous.secret, { user, data: before => before }))
      const token = await sessions.issueRememberToken(login)
      const saved = keep(await sessions.update(login, { a: 1 }))
      const renewed = keep(await sessions.regenerate(saved, { grace: '1m' }))
      keep(await sessions.get(login.secret))
      keep(await sessions.regenerate(renewed))
      for (const _ of times(2)) {
        const recalled = (await sessions.redeemRememberToken(token))!
        keep(recalled.session)
        tokens.push(token, recalled.token!)
      }
      const secrets = new Set([
        ...held.flatMap(({ secret, csrfToken }) => [secret, csrfToken]),
        ...tokens.flatMap(each => each.split('.')),
      ])
      const keys = new Set(store.calls.flatMap(({ args }) => args.map(arg => arg?.key ?? arg)).filter(isKey))
      const kept = [
        ...(await Promise.all([...keys].map(key => store.inner.read(key, { now: 0 })))),
        await store.inner.listUser(`${user.id}`, 'session', { now: 0 }),
        await store.inner.listUser(`${user.id}`, 'remember', { now: 0 }),
      ]
      const rows = (await dump?.()) ?? ''
      for (const key of [held.at(-1)!.key, login.key]) {
        assert.ok(shown(kept).includes(key))
        // Some stores keep the first three characters apart from the rest.
        if (dump) assert.ok(rows.includes(key.slice(3)), 'the dump shows what is kept')
      }
      assert.equal(leaked([store.calls, kept], secrets), null)
      for (const secret of secrets) assert.ok(!holdsPartOf(secret, rows))

      const found = new Set(`${shown(kept)} ${rows}`.match(/[A-Za-z0-9_-]{16,}/g))
      for (const text of found) {
        const tries = [
          text,
          text.slice(0, 43),
          text.slice(-43),
          `${login.key.slice(0, 3)}${text}`.slice(0, 43),
        ].flatMap(id => [
          sessions.get(id as SessionId),
          sessions.redeemRememberToken(`${id}.${id}`),
          sessions.redeemRememberToken(`${id}.${text.slice(0, 43)}`),
        ])
        for (const got of await Promise.all(tries)) assert.equal(got, null)
      }
      assert.ok(found.size > 10)
    })
  })
}
