// @ts-check
// Bytes of heap and buffers per stored session, each of another user, with empty data.
import { createHash, randomBytes } from 'node:crypto'
import expressSession from 'express-session'
import { coatcheck } from '../servers/serve.mjs'

const [who = '', count = ''] = process.argv.slice(2)
const COUNT = Number(count)

/** @type {Record<string, () => Promise<{ add(user: number): unknown, kept: unknown }>>} */
const contestants = {
  async coatcheck() {
    const { SessionManager } = await coatcheck('index.js')
    const { MemoryStore } = await coatcheck('stores/memory.js')
    const sessions = new SessionManager({ store: new MemoryStore({ maxRecords: 2 * COUNT }) })
    return { add: user => sessions.create({ user: { id: user, name: `user ${user}` } }), kept: sessions }
  },
  async 'express-session'() {
    const store = new expressSession.MemoryStore()
    const cookie = { originalMaxAge: 1_800_000, expires: new Date(Date.now() + 1_800_000), httpOnly: true, path: '/' }
    return {
      add: user => {
        const id = randomBytes(24).toString('base64url')
        store.set(id, /** @type {any} */ ({ cookie, user: { id: user, name: `user ${user}` } }))
      },
      kept: store,
    }
  },
  async 'a Map of the same records'() {
    const map = new Map()
    return {
      add: user => {
        const key = `abc${createHash('sha256').update(randomBytes(32)).digest('base64url')}`
        const now = Date.now()
        map.set(key, {
          key,
          kind: 'session',
          parent: null,
          userId: String(user),
          userName: Buffer.from(`user ${user}`).toString(),
          passwordVersion: null,
          data: '{}',
          version: 1,
          writeId: randomBytes(9).toString('base64url'),
          createdAt: now,
          seenAt: now,
          expiresAt: now + 1_800_000,
          absoluteExpiresAt: now + 43_200_000,
        })
      },
      kept: map,
    }
  },
}

const used = () => {
  for (let times = 0; times < 3; times += 1) globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
const contestant = await contestants[who]?.()
if (!contestant) throw new Error(`nobody is called ${who}`)
// Code, pools and first tables are no cost of a session.
for (let user = 1; user <= 1000; user += 1) await contestant.add(user)
const before = used()
for (let user = 1; user <= COUNT; user += 1) await contestant.add(1000 + user)
const bytes = (used() - before) / COUNT
process.send?.({ bytes, kept: typeof contestant.kept })
process.exit(0)
