import assert from 'node:assert/strict'
import { openVisit } from 'coatcheck/custom-server'
import { describe, it } from 'vitest'
import { type GuaranteeKit, isCode, newUser, times } from '../support/guarantee-kit.ts'
import { onlyHost } from '../support/only-host.ts'
import { HOUR, MINUTE, SECOND } from '../support/test-clock.ts'

export function sessionsOfOneUser({ setUp }: GuaranteeKit): void {
  describe('sessions of one user', () => {
    it('a device that a service without remember-me revokes or logs out does not come back', async () => {
      const { manager, user } = await setUp({ absoluteTimeout: '48h', idleTimeout: '24h' })
      const [site, admin] = [manager({ rememberFor: '30d' }), manager({})]
      for (const how of ['revoke', 'revoke what its token began', 'destroy what its token began']) {
        // Two logins in one millisecond are two devices.
        const [first, other] = [await site.create({ user }), await site.create({ user })]
        let session = (await site.regenerate(first)) as typeof first
        let token = await site.issueRememberToken(session)
        const kept = await site.issueRememberToken(other)
        if (how !== 'revoke') ({ session, token } = (await site.redeemRememberToken(token))!)
        if (how.startsWith('revoke')) assert.equal(await admin.revoke(user.id, session.key), true)
        else await admin.destroy(session.secret)
        assert.equal(await site.redeemRememberToken(token), null)
        assert.notEqual(await site.redeemRememberToken(kept), null)
        await site.invalidateUser(user.id)
      }
    })

    it.each([
      ['ends the oldest', 'end-oldest', 50],
      ['refuses', 'refuse', 3],
    ] as const)(
      '50 simultaneous logins at one node with a limit of 3 that %s leave exactly 3',
      async (_, onLimit, allowed) => {
        const { manager, user } = await setUp()
        const sessions = manager({ limit: { max: 3, onLimit } })
        const logins = await Promise.allSettled(times(50).map(() => sessions.create({ user })))
        assert.equal(logins.filter(({ status }) => status === 'fulfilled').length, allowed)
        for (const login of logins)
          if (login.status === 'rejected') assert.equal(login.reason.code, 'ERR_SESSION_LIMIT')
        assert.equal((await sessions.list(user.id)).length, 3)
      },
    )

    it('a remember token at a limit that refuses begins nothing and is not spent: it works when one is free', async () => {
      const { sessions, clock, events, user } = await setUp({
        rememberFor: '30d',
        limit: { max: 1, onLimit: 'refuse' },
        absoluteTimeout: '48h',
        idleTimeout: '24h',
      })
      const first = await sessions.create({ user })
      const token = await sessions.issueRememberToken(first)
      await sessions.destroy(await sessions.regenerate(first))
      const login = await sessions.create({ user })
      const visitWith = async () => {
        const visit = openVisit(sessions, {
          method: 'GET',
          cookie: `session_id=${first.secret}; remember_token=${token}`,
          secure: true,
          header: onlyHost,
        })
        return { session: await visit.get(), cookies: visit.finish().headers.getSetCookie() }
      }
      for (const wait of [0, MINUTE, 10 * MINUTE, HOUR]) {
        clock.advance(wait)
        const refused = await Promise.all(times(3).map(visitWith))
        for (const { session, cookies } of refused) assert.deepEqual([session, cookies], [null, []])
      }
      assert.deepEqual(
        (await sessions.list(user.id)).map(({ key }) => key),
        [login.key],
      )
      await sessions.destroy(login)
      const { session, cookies } = await visitWith()
      assert.equal(session?.user?.name, 'ada')
      assert.equal(cookies.length, 2)
      assert.equal((await sessions.get(session))?.key, session?.key)
      assert.deepEqual(
        events.filter(({ type }) => type === 'remember-theft'),
        [],
      )
    })

    it('a limit counts neither other users, nor anonymous sessions, nor the session that the login ends', async () => {
      const { clock, manager, user } = await setUp()
      const sessions = manager({ limit: { max: 2, onLimit: 'refuse' } })
      await sessions.create({ user: { id: newUser(), name: 'max' } })
      await sessions.create()
      const first = await sessions.create({ user })
      clock.advance(SECOND)
      await sessions.create({ user })
      await assert.rejects(sessions.create({ user }), isCode('ERR_SESSION_LIMIT'))
      await assert.rejects(sessions.logIn(await sessions.create(), { user }), isCode('ERR_SESSION_LIMIT'))
      await sessions.logIn(first, { user })
      assert.equal((await sessions.list(user.id)).length, 2)
    })

    it('a limit that ends the oldest tells which, and spares the new one', async () => {
      const { clock, events, manager, user } = await setUp()
      const sessions = manager({ limit: { max: 2, onLimit: 'end-oldest' } })
      const held = []
      for (const _ of times(4)) {
        held.push(await sessions.create({ user }))
        clock.advance(SECOND)
      }
      const keys = held.map(({ key }) => key)
      assert.deepEqual(
        (await sessions.list(user.id)).map(({ key }) => key),
        [keys[3], keys[2]],
      )
      const ended = events.filter(event => event.type === 'destroyed')
      assert.deepEqual(
        ended.map(({ key, reason, userId }) => [key, reason, userId]),
        [
          [keys[0], 'limit', user.id],
          [keys[1], 'limit', user.id],
        ],
      )
    })

    it("revoke ends one of the user's sessions by its key, and no other user's", async () => {
      const { sessions, user } = await setUp()
      const [a, b] = [await sessions.create({ user }), await sessions.create({ user })]
      const stranger = { id: newUser(), name: 'max' }
      assert.equal(await sessions.revoke(stranger.id, a.key), false)
      assert.notEqual(await sessions.get(a), null)
      assert.equal(await sessions.revoke(user.id, a.key), true)
      assert.equal(await sessions.revoke(user.id, a.key), false)
      assert.equal(await sessions.get(a), null)
      assert.notEqual(await sessions.get(b), null)
      const anonymous = await sessions.create()
      assert.equal(await sessions.revoke(user.id, anonymous.key), false)
      assert.notEqual(await sessions.get(anonymous), null)
    })

    it('revoke by a key from before a renewal ends the session under its new key', async () => {
      const { sessions, user } = await setUp()
      const before = await sessions.create({ user })
      const next = await sessions.regenerate(before)
      assert.equal(await sessions.revoke(newUser(), before.key), false)
      assert.notEqual(await sessions.get(next), null)
      assert.equal(await sessions.revoke(user.id, before.key), true)
      assert.equal(await sessions.get(next), null)
    })

    it('tenants of one store never meet', async () => {
      const { sessions, user } = await setUp()
      const [blue, green] = [sessions.namespace('blue'), sessions.namespace('green')]
      const held = [
        await sessions.create({ user }),
        await blue.create({ user, data: { of: 'blue' } }),
        await green.create({ user }),
      ]
      const managers = [sessions, blue, green]
      for (const [index, session] of held.entries()) {
        for (const [at, manager] of managers.entries()) {
          assert.equal((await manager.get(session.secret))?.user?.id, at === index ? user.id : undefined)
          if (at !== index) assert.equal(await manager.revoke(user.id, session.key), false)
        }
        assert.equal((await managers[index]!.list(user.id)).length, 1)
      }
      assert.equal(await blue.invalidateUser(user.id), 1)
      assert.equal(await blue.get(held[1]!.secret), null)
      assert.notEqual(await sessions.get(held[0]!.secret), null)
      assert.notEqual(await green.get(held[2]!.secret), null)
    })
  })
}
