// The reads of one turn of the event loop are one SELECT: what it costs, and what goes wrong with it.
import { SessionManager, SessionStoreError, type Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { type PostgresJs, PostgresStore } from 'coatcheck/stores/postgres'
import type mysql from 'mysql2/promise'
import type pg from 'pg'
import type { Sql } from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { within } from '../support/deadlines.ts'
import { describeEngine } from '../support/services/engines.ts'
import { type MariadbServer, startMariadb } from '../support/services/mariadb.ts'
import { type PostgresServer, startPostgres } from '../support/services/postgres.ts'
import { until } from '../support/services/process.ts'
import { anonymous, NOW, newKey, newWriteId, record } from './records.ts'

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

interface Rows {
  rows: unknown[]
}

interface Engine {
  readonly store: Store
  /** A store with a pool of its own. */
  open(max: number): Store
  /** A store whose driver answers each SELECT with what `change` makes of its rows. */
  mistaken(change: (rows: unknown[]) => unknown[]): Store
  /** What the server counts while `call` runs: statements of ours. */
  counted(call: () => Promise<unknown>): Promise<number>
  run(sql: string): Promise<unknown>
  /** Holds a lock of the table that no SELECT gets past; gives what ends it. */
  lockTable(): Promise<() => Promise<void>>
  /** How many SELECTs of ours wait for it. */
  waiting(): Promise<number>
  /** Ends the connections that wait for it. */
  killWaiting(): Promise<void>
}

async function put(store: Store, count: number): Promise<SessionRecord[]> {
  const records = Array.from({ length: count }, (_, i) => record({ userId: `${i}`, data: `{"place":${i}}` }))
  for (const one of records) await store.create(one, { now: NOW })
  return records
}

const readAll = (store: Store, records: readonly { key: string }[], deadline?: number) =>
  Promise.all(records.map(({ key }) => store.read(key, { now: NOW, deadline })))

/** The errors of readers of whom none may get an answer; each has one of its own. */
async function failures(readers: readonly unknown[]): Promise<SessionStoreError[]> {
  const outcomes = await Promise.allSettled(readers)
  const errors = outcomes.map(outcome =>
    outcome.status === 'rejected' ? outcome.reason : expect.unreachable('answered'),
  )
  for (const error of errors) {
    expect(error).toBeInstanceOf(SessionStoreError)
    expect(error).toMatchObject({ outcome: 'not-applied', message: 'the session store failed in read' })
  }
  expect(new Set(errors).size).toBe(errors.length)
  return errors
}

function sharedReads(get: () => Engine) {
  it('are one statement at the server, a lone one too, and equal keys are asked for once', async () => {
    const { store, counted } = get()
    const records = await put(store, 64)
    for (const count of [64, 5, 2, 1]) {
      const some = records.slice(0, count)
      await readAll(store, some)
      expect(await counted(async () => expect(await readAll(store, some)).toEqual(some))).toBe(1)
    }
    const [one] = records as [SessionRecord]
    expect(await counted(async () => expect(await readAll(store, [one, one, one])).toEqual([one, one, one]))).toBe(1)
    // 5,000 keys, of which 256 are asked for at a time.
    const many = [...records, ...Array.from({ length: 4936 }, () => ({ key: newKey() }))]
    await readAll(store, many)
    expect(await counted(() => readAll(store, many))).toBe(20)
  })

  it('bring each of their readers what stands under its own key: moved, expired, ended, absent and corrupt ones', async () => {
    const { store, run } = get()
    const [live, moved, corrupt, spoiled, last] = (await put(store, 5)) as [
      SessionRecord,
      SessionRecord,
      SessionRecord,
      SessionRecord,
      SessionRecord,
    ]
    const guest = anonymous()
    const expired = record({ userId: '7', expiresAt: NOW })
    for (const one of [guest, expired]) await store.create(one, { now: NOW })
    const next = record({ userId: moved.userId })
    await store.replace(moved.key, 1, next, { forward: { salt: 'c2FsdA', until: NOW + 60_000 } }, { now: NOW })
    await run(`UPDATE coatcheck_sessions SET version = -1 WHERE id = '${corrupt.key}'`)
    await run(`UPDATE coatcheck_sessions SET kind = 'a|b|c' WHERE id = '${spoiled.key}'`)
    const keys = [live, moved, corrupt, spoiled, { key: newKey() }, guest, expired, next, live, last]
    expect(await readAll(store, keys)).toEqual([
      live,
      { movedTo: next.key, salt: 'c2FsdA', until: NOW + 60_000 },
      { corrupt: expect.any(String) },
      { corrupt: expect.any(String) },
      null,
      guest,
      null,
      next,
      live,
      last,
    ])
    // What was corrupt has been ended, and nothing else.
    expect(await readAll(store, [corrupt, spoiled, live, last])).toEqual([null, null, live, last])
  })

  it('see what was acknowledged before they were asked for', async () => {
    const { store } = get()
    const records = await put(store, 20)
    for (let version = 1; version < 10; version++) {
      const early = readAll(store, records)
      const change = { data: `"${version}"`, seenAt: NOW, expiresAt: NOW + 9e6, writeId: newWriteId() }
      await Promise.all(records.map(({ key }) => store.update(key, version, change, { now: NOW })))
      for (const found of await readAll(store, records)) expect(found).toMatchObject({ version: version + 1 })
      await early
    }
  })

  it('answer readers whose rows a driver gave, and take no other for theirs', async () => {
    const { store, mistaken } = get()
    const records = await put(store, 6)
    const stranger = record({ userId: '666' })
    await store.create(stranger, { now: NOW })
    let strange: unknown
    await mistaken(rows => {
      strange = rows[0]
      return rows
    }).read(stranger.key, { now: NOW })
    // In any order.
    expect(
      await readAll(
        mistaken(rows => [...rows].reverse()),
        records,
      ),
    ).toEqual(records)
    // Fewer than asked for: the others are absent, as they are where nothing stands under their keys.
    const some = await readAll(
      mistaken(rows => rows.slice(0, 4)),
      records,
    )
    expect(some.filter(found => found === null).length).toBe(2)
    for (const [place, found] of some.entries()) if (found !== null) expect(found).toEqual(records[place])
    const mistakes: ((rows: unknown[]) => unknown[])[] = [
      rows => [...rows.slice(1), strange],
      rows => [...rows, strange],
      rows => [...rows, rows[0]],
      rows => rows.map(() => strange),
      rows => rows.map(row => (Array.isArray(row) ? [] : {})),
    ]
    for (const change of mistakes)
      for (const asked of [records, records.slice(0, 1)])
        await failures(asked.map(({ key }) => mistaken(change).read(key, { now: NOW })))
    for (const change of mistakes) {
      const wrong = mistaken(change)
      await failures(records.map(({ key }) => wrong.read(key, { now: NOW })))
    }
  })

  it('fail all at once where their connection is lost, and the next one too, each with an error of its own, and the next ones are answered', async () => {
    const { open, lockTable, killWaiting } = get()
    const store = open(1)
    const records = await put(store, 64)
    const release = await lockTable()
    try {
      const readers = records.map(({ key }) => store.read(key, { now: NOW, deadline: within(20_000) }))
      let isOver = false
      const all = failures(readers).finally(() => {
        isOver = true
      })
      // On the next connection too, where the read is repeated once.
      await until('the end of both connections', async () => {
        await killWaiting()
        expect(isOver).toBe(true)
      })
      await all
    } finally {
      await release()
    }
    expect(await readAll(store, records, within(10_000))).toEqual(records)
  })

  it('keep each its own deadline: a caller gives up while another waits, and gets its session', async () => {
    const { open, lockTable } = get()
    const store = open(1)
    const patient = new SessionManager({ store, storeTimeout: '20s', sweepInterval: false })
    const hasty = new SessionManager({ store, storeTimeout: '250ms', sweepInterval: false })
    const session = await patient.create({ user: { id: 5, name: 'ada' } })
    const release = await lockTable()
    let answered = false
    try {
      const waits = Promise.all([patient.get(session.secret), patient.get(session.secret)])
      waits.then(
        () => {
          answered = true
        },
        () => {},
      )
      await expect(hasty.get(session.secret)).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
      await pause(50)
      expect(answered).toBe(false)
      await release()
      for (const found of await waits) expect(found).toMatchObject({ key: session.key })
    } finally {
      if (!answered) await release()
      await Promise.all([patient.close(), hasty.close()])
    }
  })

  it('leave nothing at the server once their readers have given up, and their connections are free again', async () => {
    const { open, lockTable, waiting } = get()
    const store = open(2)
    const records = await put(store, 64)
    const release = await lockTable()
    try {
      for (let round = 0; round < 3; round++)
        await failures(records.map(({ key }) => store.read(key, { now: NOW, deadline: within(200) })))
      await until('no SELECT of ours', async () => expect(await waiting()).toBe(0))
    } finally {
      await release()
    }
    await until('all sessions', async () => expect(await readAll(store, records, within(1000))).toEqual(records))
  })
}

describeEngine('postgresql', 'reads of one turn on PostgreSQL', () => {
  let server: PostgresServer
  let admin: pg.Pool
  beforeAll(async () => {
    server = await startPostgres({ shared_preload_libraries: 'pg_stat_statements' })
    admin = server.pool()
    await admin.query('CREATE EXTENSION pg_stat_statements')
    await new PostgresStore(admin).migrate()
  })
  afterAll(() => server?.stop())
  const WAITING = "FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'SELECT%coatcheck_sessions%'"
  /** A `postgres` whose rows are changed; as pg gives them, text or NULL. */
  const mistakenSql = (change: (rows: unknown[]) => unknown[]) => {
    const bytes = (cell: unknown) => (cell === null ? null : Buffer.from(String(cell)))
    const text = (cell: Uint8Array | null) => (cell === null ? null : Buffer.from(cell).toString())
    const changed = async (query: PromiseLike<any>) => {
      const rows = await query
      const { count, columns } = rows
      return Object.assign(
        change(rows.map((row: any[]) => row.map(text))).map(row => (row as unknown[]).map(bytes)),
        { count, columns },
      )
    }
    const unsafe: PostgresJs['unsafe'] = (...query) => ({
      raw: () => changed(sql.unsafe(...query).raw()),
    })
    return Object.assign(() => {}, { unsafe, begin: sql.begin, options: sql.options })
  }
  let sql: Sql
  beforeAll(() => {
    sql = server.postgresJs()
  })
  const stores = {
    pg: (max?: number) => new PostgresStore(server.pool(max === undefined ? {} : { max })),
    postgres: (max?: number) => new PostgresStore(server.postgresJs(max === undefined ? {} : { max })),
  }
  describe.each(['pg', 'postgres'] as const)('through %s', driver =>
    sharedReads(() => ({
      store: new PostgresStore(driver === 'pg' ? admin : sql),
      open: stores[driver],
      mistaken: change =>
        driver === 'postgres'
          ? new PostgresStore(mistakenSql(change))
          : new PostgresStore({
              async connect() {
                const client = await admin.connect()
                return {
                  query(query: object, answer: (error: unknown, result?: Rows) => void) {
                    const asked = client.query(query as never) as unknown as Promise<Rows>
                    asked.then(result => answer(null, { ...result, rows: change(result.rows) }), answer)
                  },
                  on: () => {},
                  removeListener: () => {},
                  release: (destroy: boolean) => client.release(destroy),
                }
              },
            } as never),
      async counted(call) {
        await admin.query('SELECT pg_stat_statements_reset()')
        await call()
        const sql = `SELECT COALESCE(sum(calls), 0) AS calls FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'`
        return Number((await admin.query(sql)).rows[0].calls)
      },
      run: sql => admin.query(sql),
      async lockTable() {
        const client = await admin.connect()
        await client.query('BEGIN; LOCK TABLE coatcheck_sessions')
        return async () => {
          await client.query('ROLLBACK')
          client.release()
        }
      },
      waiting: async () => (await admin.query(`SELECT 1 ${WAITING}`)).rowCount!,
      async killWaiting() {
        await admin.query(`SELECT pg_terminate_backend(pid) ${WAITING}`)
      },
    })),
  )

  it('find many sessions by the primary key', async () => {
    await put(new PostgresStore(admin), 10)
    const client = await admin.connect()
    await client.query('SET enable_seqscan = off')
    for (const mode of ['force_custom_plan', 'force_generic_plan']) {
      await client.query(`SET plan_cache_mode = ${mode}`)
      await client.query('PREPARE many (text) AS SELECT 1 FROM coatcheck_sessions WHERE id = ANY ($1::text[])')
      const plan = await client.query(`EXPLAIN EXECUTE many ('{a,b,c}')`)
      expect(JSON.stringify(plan.rows)).toContain('coatcheck_sessions_pkey')
      await client.query('DEALLOCATE many')
    }
    client.release(true)
  })
})

describeEngine('mariadb', 'reads of one turn on MariaDB', () => {
  let server: MariadbServer
  let admin: mysql.Pool
  beforeAll(async () => {
    server = await startMariadb({ 'general-log': '1', 'log-output': 'TABLE' })
    admin = server.pool()
    await new MysqlStore(admin).migrate()
  })
  afterAll(() => server?.stop())
  const waiting = async () => {
    const [rows] = await admin.query<mysql.RowDataPacket[]>(
      "SELECT id FROM information_schema.processlist WHERE state LIKE 'Waiting for table%' AND info LIKE 'SELECT%'",
    )
    return rows.map(({ id }) => id as number)
  }
  sharedReads(() => ({
    store: new MysqlStore(admin),
    open: max => new MysqlStore(server.pool({ connectionLimit: max })),
    mistaken: change =>
      new MysqlStore({
        async getConnection() {
          const taken = await admin.getConnection()
          const core = (taken as unknown as { connection: any }).connection
          const execute = (sql: string, values: unknown, answer: (error: unknown, rows?: unknown[]) => void) =>
            core.execute(sql, values, (error: unknown, rows: unknown[]) => answer(error, error ? rows : change(rows)))
          const memberOf = (key: string) => (typeof core[key] === 'function' ? core[key].bind(core) : core[key])
          const get = (_: unknown, key: string | symbol) => (key === 'execute' ? execute : memberOf(key as string))
          return { connection: new Proxy(core, { get }) }
        },
      } as never),
    async counted(call) {
      await admin.query('TRUNCATE mysql.general_log')
      await call()
      const [rows] = await admin.query(
        `SELECT count(*) AS n FROM mysql.general_log
         WHERE command_type = 'Execute' AND argument LIKE '%coatcheck_sessions%'`,
      )
      return Number((rows as any)[0].n)
    },
    run: sql => admin.query(sql),
    async lockTable() {
      const connection = await admin.getConnection()
      await connection.query('LOCK TABLES coatcheck_sessions WRITE, coatcheck_sessions_users WRITE')
      return async () => {
        await connection.query('UNLOCK TABLES')
        connection.release()
      }
    },
    waiting: async () => (await waiting()).length,
    async killWaiting() {
      for (const id of await waiting()) await admin.query(`KILL ${id}`)
    },
  }))

  it('find many sessions by the primary key, however often a key stands in the list', async () => {
    const records = await put(new MysqlStore(admin), 300)
    const connection = await admin.getConnection()
    const one = new MysqlStore({
      getConnection: async () => Object.assign(Object.create(connection), { release() {} }),
    } as any)
    for (const count of [2, 5, 64, 70, 256]) {
      await readAll(one, records.slice(0, count))
      await connection.query('FLUSH STATUS')
      await readAll(one, records.slice(0, count))
      const [rows] = await connection.query("SHOW SESSION STATUS LIKE 'Handler_read%'")
      const reads = (rows as any[]).reduce((sum, { Value }) => sum + Number(Value), 0)
      expect(reads).toBeLessThanOrEqual(count + 1)
    }
    connection.release()
  })
})
