// @ts-check
// How soon a store is back with each client when its connection is of no use, or its server away: a table of
// docs/performance.md.
import { watched } from '../examples/watched-socket.mjs'
import { writeBlocks } from './blocks.mjs'
import { coatcheck } from './servers/serve.mjs'
import { fixed, table } from './table.mjs'
import './typescript.mjs'

/** How long each failure is looked at, in ms, and for how much longer once a call has succeeded. */
const LONG = 8000
const AFTER = 2000
/** How long a server is stopped, and how long it is down, in ms. */
const STOPPED = 6000
const DOWN = 5000
const ada = { user: { id: 'ada', name: 'Ada' } }
const pause = (/** @type {number} */ ms) => new Promise(resolve => setTimeout(resolve, ms))
/** Tools of the tests, which the types of the benchmarks do not know. @param {string} path @returns {Promise<any>} */
const support = path => import(new URL(`../test/support/${path}`, import.meta.url).href)

const { SessionManager } = await coatcheck('index.js')
const over = (/** @type {unknown} */ store, storeTimeout = '1s') =>
  new SessionManager({ store, userIds: 'string', storeTimeout, sweepInterval: false })
/** Sets a session up, on a busy machine too, and where connections have just ended. @param {unknown} store */
async function begin(store) {
  const { until } = await support('services/process.ts')
  return until('a session', () => over(store, '30s').create(ada), { timeout: 60_000 })
}

/**
 * Calls again and again for a while: how often it failed, when it first succeeded, and all that came of it.
 * @param {() => Promise<unknown>} call
 * @param {boolean} [toTheEnd]
 */
async function repeat(call, toTheEnd = false) {
  const began = performance.now()
  /** @type {{ at: number, end: number, answer: unknown }[]} */
  const answers = []
  let failed = 0
  const isOver = () => {
    const end = began + LONG
    return performance.now() > (toTheEnd || answers[0] === undefined ? end : Math.min(end, answers[0].end + AFTER))
  }
  while (!isOver()) {
    const at = performance.now()
    await call().then(
      answer => answers.push({ at, end: performance.now(), answer }),
      () => failed++,
    )
    await pause(20)
  }
  return { failed, answers, began }
}

/** When the call ended that first succeeded. @param {Awaited<ReturnType<typeof repeat>>} calls */
const seconds = ({ answers, began }) =>
  answers[0] === undefined ? `> ${LONG / 1000}` : fixed((answers[0].end - began) / 1000, 1)

/**
 * Logins and reads after a failover; `next` leads the address to the primary, a second later.
 * @param {any} store @param {string} secret @param {() => void} [next]
 */
async function loginsAfter(store, secret, next = () => {}) {
  const sessions = over(store)
  setTimeout(next, 1000)
  let refusedAt = Number.POSITIVE_INFINITY
  const create = () =>
    sessions.create(ada).catch((/** @type {unknown} */ error) => {
      refusedAt = Math.min(refusedAt, performance.now())
      throw error
    })
  const [logins, reads] = await Promise.all([repeat(create, true), repeat(() => sessions.get(secret), true)])
  await sessions.close()
  const revived = reads.answers.filter(({ at, answer }) => answer !== null && at > refusedAt).length
  return [seconds(logins), logins.failed, revived]
}

/** @param {any} store @param {string} secret */
async function readsOf(store, secret) {
  const sessions = over(store)
  const reads = await repeat(() => sessions.get(secret))
  await sessions.close()
  return [seconds(reads), reads.failed]
}

/**
 * How soon after a server goes on the first read is answered, with calls all the while.
 * @param {any} store @param {string} secret @param {number} ms @param {() => unknown} stop @param {() => unknown} goOn
 */
async function readAfter(store, secret, ms, stop, goOn) {
  const sessions = over(store)
  let isOver = false
  await stop()
  const busy = (async () => {
    for (; !isOver; await pause(20)) await sessions.get(secret).catch(() => {})
  })()
  await pause(ms)
  isOver = true
  await Promise.all([busy, goOn()])
  const [first] = await readsOf(store, secret)
  await sessions.close()
  return first
}

