// The store for express-session, @fastify/session and koa-session on each kind of database, under load.
import { randomBytes } from 'node:crypto'
import { SessionManager } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { afterEach, describe, expect, it } from 'vitest'
import { APPS, countLost, countRevived, startApp } from './apps.ts'
import { lateRequests } from './late.ts'
import { OldConnectStore } from './old-store.ts'
import { askWhatPublishedStoresAreAsked } from './published-stores.ts'
import { onRealStores } from '../support/real-stores.ts'

/** `COATCHECK_CONNECT_TRIES=1000` asks as often as the documentation says. */
const TRIES = Number(process.env.COATCHECK_CONNECT_TRIES ?? 20)

onRealStores(
  store => `a store for other middleware on ${store}`,
  open => {
    askWhatPublishedStoresAreAsked(open)

    it('keeps a note of a session that moved and ended, which nothing tells of and nothing removes', async () => {
      const HOUR = 3_600_000
      const [old, store] = [new OldConnectStore(), open()]
      const sid = randomBytes(24).toString('base64url')
      let now = Date.now()
      const sessions = new SessionManager({ store, storeTimeout: '30s', sweepInterval: false, now: () => now })
      const moving = connectStore(sessions, { userOf: ({ user }) => user && { id: user }, oldStore: old })
      const put = () => old.records.set(sid, JSON.stringify({ cookie: { originalMaxAge: null }, user: '7000002' }))
      put()
      await moving.clear()
      expect(await moving.get(sid)).toMatchObject({ user: '7000002' })
      await moving.destroy(sid)
      expect([await sessions.list(7_000_002n), await moving.length(), await moving.all()]).toEqual([[], 0, []])
      const stays = async (when: string) => {
        put()
        expect(await moving.get(sid), when).toBeNull()
        await moving.set(sid, { cookie: {}, user: '7000002' })
        expect(await moving.get(sid), when).toBeNull()
      }
      await stays('at once')
      await sessions.invalidateUser(7_000_002n)
      await stays('after invalidateUser')
      await moving.clear()
      await sessions.invalidateAll()
      await stays('after the end of all sessions')
      now += 35 * HOUR
      await store.sweep?.(1000, { now, deadline: performance.now() + 30_000 })
      await stays('after a sweep, long after the absolute time')
      await moving.destroy(sid)
      await stays('after another logout')
    })

    describe.each(Object.keys(APPS))('%s', name => {
      async function start() {
        const sessions = new SessionManager({ store: open(), storeTimeout: '30s' })
        const store = connectStore(sessions, { userOf: ({ user }) => (user === undefined ? null : { id: user }) })
        return { sessions, store, ...(await startApp(name, store)) }
      }

      it('revives no session and loses no write under load', { timeout: 60_000 + 200 * TRIES }, async () => {
        const service = await start()
        try {
          expect([await countRevived(service, TRIES), await countLost(service, TRIES)]).toEqual([0, 0])
        } finally {
          await service.close()
        }
      })

      const closing: (() => unknown)[] = []
      afterEach(async () => {
        while (closing.length > 0) await closing.pop()!()
      })
      lateRequests(async () => {
        const service = await start()
        closing.push(service.close)
        return service
      })

      it('knows the user of a session that was set without a new ID, and ends it with the others', async () => {
        const { sessions, store, browser, close } = await start()
        try {
          const one = browser()
          await one.go('/write?key=cart&value=tea')
          await one.go('/login-in-place?user=7000001')
          expect((await one.go('/read')).body).toMatchObject({ user: '7000001', cart: 'tea' })
          expect(await sessions.list(7_000_001n)).toMatchObject([{ data: { cart: 'tea' } }])
          // Another process, which has not seen the session move.
          const second = await startApp(name, connectStore(sessions, { userOf: ({ user }) => user && { id: user } }))
          expect((await one.go('/read', second.port)).body).toMatchObject({ user: '7000001', cart: 'tea' })
          await second.close()
          expect(await sessions.invalidateUser(7_000_001n)).toBe(1)
          expect((await one.go('/read')).body?.user).toBeUndefined()
          expect(await sessions.list(7_000_001n)).toEqual([])
          expect(await store.get('no such session'.padEnd(32, '-'))).toBeNull()
        } finally {
          await close()
        }
      })
    })
  },
  { singleSlot: true },
)
