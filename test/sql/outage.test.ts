import { SessionStoreError, type Store } from 'coatcheck'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import type mysql from 'mysql2/promise'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { soon, within } from '../support/deadlines.ts'
import { describeEngine } from '../support/services/engines.ts'
import { type MariadbServer, startMariadb } from '../support/services/mariadb.ts'
import { type PostgresServer, startPostgres } from '../support/services/postgres.ts'
import { until } from '../support/services/process.ts'
import { type FaultProxy, startProxy } from '../support/services/proxy.ts'
import { openSqlite, SQLITE_DRIVERS, sqliteFile } from '../support/services/sqlite.ts'
import { isLive, NOW, newKey, newWriteId, record } from './records.ts'

/** How long a call waits that is to be given up, in ms. */
const TIMEOUT = 400
const deadline = () => within(TIMEOUT)
const change = () => ({ data: '"new"', seenAt: NOW, expiresAt: NOW + 9e6, writeId: newWriteId() })
const everybody = { minPasswordVersion: 1, minPasswordVersionUntil: NOW + 1e9 }

/** The error of a call that has to fail by its deadline, where a call without one would never end. */
async function failure(call: unknown): Promise<SessionStoreError> {
  const error = await Promise.resolve(call).then(
    value => expect.unreachable(`answered ${JSON.stringify(value)}`),
    error => error,
  )
  expect(error).toBeInstanceOf(SessionStoreError)
  return error
}

async function allFail(store: Store): Promise<void> {
  const key = newKey()
  const one = record()
  await Promise.all([
    failure(Promise.resolve(store.read(key, { now: NOW, deadline: deadline() }))),
    failure(store.create(one, { now: NOW, deadline: deadline() })),
    failure(store.update(key, 1, change(), { now: NOW, deadline: deadline() })),
    failure(store.touch(key, NOW, NOW, { now: NOW, deadline: deadline() })),
    failure(store.replace(key, 1, one, {}, { now: NOW, deadline: deadline() })),
    failure(store.delete(key, { now: NOW, deadline: deadline() })),
    failure(store.deleteUser('42', everybody, { now: NOW, deadline: deadline() })),
    failure(store.listUser('42', 'session', { now: NOW, deadline: deadline() })),
    failure(store.sweep!(10, { now: NOW, deadline: deadline() })),
  ])
}

interface Server {
  open(options?: { direct?: boolean; max?: number }): { store: Store; take(): Promise<() => void> }
  /** A transaction of another connection; gives what ends it. */
  hold(sql: string): Promise<() => Promise<void>>
  inTransaction(): Promise<number>
  /** What a COMMIT looks like on the wire, unlike READ COMMITTED. */
  readonly commit: string
  readonly proxy: FaultProxy
  readonly server: { kill(): Promise<void>; restart(): Promise<void> }
}