/** @param {string} name */
async function redis(name) {
  const { CLUSTER, SENTINEL, STANDALONE } = await support('redis/clients.ts')
  const { startBehindProxies, startPair } = await support('redis/failures.ts')
  const { startRedisCluster, startRedisSentinels } = await support('services/redis.ts')
  const { slotOf } = await import(new URL('../stores/redis/keys.ts', import.meta.url).href)
  const { RedisStore } = await coatcheck('stores/redis.js')
  const storeOver = (/** @type {unknown} */ client) => new RedisStore(client)

  const another = async () => {
    const pair = await startPair()
    const [own, other] = [
      await STANDALONE[name](`redis://127.0.0.1:${pair.address.port}`),
      await STANDALONE['node-redis 6'](pair.next.url),
    ]
    const store = storeOver(own.client)
    const { secret } = await begin(store)
    await pair.failOver()
    await over(storeOver(other.client), '30s').destroy(secret)
    const row = await loginsAfter(store, secret, () => pair.address.redirect(pair.next.port))
    await Promise.all([own.close(), other.close()])
    await pair.stop()
    return row
  }
  /** The master dies; in a cluster its replica takes over at once. */
  const elected = async () => {
    const servers = await (name in CLUSTER ? startRedisCluster() : startRedisSentinels())
    const own = await (name in CLUSTER
      ? CLUSTER[name](servers.addresses)
      : SENTINEL[name](servers.name, servers.sentinels))
    const store = storeOver(own.client)
    const { secret } = await begin(store)
    await over(store, '30s').destroy(secret)
    // What a replica does not have is lost, which is not the client's doing.
    await pause(1000)
    const master = servers.master ?? (await servers.masterOf(slotOf(store.shard('ada'))))
    await master.kill()
    await servers.replicas?.[servers.masters.indexOf(master)].cli('CLUSTER', 'FAILOVER', 'TAKEOVER')
    const row = await loginsAfter(store, secret)
    await own.close()
    await servers.stop()
    return row
  }
  const first = await (name in STANDALONE ? another() : elected())

  const behindProxies = async () => {
    const place = await startBehindProxies(name)
    const store = storeOver(place.client)
    const { secret } = await begin(store)
    const stop = async () => {
      await place.close()
      await place.stop()
    }
    return { ...place, store, secret, stop }
  }
  const hushed = await behindProxies()
  hushed.silence()
  const row = [...first, ...(await readsOf(hushed.store, hushed.secret))]
  await hushed.stop()
  if (!(name in STANDALONE)) return [...row, '–', '–']
  const place = await behindProxies()
  const [server] = place.servers
  row.push(await readAfter(place.store, place.secret, STOPPED, server.pause, server.resume))
  row.push(await readAfter(place.store, place.secret, DOWN, server.kill, server.restart))
  await place.stop()
  return row
}

/**
 * The columns of a database behind a proxy; `demote` gives what makes it a primary again.
 * @param {any} store @param {any} elsewhere @param {any} proxy @param {any} server @param {(key: string) => Promise<() => unknown>} demote
 */
async function sql(store, elsewhere, proxy, server, demote) {
  const { secret, key } = await begin(store)
  const promote = await demote(key)
  await over(elsewhere, '30s')
    .destroy(secret)
    .catch(() => {})
  const row = await loginsAfter(store, secret, promote)
  const anew = async () => {
    // Postgres.js has still its old connections.
    proxy.sever()
    await proxy.heal()
    return begin(store)
  }
  const session = await anew()
  // Each connection of the pool is open, and falls silent.
  await Promise.all(Array.from({ length: 3 }, () => begin(store)))
  proxy.silence()
  row.push(...(await readsOf(store, session.secret)))
  await anew()
  const [stall, heal] = [() => proxy.stall(), () => proxy.heal()]
  row.push(await readAfter(store, session.secret, STOPPED, stall, heal))
  row.push(await readAfter(store, session.secret, DOWN, server.kill, server.restart))
  return row
}

