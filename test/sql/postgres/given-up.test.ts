import { PostgresStore } from 'coatcheck/stores/postgres'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { soon, within } from '../../support/deadlines.ts'
import { leaked } from '../../support/scan.ts'
import { describeEngine } from '../../support/services/engines.ts'
import { type PostgresServer, startPostgres } from '../../support/services/postgres.ts'
import { until } from '../../support/services/process.ts'
import { type FaultProxy, startProxy } from '../../support/services/proxy.ts'
import { failure, survive } from '../../support/failure.ts'
import { givenUp, pause } from '../given-up.ts'
import { NOW, newKey, record } from '../records.ts'

describeEngine('postgresql', 'what was given up at PostgreSQL', () => {
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
  const openPool = (max: number, name?: string) =>
    server.pool({
      connectionString: server.url().replace(String(server.port), String(proxy.port)),
      max,
      ...(name === undefined ? {} : { application_name: name }),
    })
  const openSql = (max: number, name?: string) =>
    server.postgresJs({
      port: proxy.port,
      max,
      ...(name === undefined ? {} : { connection: { application_name: name } }),
    })
  const engine = {
    get direct() {
      return new PostgresStore(admin)
    },
    get proxy() {
      return proxy
    },
    atMost: 10,
    connections: async (name: string) =>
      Number(
        (await admin.query('SELECT count(*) FROM pg_stat_activity WHERE application_name = $1', [name])).rows[0].count,
      ),
    async lockTable() {
      const client = await admin.connect()
      await client.query('BEGIN; ALTER TABLE coatcheck_sessions ADD COLUMN more int')
      return async () => {
        await client.query('ROLLBACK')
        client.release()
      }
    },
  }
  const drivers = [
    ['pg', 'COMMIT\0', (max: number, name?: string) => new PostgresStore(openPool(max, name))],
    ['postgres', 'commit\0', (max: number, name?: string) => new PostgresStore(openSql(max, name))],
  ] as const
  describe.each(drivers)('through %s', (driver, commit, open) => {
    // The same users for each driver: the minimum versions of one are not for the next.
    beforeAll(() => admin.query('DELETE FROM coatcheck_sessions; DELETE FROM coatcheck_sessions_users'))
    // The connections of the other driver's test may still be there.
    const nameOf = (name: string) => `${name} of ${driver}`
    givenUp(() => ({
      ...engine,
      commit,
      open: (max, name) => open(max, name && nameOf(name)),
      connections: name => engine.connections(nameOf(name)),
    }))
  })

  it('lets who comes later wait as long as others for a connection, whenever the pool refuses those that gave up', async () => {
    const pool = server.pool({ max: 1, connectionTimeoutMillis: 1500 })
    const store = new PostgresStore(pool)
    const one = record({ userId: '7901' })
    await store.create(one, { now: NOW })
    const taken = await pool.connect()
    const gaveUp = failure(store.read(one.key, { now: NOW, deadline: within(700) }))
    await pause(1000)
    const later = store.read(one.key, { now: NOW, deadline: soon() })
    await gaveUp
    await pause(800)
    taken.release()
    expect(await later).toMatchObject({ key: one.key })
  })

  it('gives no connection back whose statement was given up: a cancel that comes late would meet the next statement', async () => {
    const pool = openPool(1)
    const store = new PostgresStore(pool)
    const pid = async () => (await pool.query('SELECT pg_backend_pid() AS pid')).rows[0].pid
    const client = await admin.connect()
    await client.query('BEGIN; LOCK TABLE coatcheck_sessions')
    try {
      const before = await pid()
      await failure(store.read(newKey(), { now: NOW, deadline: within(100) }))
      expect(await pid()).not.toBe(before)
    } finally {
      await client.query('ROLLBACK')
      client.release()
    }
  })

  it('keeps connections whose transaction failed, however little time was left for its ROLLBACK', async () => {
    const table = 'checked_sessions'
    const pool = openPool(1)
    const store = new PostgresStore(pool, { table })
    await store.migrate()
    const pid = async () => (await pool.query('SELECT pg_backend_pid() AS pid')).rows[0].pid
    const before = await pid()
    const held = record({ userId: '7903' })
    await store.create(held, { now: NOW })
    await admin.query(`CREATE TABLE holding (id text COLLATE "C" REFERENCES ${table} (id))`)
    await admin.query('INSERT INTO holding VALUES ($1)', [held.key])
    const logOut = (userId: string, deadline: number) =>
      store.deleteUser(userId, { minPasswordVersionUntil: NOW }, { now: NOW, deadline })
    await logOut('7904', within(5000))
    proxy.slow(100)
    try {
      const begun = performance.now()
      await logOut('7904', within(5000))
      // As long as from the first statement to the COMMIT: in its place there is a ROLLBACK.
      const took = performance.now() - begun
      for (const more of [50, 1000]) {
        await failure(logOut('7903', within(took + more)))
        expect(await pid()).toBe(before)
      }
    } finally {
      proxy.slow(0)
    }
  })

  it('survives a connection that the server ends in the moment in which it becomes ready', () =>
    survive(async () => {
      const ready = Buffer.from('Z\0\0\0\x05I')
      const fields = 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0'
      const ended = Buffer.alloc(5 + fields.length, 'E')
      ended.writeInt32BE(4 + fields.length, 1)
      ended.write(fields, 5, 'latin1')
      const store = new PostgresStore(openPool(1))
      for (let i = 0; i < 3; i++) {
        proxy.endAfter(ready, ended)
        // Nobody knows whether the statement has arrived.
        await failure(store.touch(newKey(), NOW, NOW, { now: NOW, deadline: soon() }))
      }
      proxy.endAfter(ready, ended)
      // A read is repeated on another connection.
      expect(await store.read(newKey(), { now: NOW, deadline: soon() })).toBe(null)
    }))

  it('survives the end of idle connections, though the application does not listen to its pool', () =>
    survive(async () => {
      const pool = openPool(2, 'idle')
      pool.removeAllListeners('error')
      const store = new PostgresStore(pool)
      const another = new PostgresStore(pool)
      expect(pool.listenerCount('error')).toBe(1)
      await Promise.all([store.read(newKey(), { now: NOW }), another.read(newKey(), { now: NOW })])
      expect(pool.idleCount).toBe(2)
      const ended = await admin.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'idle'",
      )
      expect(ended.rowCount).toBe(2)
      await until('the pool to hear of it', async () => expect(pool.totalCount).toBe(0))
      expect(await store.read(newKey(), { now: NOW, deadline: soon() })).toBe(null)
    }))

  it('tells clients neither host nor table, and logs no value of a statement', async () => {
    const table = 'strict_sessions'
    const store = new PostgresStore(admin, { table })
    expect((await failure(store.read(newKey(), { now: NOW }))).message).not.toContain(table)
    await store.migrate()
    await admin.query(`ALTER TABLE ${table} ADD CHECK (user_name <> 'Grace Hopper')`)
    const one = record({ userName: 'Grace Hopper', data: '{"cart":"a secret book"}' })
    const error = await failure(store.create(one, { now: NOW }))
    expect(error.message).toBe('the session store failed in create')
    expect(error.cause).toMatchObject({ code: '23514', table, message: expect.stringContaining('check constraint') })
    expect(leaked(error, [one.key, one.writeId, 'Grace Hopper', 'a secret book'])).toBe(null)
    const away = new PostgresStore(server.pool({ connectionString: 'postgres://ada:pw@127.0.0.1:1/x' }))
    const refused = await failure(away.read(newKey(), { now: NOW }))
    expect(refused.message).toBe('the session store failed in read')
    expect(refused.cause).toMatchObject({ cause: { code: 'ECONNREFUSED' } })
  })
})
