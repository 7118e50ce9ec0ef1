import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { soon, within } from '../support/deadlines.ts'
import { describeEngine } from '../support/services/engines.ts'
import { type MariadbDatabase, sharedMariadb } from '../support/services/mariadb.ts'
import { type PostgresDatabase, sharedPostgres } from '../support/services/postgres.ts'
import { isLive, NOW, record } from './records.ts'

const LONG = process.env.COATCHECK_LONG === '1'
const MANY = LONG ? 200_000 : 3_500
const USER = '42'
const everybody = { minPasswordVersion: 2, minPasswordVersionUntil: NOW + 1e9 }
/** Keys of the same length that sort by number. */
const keyOf = (number: number) => `many${String(number).padStart(42, '0')}`

interface Tables {
  store: PostgresStore | MysqlStore
  /** Nothing but `MANY` sessions of the user, of which every tenth has expired. */
  fill(): Promise<void>
  count(): Promise<number>
  /** Locks one session as another transaction does; gives what ends it. */
  hold(key: string): Promise<() => Promise<void>>
}

function manySessions(get: () => Tables) {
  it('ends what it can of very many sessions, keeps it ended, and ends the rest when it is repeated', async () => {
    const { store, fill, count, hold } = get()
    await fill()
    const release = await hold(keyOf(MANY))
    // As long as this machine needs for the first pieces: the last one waits for the lock, until the time is over.
    for (let time = 600; ; time *= 2) {
      const refused = await store
        .deleteUser(USER, everybody, { now: NOW, deadline: within(time) })
        .then(String, error => error)
      expect(refused).toMatchObject({ code: 'ERR_SESSION_STORE' })
      if ((await count()) >= MANY - 1000 && time < 30_000) continue
      // Part of it is committed: no caller may be told that nothing was written.
      expect(refused).toMatchObject({ outcome: 'unknown' })
      break
    }
    expect(await count()).toBeLessThan(MANY - 1000)
    // The minimum version came first: no login with the old password gets in meanwhile.
    const stale = record({ userId: USER, passwordVersion: 1 })
    expect(await store.create(stale, { now: NOW, deadline: soon() })).toBe('stale-login')
    await release()
    const fresh = record({ userId: USER, passwordVersion: 2 })
    expect(await store.create(fresh, { now: NOW, deadline: soon() })).toBe('created')
    let tries = 0
    for (let ended = false; !ended; tries++)
      ended = await store
        .deleteUser(USER, { ...everybody, exceptKey: fresh.key }, { now: NOW, deadline: within(2000) })
        .then(
          () => true,
          () => false,
        )
    if (LONG) console.log(`${MANY} sessions: ${tries} calls of 2 s`)
    expect(await count()).toBe(1)
    expect(await isLive(store, fresh.key)).toBe(true)
    await store.deleteUser(USER, everybody, { now: NOW, deadline: soon() })
  }, 120_000)

  it('counts the live sessions of all pieces, and spares the excepted one and its successor in each', async () => {
    const { store, fill, count } = get()
    await fill()
    const old = record({ userId: USER, passwordVersion: 2 })
    const next = record({ userId: USER, passwordVersion: 2 })
    await store.create(old, { now: NOW, deadline: soon() })
    const forward = { salt: 'c2FsdA', until: NOW }
    await store.replace(old.key, 1, next, { forward }, { now: NOW, deadline: soon() })
    const ended = await store.deleteUser(
      USER,
      { ...everybody, exceptKey: old.key },
      { now: NOW, deadline: within(100_000) },
    )
    expect(ended).toBe(MANY - Math.floor(MANY / 10))
    expect(await count()).toBe(1)
    expect(await isLive(store, next.key)).toBe(true)
    await store.deleteUser(USER, everybody, { now: NOW, deadline: soon() })
  }, 120_000)
}

const COLUMNS = `id, kind, namespace, user_id, user_name, password_version, data, version, write_id, created_at, seen_at,
  expires_at, absolute_expires_at`
const cells = (expired: string) =>
  `'session', '', '${USER}', 'ada', 1, '{}', 1, 'writeId0', ${NOW}, ${NOW}, ${expired}, ${NOW + 9e7}`
const EXPIRY = `CASE WHEN n % 10 = 0 THEN ${NOW - 1} ELSE ${NOW + 9e6} END`

describeEngine('postgresql', 'very many sessions of one user in PostgreSQL', () => {
  let server: PostgresDatabase
  let tables: Tables
  beforeAll(async () => {
    server = await sharedPostgres()
    const pool = server.pool()
    const store = new PostgresStore(pool)
    await store.migrate()
    tables = {
      store,
      async fill() {
        await pool.query('DELETE FROM coatcheck_sessions')
        await pool.query(`INSERT INTO coatcheck_sessions (${COLUMNS})
          SELECT 'many' || lpad(n::text, 42, '0'), ${cells(EXPIRY)} FROM generate_series(1, ${MANY}) n`)
      },
      count: async () =>
        Number((await pool.query(`SELECT count(*) FROM coatcheck_sessions WHERE user_id = '42'`)).rows[0].count),
      async hold(key) {
        const client = await pool.connect()
        await client.query(`BEGIN; SELECT 1 FROM coatcheck_sessions WHERE id = '${key}' FOR UPDATE`)
        return async () => {
          await client.query('ROLLBACK')
          client.release()
        }
      },
    }
  })
  afterAll(() => server?.stop())
  manySessions(() => tables)
})

describeEngine('mariadb', 'very many sessions of one user in MariaDB', () => {
  let server: MariadbDatabase
  let tables: Tables
  beforeAll(async () => {
    server = await sharedMariadb()
    const pool = server.pool()
    const store = new MysqlStore(pool)
    await store.migrate()
    tables = {
      store,
      async fill() {
        await pool.query('DELETE FROM coatcheck_sessions')
        await pool.query(`INSERT INTO coatcheck_sessions (${COLUMNS})
          SELECT CONCAT('many', LPAD(seq, 42, '0')), ${cells(EXPIRY.replace('n %', 'seq %'))} FROM seq_1_to_${MANY}`)
      },
      count: async () =>
        Number(
          ((await pool.query("SELECT count(*) AS n FROM coatcheck_sessions WHERE user_id = '42'")) as any)[0][0].n,
        ),
      async hold(key) {
        const connection = await pool.getConnection()
        await connection.query('START TRANSACTION')
        await connection.query(`SELECT 1 FROM coatcheck_sessions WHERE id = '${key}' FOR UPDATE`)
        return async () => {
          await connection.query('ROLLBACK')
          connection.release()
        }
      },
    }
  })
  afterAll(() => server?.stop())
  manySessions(() => tables)
})