function outages(get: () => Server) {
  it('fails by the deadline while the server is dead, and resumes by itself', async () => {
    const { open, server } = get()
    const { store } = open({ direct: true })
    const one = record()
    await store.create(one, { now: NOW })
    await server.kill()
    // The processes of PostgreSQL's connections outlive it by a moment.
    await until('the end of the last connection', () => allFail(store))
    await server.restart()
    await until('an answer', async () => expect(await isLive(store, one.key)).toBe(true))
  })

  it('says that an update may have been applied when its answer is lost, and counts its repetition once', async () => {
    const { open, proxy } = get()
    const { store } = open()
    const one = record()
    await store.create(one, { now: NOW })
    const edit = change()
    const lost = proxy.loseAnswerTo(one.key)
    expect(await failure(store.update(one.key, 1, edit, { now: NOW, deadline: soon() }))).toMatchObject({
      outcome: 'unknown',
    })
    await lost
    await until('the same update', async () =>
      expect(await store.update(one.key, 1, edit, { now: NOW, deadline: deadline() })).toBe('updated'),
    )
    expect(await store.read(one.key, { now: NOW })).toMatchObject({ version: 2 })
  })

  it('answers a read whose connection is closed on the way, by another one, and never a write', async () => {
    const { open, proxy } = get()
    const { store } = open()
    const one = record({ userId: '76' })
    await store.create(one, { now: NOW })
    const reads: [string, () => unknown][] = [
      [one.key, () => store.read(one.key, { now: NOW, deadline: soon() })],
      ['76', async () => (await store.listUser('76', 'session', { now: NOW, deadline: soon() }))[0]],
      [one.key, async () => (await Promise.all([one.key, newKey()].map(key => store.read(key, { now: NOW }))))[0]],
    ]
    for (const [sent, read] of reads) {
      const lost = proxy.loseAnswerTo(sent)
      expect(await read()).toEqual(one)
      await lost
    }
    const lost = proxy.loseAnswerTo(one.key)
    await failure(store.touch(one.key, NOW + 1, NOW + 9e6, { now: NOW, deadline: soon() }))
    await lost
  })

  it('makes one session of a login whose answer is lost and that is repeated', async () => {
    const { open, proxy } = get()
    const { store } = open()
    const one = record()
    await store.read(one.key, { now: NOW })
    const lost = proxy.loseAnswerTo(one.key)
    expect(await failure(store.create(one, { now: NOW, deadline: soon() }))).toMatchObject({
      outcome: 'unknown',
    })
    await lost
    await until('the same login', async () =>
      expect(await store.create(one, { now: NOW, deadline: deadline() })).toBe('created'),
    )
  })

  it('can repeat a logout everywhere whose connection is cut between commit and answer', async () => {
    const { open, proxy, inTransaction, commit } = get()
    const { store } = open()
    const one = record({ userId: '77' })
    await store.create(one, { now: NOW })
    const lost = proxy.loseAnswerTo(commit)
    expect(await failure(store.deleteUser('77', everybody, { now: NOW, deadline: soon() }))).toMatchObject({
      outcome: 'unknown',
    })
    await lost
    await until('the same logout', () => store.deleteUser('77', everybody, { now: NOW, deadline: deadline() }))
    expect(await isLive(store, one.key)).toBe(false)
    expect(await store.create(record({ userId: '77' }), { now: NOW })).toBe('stale-login')
    await until('no open transaction', async () => expect(await inTransaction()).toBe(0))
  })

  it('runs nothing late when the pool was exhausted', async () => {
    const { store, take } = get().open({ max: 1 })
    const one = record({ userId: '78' })
    await store.create(one, { now: NOW })
    const release = await take()
    const refused = await failure(store.deleteUser('78', everybody, { now: NOW, deadline: deadline() }))
    expect(refused).toMatchObject({ outcome: 'not-applied' })
    await failure(store.update(one.key, 1, change(), { now: NOW, deadline: deadline() }))
    release()
    await new Promise(resolve => setTimeout(resolve, 200))
    expect(await store.read(one.key, { now: NOW })).toEqual(one)
  })

  it('runs nothing late when another transaction held the lock', async () => {
    const { open, hold, inTransaction } = get()
    const { store } = open({ max: 2 })
    const one = record({ userId: '79' })
    await store.create(one, { now: NOW })
    const release = await hold(`SELECT * FROM coatcheck_sessions WHERE id = '${one.key}' FOR UPDATE`)
    await Promise.all([
      failure(store.update(one.key, 1, change(), { now: NOW, deadline: deadline() })),
      failure(store.touch(one.key, NOW + 5, NOW + 9e6, { now: NOW, deadline: deadline() })),
      failure(store.delete(one.key, { now: NOW, deadline: deadline() })),
      failure(store.deleteUser('79', everybody, { now: NOW, deadline: deadline() })),
    ])
    // Time for what was told to stop: it must have stopped before the lock is free.
    await new Promise(resolve => setTimeout(resolve, 500))
    await release()
    await new Promise(resolve => setTimeout(resolve, 300))
    expect(await store.read(one.key, { now: NOW })).toEqual(one)
    await until('no open transaction', async () => expect(await inTransaction()).toBe(0))
    expect(await store.deleteUser('79', everybody, { now: NOW, deadline: soon() })).toBe(1)
  })
}

