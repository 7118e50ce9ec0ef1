// The store for express-session, @fastify/session and koa-session on each kind of database, under load.
import { SessionManager } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { describe, expect, it } from 'vitest'
import { APPS, countLost, countRevived, startApp } from '../support/connect-apps.ts'
import { askWhatPublishedStoresAreAsked } from '../support/published-stores.ts'
import { onRealStores } from '../support/real-stores.ts'

/** `COATCHECK_CONNECT_TRIES=1000` asks as often as the documentation says. */
const TRIES = Number(process.env.COATCHECK_CONNECT_TRIES ?? 20)

onRealStores(
  store => `a store for other middleware on ${store}`,
  open => {
    askWhatPublishedStoresAreAsked(open)

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
