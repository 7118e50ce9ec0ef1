// @ts-check
// Many sessions in the memory of one process, which answers what a get costs there, whenever it is asked.
import { hash, randomBytes } from 'node:crypto'
import { coatcheck } from '../servers/serve.mjs'

const GETS = 20_000
const [who = '', count = ''] = process.argv.slice(2)
const COUNT = Number(count)
/** Visitors are spread over all sessions. */
const SAMPLE = Math.min(COUNT, 100_000)

const { SessionManager } = await coatcheck('index.js')
const { MemoryStore } = await coatcheck('stores/memory.js')
const sessions = new SessionManager({
  store: new MemoryStore({ maxRecords: 2 * COUNT + 1_000_000 }),
  sweepInterval: false,
})
/** @type {Map<string, { id: number, name: string, expiresAt: number }>} */
const map = new Map()
const keyOf = (/** @type {string} */ id) => hash('sha256', id, 'base64url')
const byHand = {
  create: async (/** @type {number} */ user) => {
    const id = randomBytes(32).toString('base64url')
    map.set(keyOf(id), { id: user, name: `user ${user}`, expiresAt: Date.now() + 36_000_000 })
    return id
  },
  get: async (/** @type {string} */ id) => map.get(keyOf(id)),
}
const ours = {
  create: async (/** @type {number} */ user) =>
    (await sessions.create({ user: { id: user, name: `user ${user}` } })).secret,
  get: (/** @type {string} */ id) => sessions.get(id),
}
const { create, get } = who === 'coatcheck' ? ours : byHand

/** @type {string[]} */
const ids = []
for (let user = 0; user < COUNT; user += 1) {
  const id = await create(user + 1)
  if (user % Math.floor(COUNT / SAMPLE) === 0 && ids.length < SAMPLE) ids.push(id)
}
globalThis.gc?.()

/** @param {number} visitors */
async function perGet(visitors) {
  const step = Math.floor(SAMPLE / visitors)
  const before = process.cpuUsage()
  for (let at = 0; at < GETS; at += 1)
    if (!(await get(ids[((at * 7919) % visitors) * step] ?? ''))) throw new Error('a session is missing')
  const { user, system } = process.cpuUsage(before)
  return (user + system) / GETS
}
process.on('message', async (/** @type {any} */ { visitors }) => process.send?.(await perGet(visitors)))
process.on('disconnect', () => process.exit())
process.send?.('ready')
