// @ts-check
// get and create of the manager on the memory store beside the same work by hand, in interleaved rounds of one process.
import { hash, randomBytes } from 'node:crypto'
import { coatcheck } from '../servers/serve.mjs'

const ROUNDS = 15
const SESSIONS = 10_000
const GETS = 40_000
const CREATES = 10_000

const { SessionManager } = await coatcheck('index.js')
const { MemoryStore } = await coatcheck('stores/memory.js')
const sessions = new SessionManager({ store: new MemoryStore({ maxRecords: 1_000_000 }) })
const map = new Map()
const keyOf = (/** @type {string} */ id) => hash('sha256', id, 'base64url')

async function createByHand(/** @type {number} */ user) {
  const id = randomBytes(32).toString('base64url')
  map.set(keyOf(id), { user: { id: user, name: `user ${user}` }, expiresAt: Date.now() + 1_800_000 })
  return id
}
async function getByHand(/** @type {string} */ id) {
  const session = map.get(keyOf(id))
  return session !== undefined && session.expiresAt > Date.now() ? session : null
}
const create = async (/** @type {number} */ user) =>
  (await sessions.create({ user: { id: user, name: `user ${user}` } })).secret

/** @type {string[]} */
const ids = []
/** @type {string[]} */
const ours = []
for (let user = 1; user <= SESSIONS; user += 1) {
  ids.push(await createByHand(user))
  ours.push(await create(user))
}
const work = {
  'get by hand': { count: GETS, run: (/** @type {number} */ i) => getByHand(ids[i % SESSIONS] ?? '') },
  get: { count: GETS, run: (/** @type {number} */ i) => sessions.get(ours[i % SESSIONS]) },
  'create by hand': { count: CREATES, run: createByHand },
  create: { count: CREATES, run: create },
}
/** @type {Record<string, number[]>} */
const micros = Object.fromEntries(Object.keys(work).map(name => [name, []]))
for (let round = -3; round < ROUNDS; round += 1)
  for (const [name, { count, run }] of Object.entries(work)) {
    const before = process.cpuUsage()
    for (let i = 0; i < count; i += 1) await run(i)
    const { user, system } = process.cpuUsage(before)
    if (round >= 0) micros[name]?.push((user + system) / count)
  }
process.send?.(micros)
process.exit(0)
