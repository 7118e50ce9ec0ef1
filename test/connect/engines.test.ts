// The store for express-session, @fastify/session and koa-session on each kind of database.
import { randomBytes } from 'node:crypto'
import { SessionManager } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { describe, expect, it } from 'vitest'
import { EXPRESS, type Start } from '../support/connect/apps.ts'
import { overlap } from '../support/connect/frameworks.ts'
import { OldConnectStore } from '../support/connect/old-store.ts'
import { onRealStores } from '../support/real-stores.ts'
import { isInstalled } from '../support/scripts/install.mjs'
import { askWhatPublishedStoresAreAsked } from './published-stores.ts'

const others = async () => (await import('../libraries/connect-apps.ts')).OTHER_APPS
const FRAMEWORKS: [string, Start][] = Object.entries({
  [EXPRESS.name]: EXPRESS.start,
  ...(isInstalled('test/libraries') && (await others())),
})
let databases = 0

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

    // A framework asks each database the same: each database meets one, and each framework a database, unless all are asked for.
    const mine = FRAMEWORKS[databases++ % FRAMEWORKS.length]!
    const asked = process.env.COATCHECK_CONNECT_TRIES === undefined ? [mine] : FRAMEWORKS
    describe.each(asked)('%s', (_, start) => overlap(start, open))
  },
  { singleSlot: true },
)