/** @param {string} name */
async function postgresql(name) {
  const { startPostgres } = await support('services/postgres.ts')
  const { startProxy } = await support('services/proxy.ts')
  const { until } = await support('services/process.ts')
  const { PostgresStore } = await coatcheck('stores/postgres.js')
  const primary = await startPostgres()
  const elsewhere = new PostgresStore(primary.pool())
  await elsewhere.migrate()
  const standby = await startPostgres({}, { standbyOf: primary.port })
  const proxy = await startProxy(primary.port)
  const options = { host: '127.0.0.1', port: proxy.port, user: 'postgres', database: 'postgres', max: 3 }
  const js = {
    ...options,
    fetch_types: false,
    backoff: () => 0.5,
    ...(name.includes('watched') && { socket: watched }),
  }
  const store = new PostgresStore(
    name === 'pg' ? primary.pool({ ...options, connectionString: undefined }) : primary.postgresJs(js),
  )
  const at = standby.pool()
  /** The address leads to a standby that lags behind, and a second later new connections lead to the primary again. */
  const demote = async (/** @type {string} */ key) => {
    const text = 'SELECT 1 FROM coatcheck_sessions WHERE id = $1'
    await until('the standby having it', async () => {
      if ((await at.query(text, [key])).rowCount !== 1) throw new Error('not yet')
    })
    await at.query('SELECT pg_wal_replay_pause()')
    proxy.redirect(standby.port)
    proxy.sever()
    await proxy.heal()
    return () => proxy.redirect(primary.port)
  }
  const row = await sql(store, elsewhere, proxy, primary, demote)
  await Promise.all([proxy.stop(), standby.stop()])
  await primary.stop()
  return row
}

async function mysql2() {
  const { startMariadb } = await support('services/mariadb.ts')
  const { startProxy } = await support('services/proxy.ts')
  const { MysqlStore } = await coatcheck('stores/mysql.js')
  const server = await startMariadb()
  const admin = server.pool({ connectionLimit: 1 })
  await new MysqlStore(admin).migrate()
  await admin.query("CREATE USER app@'%'")
  await admin.query("GRANT SELECT, INSERT, UPDATE, DELETE ON test.* TO app@'%'")
  const proxy = await startProxy(server.port)
  const store = new MysqlStore(server.pool({ port: proxy.port, user: 'app', password: '', connectionLimit: 3 }))
  // An account that may write on a read-only server stands for the new primary.
  const demote = async () => {
    await admin.query('SET GLOBAL read_only = 1')
    return () => admin.query('SET GLOBAL read_only = 0')
  }
  const row = await sql(store, new MysqlStore(admin), proxy, server, demote)
  await proxy.stop()
  await server.stop()
  return row
}

const HEAD = [
  'client; times in seconds',
  'failover: first login',
  'logins refused',
  'ended sessions shown',
  'silence: first read',
  'reads failed',
  'stopped for 6 s: first read',
  'down for 5 s: first read',
]

/** What the page shows: version 5 of both clients was measured once, within two seconds of version 6. @param {string} client */
const isNewest = client => !/ 5\b/.test(client)

/** Prints the table; `write` puts it into its page as well. @param {boolean} write @param {readonly string[]} heading */
export async function benchFailover(write, heading) {
  const { CLUSTER, SENTINEL, STANDALONE } = await support('redis/clients.ts')
  /** @type {[readonly string[], (name: string) => Promise<unknown[]>][]} */
  const clients = [
    [Object.keys({ ...STANDALONE, ...CLUSTER, ...SENTINEL }).filter(isNewest), redis],
    [['pg', 'Postgres.js', 'Postgres.js, its socket watched'], postgresql],
    [['mysql2'], mysql2],
  ]
  /** @type {string[][]} */
  const rows = []
  for (const [names, measure] of clients)
    for (const name of names) {
      const row = [name, ...(await measure(name)).map(String)]
      console.log(row.join(', '))
      rows.push(row)
    }
  const printed = table(HEAD, rows)
  console.log(`\n${printed}\n`)
  if (write) writeBlocks('failover', ['docs/performance.md'], { table: printed, run: heading.slice(0, 2).join(' ') })
}
