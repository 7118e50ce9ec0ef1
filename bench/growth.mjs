// @ts-check
// Whether a session costs more where there are more of them.
import { execFileSync, fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createClient } from 'redis'
import { mariadbEngine, missing, postgresEngine, redisEngine } from './engines.mjs'
import { openStore } from './open-store.mjs'
import { quantile } from './rounds.mjs'
import { coatcheck } from './servers/serve.mjs'
import { openSqlite, sqliteDrivers } from './sqlite.mjs'
import { fixed, table, whole } from './table.mjs'
import { cycleUser, settled, times, userCost, userTable } from './user-costs.mjs'

const ROUNDS = 15
const FEW = 1000
/** Few others beside a user with 10,000 sessions: of a table that is nearly his, a database reads all. */
const FEW_BESIDE = 100_000
const AT_ONCE = 64

/** @typedef {import('./user-costs.mjs').Asked} Asked */
/** @typedef {{ sessions: any, ids: string[], cpu: () => number, fill: (count: number) => Promise<void>, stop: () => Promise<void> } & Asked} Place */

/** @param {readonly number[]} values @param {readonly number[]} smallest */
const ratio = (values, smallest) => {
  const all = values.map((value, round) => value / /** @type {number} */ (smallest[round]))
  return [fixed(quantile(all)), `${fixed(quantile(all, 0.25))} to ${fixed(quantile(all, 0.75))}`]
}

/** A process with many sessions. @param {string} who @param {number} count */
async function holder(who, count) {
  const child = fork(fileURLToPath(new URL('measure/growth.mjs', import.meta.url)), [who, String(count)], {
    execArgv: ['--expose-gc', '--max-old-space-size=12288'],
  })
  let fail = (/** @type {Error} */ _error) => {}
  child.on('exit', () => fail(new Error(`the process with ${count} sessions ended`)))
  const answer = () =>
    new Promise((resolve, reject) => {
      fail = reject
      child.once('message', resolve)
    })
  await answer()
  return {
    ask: (/** @type {object} */ question) => {
      child.send(question)
      return /** @type {Promise<any>} */ (answer())
    },
    stop: () => {
      fail = () => {}
      child.disconnect()
    },
  }
}

/** @param {readonly number[]} sizes */
async function memoryGrowth(sizes) {
  /** @type {{ who: string, count: number, visitors: number, micros: number[] }[]} */
  const series = []
  /** @type {Map<string, Awaited<ReturnType<typeof holder>>>} */
  const holders = new Map()
  for (const who of ['coatcheck', 'a Map by hand'])
    for (const count of sizes) {
      holders.set(`${who} ${count}`, await holder(who, count))
      for (const visitors of [1000, 100_000]) if (visitors <= count) series.push({ who, count, visitors, micros: [] })
    }
  // Six rounds first: V8 compiles the read anew for some 100,000 gets after a million sessions were begun.
  for (let round = -6; round < ROUNDS; round += 1)
    for (const { who, count, visitors, micros } of series) {
      const spent = await holders.get(`${who} ${count}`)?.ask({ visitors })
      if (round >= 0) micros.push(spent)
    }
  const rows = series.map(({ who, count, visitors, micros }) => {
    const smallest = series.find(other => other.who === who && other.visitors === visitors)?.micros ?? []
    return [who, whole(count), whole(visitors), fixed(quantile(micros)), ...ratio(micros, smallest)]
  })
  console.log('\n### get in memory, by the number of sessions\n')
  console.log(
    'A processor keeps near what it used last: the more visitors, the less of it serves the next one. Each row is',
  )
  console.log('compared with the fewest sessions of the same number of visitors.\n')
  console.log(table(['', 'sessions', 'visitors', 'CPU of a get, µs', 'fewest = 1', 'middle half'], rows))
  for (const { stop } of holders.values()) stop()
}

/** In a process of its own, so that nothing of the others is in the way. @param {number[]} numbers few, many, cycles */
const memoryUsers = (...numbers) =>
  execFileSync(
    process.execPath,
    [
      '--max-old-space-size=12288',
      fileURLToPath(new URL('measure/users.mjs', import.meta.url)),
      ...numbers.map(String),
    ],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] },
  )

const ownCpu = () => {
  const { user, system } = process.cpuUsage()
  return user + system
}

