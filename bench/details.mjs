// @ts-check
// The longest turn of the event loop, and what sessions take in Redis.
import { createClient } from 'redis'
import { missing } from './engines.mjs'
import { measure } from './measure/run.mjs'
import { coatcheck } from './servers/serve.mjs'
import { startRedis } from './services.mjs'
import { fixed, table, whole } from './table.mjs'

const SESSIONS = 100_000
const BATCH = 500

async function benchStalls() {
  /** @type {Record<'coatcheck' | 'a bare Map', { adding: number, removing: number }[]>} */
  const stalls = { coatcheck: [], 'a bare Map': [] }
  for (let times = 0; times < 5; times += 1)
    for (const [who, runs] of Object.entries(stalls)) runs.push(await measure('stall.mjs', who, String(SESSIONS)))
  console.log(`\n### The longest turn of the event loop, in ms of processor time, with ${whole(SESSIONS)} sessions\n`)
  console.log('Sessions are added one by one; then all have expired and are removed, 1,000 at a time. The best and the')
  console.log('median of five runs, which take turns.\n')
  console.log(
    table(
      ['', 'adding, best', 'median', 'removing, best', 'median'],
      Object.entries(stalls).map(([who, runs]) => [
        who,
        .../** @type {const} */ (['adding', 'removing']).flatMap(what => {
          const sorted = runs.map(run => run[what]).sort((a, b) => a - b)
          return [fixed(sorted[0] ?? 0), fixed(sorted[2] ?? 0)]
        }),
      ]),
    ),
  )
}

/** Runs `add` for 1 to `count`, some at a time. @param {number} count @param {(index: number) => Promise<unknown>} add */
async function fill(count, add) {
  for (let first = 0; first < count; first += BATCH)
    await Promise.all(Array.from({ length: Math.min(BATCH, count - first) }, (_, index) => add(first + index)))
}

/**
 * Bytes of Redis per session beside a bare SET of the same values under the same keys.
 * @param {any} client
 * @param {number} perUser
 * @param {object} data
 */
async function footprint(client, perUser, data) {
  const { SessionManager } = await coatcheck('index.js')
  const { RedisStore } = await coatcheck('stores/redis.js')
  const used = async () => Number(/^used_memory:(\d+)/m.exec(await client.info('memory'))?.[1])
  await client.flushAll()
  const empty = await used()
  const sessions = new SessionManager({ store: new RedisStore(client), storeTimeout: '30s' })
  await fill(SESSIONS, index => {
    const user = Math.floor(index / perUser)
    return sessions.create({ user: { id: 1_000_000 + user, name: `user ${user}` }, data })
  })
  const ours = await used()
  /** @type {[string, string][]} */
  const pairs = []
  for await (const keys of client.scanIterator({ COUNT: 1000, TYPE: 'string' }))
    if (keys.length > 0) for (const [at, value] of (await client.mGet(keys)).entries()) pairs.push([keys[at], value])
  if (pairs.length !== SESSIONS) throw new Error(`${pairs.length} sessions were stored`)
  await client.flushAll()
  const emptyAgain = await used()
  await fill(SESSIONS, index => {
    const [key, value] = /** @type {[string, string]} */ (pairs[index])
    return client.set(key, value, { expiration: { type: 'PX', value: 2_100_000 } })
  })
  const bare = await used()
  const size = pairs.reduce((sum, [, value]) => sum + value.length, 0) / SESSIONS
  return { size, ours: (ours - empty) / SESSIONS, bare: (bare - emptyAgain) / SESSIONS }
}

async function benchRedis() {
  const absent = missing('redis')
  if (absent !== null) return console.log(`\n### Memory of Redis\n\nLeft out: ${absent}.`)
  const redis = await startRedis()
  const client = createClient({ url: redis.url })
  try {
    await client.connect()
    console.log(`\n### Memory of Redis per session (${whole(SESSIONS)} sessions), index included\n`)
    const words = {
      theme: 'dark',
      language: 'en-GB',
      cart: Array.from({ length: 12 }, (_, i) => `article-${1000 + i}`),
    }
    const rows = []
    for (const [perUser, data] of /** @type {const} */ ([
      [1, {}],
      [10, {}],
      [1, words],
      [10, words],
    ])) {
      const { size, ours, bare } = await footprint(client, perUser, data)
      rows.push([
        `${perUser} ${perUser === 1 ? 'session' : 'sessions'} per user, data of ${JSON.stringify(data).length} bytes`,
        whole(size),
        whole(ours),
        whole(bare),
        fixed(ours / bare),
      ])
    }
    console.log(table(['', 'value, bytes', 'coatcheck, bytes', 'bare SET, bytes', 'bare SET = 1'], rows))
  } finally {
    client.destroy()
    await redis.stop()
  }
}

export async function benchDetails() {
  await benchStalls()
  await benchRedis()
}