describeEngine('postgresql', 'an outage of PostgreSQL', () => {
  let server: PostgresServer
  let proxy: FaultProxy
  let admin: pg.Pool
  beforeAll(async () => {
    server = await startPostgres()
    proxy = await startProxy(server.port)
    admin = server.pool()
    await new PostgresStore(admin).migrate()
  })
  afterAll(async () => {
    await proxy?.stop()
    await server?.stop()
  })
  const open: Server['open'] = ({ direct = false, max = 3 } = {}) => {
    const url = direct ? server.url() : server.url().replace(String(server.port), String(proxy.port))
    const pool = server.pool({ connectionString: url, max })
    const take = async () => {
      const client = await pool.connect()
      return () => client.release()
    }
    return { store: new PostgresStore(pool), take }
  }
  const openSql: Server['open'] = ({ direct = false, max = 3 } = {}) => {
    const sql = server.postgresJs({ port: direct ? server.port : proxy.port, max, backoff: () => 0.05 })
    const take = async () => {
      const reserved = await sql.reserve()
      return () => reserved.release()
    }
    return { store: new PostgresStore(sql), take }
  }
  const drivers = [
    ['pg', open, 'COMMIT\0'],
    ['postgres', openSql, 'commit\0'],
  ] as const
  describe.each(drivers)('through %s', (_, open, commit) => {
    // The same users for each driver: the minimum versions of one are not for the next.
    beforeAll(() => admin.query('DELETE FROM coatcheck_sessions; DELETE FROM coatcheck_sessions_users'))
    outages(() => ({
      server,
      commit,
      proxy,
      open,
      async hold(sql) {
        const client = await admin.connect()
        await client.query(`BEGIN; ${sql}`)
        return async () => {
          await client.query('ROLLBACK')
          client.release()
        }
      },
      inTransaction: async () =>
        Number(
          (await admin.query("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'")).rows[0]
            .count,
        ),
    }))
  })

  it('gives up a read that the server does not answer, and its connection', async () => {
    const pool = server.pool({ max: 1 })
    const store = new PostgresStore(pool)
    await store.read(newKey(), { now: NOW })
    const client = await admin.connect()
    await client.query('BEGIN; LOCK TABLE coatcheck_sessions IN ACCESS EXCLUSIVE MODE')
    expect(await failure(store.read(newKey(), { now: NOW, deadline: deadline() }))).toMatchObject({
      outcome: 'not-applied',
    })
    await client.query('ROLLBACK')
    client.release()
    expect(await store.read(newKey(), { now: NOW, deadline: soon() })).toBe(null)
  })

  it('tells a read-only database from a logout', async () => {
    const store = new PostgresStore(server.pool({ options: '-c default_transaction_read_only=on' }))
    const error = await failure(store.create(record(), { now: NOW, deadline: soon() }))
    expect(error).toMatchObject({ outcome: 'not-applied', status: 503 })
    expect(String(error.cause)).toContain('read-only')
    expect(await store.read(newKey(), { now: NOW, deadline: soon() })).toBe(null)
  })

  it('goes on without prepared statements behind a pooler that does not know them', async () => {
    // What pgbouncer in transaction mode does: the statement is looked for on another server connection.
    const pool = server.pool({ max: 1 })
    const store = new PostgresStore(pool)
    await store.read(newKey(), { now: NOW })
    await pool.query('DEALLOCATE ALL')
    expect(await store.read(newKey(), { now: NOW, deadline: soon() })).toBe(null)
    await pool.query('DEALLOCATE ALL')
    expect(await store.create(record({ userId: '80' }), { now: NOW, deadline: soon() })).toBe('created')
  })
})