/**
 * @param {any} store
 * @param {() => number} databaseCpu
 * @param {(count: number) => Promise<void>} fill
 * @param {() => Promise<void>} stop
 * @param {() => Promise<unknown>} [vacuum]
 * @returns {Promise<Place>}
 */
async function place(store, databaseCpu, fill, stop, vacuum) {
  const { SessionManager } = await coatcheck('index.js')
  const sessions = new SessionManager({ store, sweepInterval: false, storeTimeout: '60s' })
  /** @type {string[]} */
  const ids = []
  await times(FEW, async at => {
    ids.push((await sessions.create({ user: { id: at + 1, name: `user ${at + 1}` } })).secret)
  })
  const cpu = () => ownCpu() + databaseCpu()
  return {
    sessions,
    ids,
    cpu,
    fill,
    stop,
    cost: (shape, firstUser, isOneUser) => userCost({ sessions, cpu }, shape, firstUser, isOneUser),
    cycle: (user, cycles) => cycleUser(sessions, user, cycles),
    settle: () => settled(databaseCpu),
    vacuum,
  }
}

/** Redis copies a record and the index of its user. */
const COPY = `
local record, score = redis.call('GET', KEYS[1]), redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
for i = ARGV[1], ARGV[2] do
  local id = redis.sha1hex(i)
  redis.call('SET', '{' .. string.sub(id, 1, 3) .. '}:' .. string.sub(id, 4) .. i, record, 'PX', 7200000)
  local index = '{' .. string.sub(id, 1, 3) .. '}:u:' .. (1000000000 + i)
  redis.call('ZADD', index, score[2], string.sub(id, 4) .. i)
  redis.call('PEXPIRE', index, 7200000)
end`

async function redisPlace() {
  const engine = await redisEngine()
  const client = createClient({ url: engine.url })
  await client.connect()
  const { RedisStore } = await coatcheck('stores/redis.js')
  return place(
    new RedisStore(client),
    () => Number(engine.cpu()),
    async count => {
      const keys = await client.keys('*')
      const record = keys.find(key => !/:[uf]:/.test(key)) ?? ''
      const index = keys.find(key => key.includes(':u:')) ?? ''
      for (let first = 1; first <= count; first += 10_000)
        await client.eval(COPY, { keys: [record, index], arguments: [`${first}`, `${Math.min(count, first + 9999)}`] })
    },
    async () => {
      client.destroy()
      await engine.stop()
    },
  )
}

const COLUMNS = {
  PostgreSQL: { id: "'old' || md5(n::text) || substr(md5((-n)::text), 1, 8)", user_id: '1000000000 + n' },
  MariaDB: { id: "concat('old', md5(seq), substr(md5(concat('more', seq)), 1, 8))", user_id: '1000000000 + seq' },
  SQLite: { id: "'old' || printf('%040d', n)", user_id: '1000000000 + n' },
}
const MANY = {
  PostgreSQL: (/** @type {number} */ count) => `generate_series(1, ${count}) AS n`,
  MariaDB: (/** @type {number} */ count) => `seq_1_to_${count}`,
  SQLite: (/** @type {number} */ count) =>
    `(WITH RECURSIVE m(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM m WHERE n < ${count}) SELECT n FROM m)`,
}
/** @param {keyof typeof COLUMNS} kind @param {readonly string[]} columns @param {number} count */
const copy = (kind, columns, count) => {
  const copied = columns.map(column => /** @type {Record<string, string>} */ (COLUMNS[kind])[column] ?? column)
  return `INSERT INTO coatcheck_sessions (${columns.join(', ')}) SELECT ${copied.join(', ')}
    FROM (SELECT * FROM coatcheck_sessions WHERE user_id = '1') AS one CROSS JOIN ${MANY[kind](count)}`
}

/** @param {'PostgreSQL' | 'MariaDB'} kind */
async function serverPlace(kind) {
  const engine = await (kind === 'PostgreSQL' ? postgresEngine : mariadbEngine)()
  const { store, end } = await openStore(kind, engine.url, 10)
  await store.migrate()
  return place(
    store,
    () => Number(engine.cpu()),
    async count => {
      const names = "SELECT column_name AS c FROM information_schema.columns WHERE table_name = 'coatcheck_sessions'"
      const columns = (await engine.query(names)).map(({ c }) => c)
      await engine.query(copy(kind, columns, count))
      await engine.query(kind === 'PostgreSQL' ? 'VACUUM ANALYZE' : 'ANALYZE TABLE coatcheck_sessions')
    },
    async () => {
      await end()
      await engine.stop()
    },
    kind === 'PostgreSQL' ? () => engine.query('VACUUM') : undefined,
  )
}

