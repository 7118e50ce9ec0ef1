// @ts-check
import { createClient } from 'redis'
import { compare } from './rounds.mjs'
import { coatcheck } from './servers/serve.mjs'
import { startRedis } from './services.mjs'
import { fixed, scoreTable, table, whole } from './table.mjs'

const ROUNDS = 20
const REQUESTS = 2000
const SESSIONS = 100_000
const BATCH = 500

/** @typedef {import('redis').RedisClientType} Client */

/** @param {any} client @param {string} section */
async function info(client, section) {
  const text = String(await client.info(section))
  return Object.fromEntries([...text.matchAll(/^([^:#\r\n]+):(.*?)\r?$/gm)].map(([, name, value]) => [name, value]))
}

/** Commands so far, without our own. @param {any} client */
async function commands(client) {
  const stats = await info(client, 'commandstats')
  let calls = 0
  for (const [name, value] of Object.entries(stats))
    if (name !== 'cmdstat_info') calls += Number(/calls=(\d+)/.exec(value)?.[1])
  return calls
}

/** CPU time of the server, microseconds. @param {any} client */
async function cpu(client) {
  const { used_cpu_sys, used_cpu_user } = await info(client, 'cpu')
  return (Number(used_cpu_sys) + Number(used_cpu_user)) * 1e6
}

/** @param {any} client @param {string} url @param {readonly string[]} names */
async function profileTable(client, url, names) {
  /** @type {Map<string, { calls: number, micros: number }>} */
  const spent = new Map(names.map(name => [name, { calls: 0, micros: 0 }]))
  const scores = await compare(
    names.map(name => ({ name, file: 'redis.mjs', env: { REDIS_URL: url } })),
    {
      rounds: ROUNDS,
      requests: REQUESTS,
      warmUp: 8000,
      async around(name, load) {
        const before = { calls: await commands(client), micros: await cpu(client) }
        const sent = await load()
        const total = /** @type {{ calls: number, micros: number }} */ (spent.get(name))
        total.calls += ((await commands(client)) - before.calls) / sent
        total.micros += ((await cpu(client)) - before.micros) / sent
        return sent
      },
    },
  )
  const floor = spent.get(names[0] ?? '')?.micros ?? Number.NaN
  const more = new Map(
    [...spent].map(([name, { calls, micros }]) => [name, [fixed(calls / ROUNDS), fixed(micros / floor)]]),
  )
  console.log(scoreTable(scores, 'raw GET', more, ['commands per request', "Redis's own CPU, raw GET = 1"]))
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
  const used = async () => Number((await info(client, 'memory')).used_memory)
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

export async function benchRedis() {
  const redis = await startRedis()
  const client = createClient({ url: redis.url })
  try {
    await client.connect()
    const { redis_version } = await info(client, 'server')
    console.log(`\n### GET /profile, sessions in Redis ${redis_version}\n`)
    console.log('The floor is a handler of raw node:http that does one GET with the same client.\n')
    await profileTable(client, redis.url, [
      'raw GET',
      'coatcheck',
      'express-session, connect-redis',
      '@fastify/session, connect-redis',
      'koa-session',
    ])
    console.log('\nWith ioredis:\n')
    await profileTable(client, redis.url, ['raw GET, ioredis', 'coatcheck, ioredis'])

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