describeEngine('mariadb', 'an outage of MariaDB', () => {
  let server: MariadbServer
  let proxy: FaultProxy
  let admin: mysql.Pool
  beforeAll(async () => {
    server = await startMariadb()
    proxy = await startProxy(server.port)
    admin = server.pool()
    await new MysqlStore(admin).migrate()
  })
  afterAll(async () => {
    await proxy?.stop()
    await server?.stop()
  })
  outages(() => ({
    server,
    commit: '\x03COMMIT',
    proxy,
    open({ direct = false, max = 3 } = {}) {
      const uri = direct ? server.url() : server.url().replace(String(server.port), String(proxy.port))
      const pool = server.pool({ uri, connectionLimit: max })
      const take = async () => {
        const connection = await pool.getConnection()
        return () => connection.release()
      }
      return { store: new MysqlStore(pool), take }
    },
    async hold(sql) {
      const connection = await admin.getConnection()
      await connection.query('START TRANSACTION')
      await connection.query(sql)
      return async () => {
        await connection.query('ROLLBACK')
        connection.release()
      }
    },
    inTransaction: async () =>
      Number(((await admin.query('SELECT count(*) AS n FROM information_schema.innodb_trx')) as any)[0][0].n),
  }))

  it('refuses to write where autocommit is off', async () => {
    const pool = server.pool({ connectionLimit: 1 })
    pool.on('connection', connection => connection.query('SET autocommit = 0'))
    const one = record()
    const error = await failure(new MysqlStore(pool).create(one, { now: NOW, deadline: soon() }))
    expect(String(error.cause)).toContain('autocommit is off')
    expect(await isLive(new MysqlStore(admin), one.key)).toBe(false)
  })
})

for (const driver of SQLITE_DRIVERS)
  describeEngine(driver, `an outage of SQLite with ${driver}`, () => {
    const { file, remove } = sqliteFile()
    afterAll(remove)
    const open = async () => {
      const database = openSqlite(driver, file)
      const store = new SqliteStore(database)
      await store.migrate()
      return { database, store }
    }

    it('waits for a lock of another connection without blocking the event loop', async () => {
      const [{ store }, other] = [await open(), (await open()).database]
      const one = record()
      await store.create(one, { now: NOW })
      other.exec('BEGIN IMMEDIATE')
      // SQLite's own waiting would let the loop turn once, when it is over.
      let turns = 0
      const counting = setInterval(() => ++turns, 1)
      const error = await failure(store.update(one.key, 1, change(), { now: NOW, deadline: deadline() }))
      clearInterval(counting)
      expect(error).toMatchObject({ outcome: 'not-applied' })
      expect(turns).toBeGreaterThan(3)
      expect(await store.read(one.key, { now: NOW, deadline: soon() })).toEqual(one)
      const waiting = store.update(one.key, 1, change(), { now: NOW, deadline: soon() })
      other.exec('COMMIT')
      expect(await waiting).toBe('updated')
      other.close()
    })

    it('waits for a transaction that the application has open on the same connection', async () => {
      const { store, database } = await open()
      const one = record({ userId: '9' })
      database.exec('BEGIN')
      const waiting = store.create(one, { now: NOW, deadline: soon() })
      await new Promise(resolve => setTimeout(resolve, 20))
      database.exec('ROLLBACK')
      expect(await waiting).toBe('created')
      expect(await isLive(store, one.key)).toBe(true)
    })

    it('says that nothing was written to a full or read-only file', async () => {
      const { store, database } = await open()
      database.exec('PRAGMA max_page_count = 1')
      const big = () =>
        store.create(record({ userId: '10', data: 'x'.repeat(1_000_000) }), { now: NOW, deadline: soon() })
      expect(await failure(big())).toMatchObject({ outcome: 'not-applied' })
      database.exec('PRAGMA max_page_count = 1000000')
      expect(await big()).toBe('created')
      database.exec('PRAGMA query_only = 1')
      expect(await failure(big())).toMatchObject({ outcome: 'not-applied' })
      expect((await store.listUser('10', 'session', { now: NOW })).length).toBe(1)
      database.exec('PRAGMA query_only = 0')
      database.close()
      await allFail(store)
    })
  })