async function sqlitePlace() {
  const [driver] = await sqliteDrivers()
  const folder = mkdtempSync(join(tmpdir(), 'coatcheck-bench-growth-'))
  const database = await openSqlite(/** @type {string} */ (driver), join(folder, 'sessions.db'))
  const { SqliteStore } = await coatcheck('stores/sqlite.js')
  const store = new SqliteStore(database)
  await store.migrate()
  return place(
    store,
    () => 0,
    async count => {
      const columns = database
        .prepare("SELECT name FROM pragma_table_info('coatcheck_sessions')")
        .all()
        .map((/** @type {any} */ { name }) => name)
      database.exec(copy('SQLite', columns, count))
      database.exec('PRAGMA wal_checkpoint(TRUNCATE); ANALYZE')
    },
    async () => {
      database.close()
      rmSync(folder, { recursive: true, force: true })
    },
  )
}

/** @param {Place} place */
async function perGet({ sessions, ids, cpu }) {
  const before = cpu()
  const gets = 2 * FEW
  for (let first = 0; first < gets; first += AT_ONCE) {
    const found = await Promise.all(
      Array.from({ length: AT_ONCE }, (_, at) => sessions.get(ids[((first + at) * 7919) % FEW])),
    )
    if (found.includes(null)) throw new Error('a session is missing')
  }
  return (cpu() - before) / gets
}

/** @param {() => Promise<Place>} open @param {number} beside few others for the table of users @param {number} size @param {number} cycles */
async function storeGrowth(open, beside, size, cycles) {
  const few = await open()
  const many = await open()
  try {
    await many.fill(size - FEW)
    await many.settle()
    /** @type {number[][]} */
    const micros = [[], []]
    for (let round = -3; round < ROUNDS; round += 1)
      for (const [at, one] of [few, many].entries()) {
        const spent = await perGet(one)
        if (round >= 0) micros[at]?.push(spent)
      }
    const [small = [], big = []] = micros
    const row = [fixed(quantile(small)), fixed(quantile(big)), ...ratio(big, small)]
    await few.fill(beside - FEW)
    return { row, users: await userTable(few, many, 100_000_000, cycles) }
  } finally {
    await few.stop()
    await many.stop()
  }
}

/** @param {boolean} isQuick */
export async function benchGrowth(isQuick) {
  const sizes = isQuick ? [1000, 100_000] : [1000, 100_000, 1_000_000, 5_000_000]
  const size = isQuick ? 100_000 : 1_000_000
  const beside = isQuick ? 10 * FEW : FEW_BESIDE
  const cycles = isQuick ? 5000 : 100_000
  const printUsers = (/** @type {string} */ name, /** @type {number} */ few, /** @type {string} */ users) => {
    console.log(`\n### list and invalidateUser: ${name}, beside ${whole(few)} and beside ${whole(size)} others\n`)
    console.log(
      'Processor time of one call, µs, the database included; a ratio is of one round. The cycles of the last row,',
    )
    console.log('logins and logouts, are those of the second; the user of the first has none behind him.\n')
    console.log(users)
  }
  await memoryGrowth(sizes)
  printUsers('memory', FEW, memoryUsers(FEW, size, cycles))
  for (const [name, engine, open] of /** @type {const} */ ([
    ['Redis, node-redis', 'redis', redisPlace],
    ['PostgreSQL', 'postgresql', () => serverPlace('PostgreSQL')],
    ['MariaDB', 'mariadb', () => serverPlace('MariaDB')],
    ['SQLite', 'memory', sqlitePlace],
  ])) {
    console.log(`\n### get in ${name}, with ${whole(FEW)} and with ${whole(size)} sessions\n`)
    const absent = missing(engine)
    if (absent !== null) {
      console.log(`Left out: ${absent}.`)
      continue
    }
    const { row, users } = await storeGrowth(open, beside, size, cycles)
    console.log('Processor time of this process and of the database together, 64 gets at once.\n')
    console.log(table([`${whole(FEW)}, µs`, `${whole(size)}, µs`, `${whole(FEW)} = 1`, 'middle half'], [row]))
    printUsers(name, beside, users)
  }
}
