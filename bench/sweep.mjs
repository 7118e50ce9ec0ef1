// @ts-check
// A million expired rows are swept by another process while visitors come: `npm run bench -- sweep`.
import { setTimeout as wait } from 'node:timers/promises'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { measure } from './measure/run.mjs'
import { openStore } from './open-store.mjs'
import { quantile } from './rounds.mjs'
import { coatcheck } from './servers/serve.mjs'
import { startMariadb, startPostgres } from './services.mjs'
import { fixed, table, whole } from './table.mjs'

/** The store's default. */
const TABLE = 'coatcheck_sessions'
const EXPIRED = 1_000_000
const USERS = 2000
const VISITORS = 8
/** How long a visitor waits between requests, in ms: what is measured is latency, not what the machine can bear. */
const THINK = 4
const BEFORE = 20_000

// Copies of one expired row, which the library itself wrote: other keys, other users, some seconds apart.
const COPY = {
  PostgreSQL: (/** @type {readonly string[]} */ columns) => `
    INSERT INTO ${TABLE} (${columns.join(', ')})
    SELECT ${columns.map(column => ({ id: "'old' || md5(n::text) || substr(md5((-n)::text), 1, 11)", user_id: '1000000 + n', expires_at: 'expires_at + n % 100000' })[column] ?? column).join(', ')}
    FROM ${TABLE} CROSS JOIN generate_series(1, ${EXPIRED}) AS n WHERE user_id = 999999`,
  MariaDB: (/** @type {readonly string[]} */ columns) => `
    INSERT INTO ${TABLE} (${columns.join(', ')})
    SELECT ${columns.map(column => ({ id: "concat('old', md5(seq), substr(md5(concat('more', seq)), 1, 11))", user_id: '1000000 + seq', expires_at: 'expires_at + seq % 100000' })[column] ?? column).join(', ')}
    FROM ${TABLE} CROSS JOIN seq_1_to_${EXPIRED} WHERE user_id = 999999`,
}

/**
 * @param {'PostgreSQL' | 'MariaDB'} kind
 * @param {string} url
 * @param {(text: string) => Promise<any[]>} query
 */
async function sweepOf(kind, url, query) {
  const { SessionManager } = await coatcheck('index.js')
  const { store, end } = await openStore(kind, url, 10)
  await store.migrate()
  const past = Date.now() - 30 * 24 * 3_600_000
  const old = new SessionManager({ store, sweepInterval: false, now: () => past })
  await old.create({ user: { id: 999_999, name: 'long ago' } })
  const columns = (
    await query(`SELECT column_name AS c FROM information_schema.columns WHERE table_name = '${TABLE}'`)
  ).map(({ c }) => c)
  await query(COPY[kind](columns))
  await query(`ANALYZE ${kind === 'MariaDB' ? 'TABLE ' : ''}${TABLE}`)

  /** @type {string[]} */
  const errors = []
  const sessions = new SessionManager({
    store,
    sweepInterval: false,
    touchInterval: '1s',
    onEvent: (/** @type {any} */ event) => {
      if (event.type === 'store-error') errors.push(event.error.message)
    },
  })
  /** @type {any[]} */
  const living = []
  for (let user = 1; user <= USERS; user += 1)
    living.push(await sessions.create({ user: { id: user, name: `user ${user}` } }))

  /** @type {number[]} */
  let latencies = []
  let isOpen = true
  // Nine of ten requests read (and touch, where it is due); the others write, log in anew, or log out and in.
  const visit = async (/** @type {number} */ visitor) => {
    for (let turn = 0; isOpen; turn += 1) {
      const at = (turn * VISITORS + visitor) % USERS
      const start = performance.now()
      const session = await sessions.get(living[at])
      if (session === null) throw new Error('a living session was swept')
      if (turn % 30 === 0) await sessions.update(session, { turn })
      else if (turn % 30 === 10) living[at] = await sessions.logIn(session, { user: { id: at + 1, name: 'again' } })
      else if (turn % 30 === 20) {
        await sessions.destroy(session)
        living[at] = await sessions.create({ user: { id: at + 1, name: 'anew' } })
      }
      latencies.push(performance.now() - start)
      await wait(THINK * (0.5 + Math.random()))
    }
  }
  const visitors = Promise.all(Array.from({ length: VISITORS }, (_, visitor) => visit(visitor)))
  await wait(2000)
  latencies = []
  await wait(BEFORE)
  const before = latencies
  latencies = []
  const sweep = await measure('sweep.mjs', kind, url)
  const during = latencies
  isOpen = false
  await visitors
  const left = await query(`SELECT count(*) AS n FROM ${TABLE} WHERE user_id >= 999999`)
  await end()
  const row = (/** @type {number} */ at) => [
    fixed(quantile(before, at), 1),
    fixed(quantile(during, at), 1),
    fixed(quantile(during, at) / quantile(before, at)),
  ]
  const all = [...errors, ...sweep.errors]
  console.log(`\n### 1,000,000 expired rows swept in ${kind}, with live traffic\n`)
  console.log(
    table(
      ['', 'before', 'during the sweep', 'ratio'],
      [
        ['requests', whole(before.length), whole(during.length), ''],
        ['latency, median, ms', ...row(0.5)],
        ['latency, 95 of 100, ms', ...row(0.95)],
        ['latency, 99 of 100, ms', ...row(0.99)],
        ['rows removed, rows left', '', `${whole(sweep.removed)}, ${Number(left[0].n)}`, ''],
        ['batch of at most 1,000 rows (4 statements), median, ms', '', fixed(quantile(sweep.batches), 1), ''],
        ['the same, 99 of 100', '', fixed(quantile(sweep.batches, 0.99), 1), ''],
        ['the whole sweep, s', '', fixed(sweep.seconds, 1), ''],
        ['errors (deadlocks and others)', '', String(all.length), ''],
      ],
    ),
  )
  for (const error of new Set(all)) console.log(`\nError: ${error}`)
}

export async function benchSweep() {
  const postgres = await startPostgres()
  const client = new pg.Client(postgres.url)
  try {
    await client.connect()
    await sweepOf('PostgreSQL', postgres.url, async text => (await client.query(text)).rows)
  } finally {
    await client.end()
    await postgres.stop()
  }
  const mariadb = await startMariadb()
  const connection = await mysql.createConnection(mariadb.url)
  try {
    await sweepOf('MariaDB', mariadb.url, async text => /** @type {any[]} */ ((await connection.query(text))[0]))
  } finally {
    await connection.end()
    await mariadb.stop()
  }
}
