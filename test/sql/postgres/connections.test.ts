// Connections of pg that end, or whose statement was given up.
import { PostgresStore } from 'coatcheck/stores/postgres'
import { expect, it, onTestFinished, vi } from 'vitest'
import { failure, survive } from '../../support/failure.ts'
import { describeEngine } from '../../support/services/engines.ts'
import { until } from '../../support/services/process.ts'
import { postgresOf } from '../databases.ts'
import { givenUp } from '../locks.ts'
import { proxiedPostgres } from '../proxied.ts'
import { call, NOW, newKey, record } from '../records.ts'

describeEngine('postgresql', 'a connection of pg', () => {
  const own = postgresOf(proxiedPostgres)
  const openPool = (max: number, name = '') =>
    own.server.pool({ connectionString: own.server.proxiedUrl(), max, application_name: name })

  it('is not given back when its statement was given up: a cancel that comes late would meet the next statement', async () => {
    const pool = openPool(1)
    const store = new PostgresStore(pool)
    const pid = async () => (await pool.query('SELECT pg_backend_pid() AS pid')).rows[0].pid
    const before = await pid()
    const release = await own.locks.hold()
    await givenUp(when => store.read(newKey(), when))
    expect(await pid()).not.toBe(before)
    await release()
  })

  it('is kept where a transaction failed, though no time was left for its ROLLBACK', async () => {
    const table = 'checked_sessions'
    const pool = openPool(1)
    const store = new PostgresStore(pool, { table })
    await store.migrate()
    const pid = async () => (await pool.query('SELECT pg_backend_pid() AS pid')).rows[0].pid
    const before = await pid()
    const held = record({ userId: '7903' })
    await store.create(held, { now: NOW })
    await own.admin.query(`CREATE TABLE holding (id text COLLATE "C" REFERENCES ${table} (id))`)
    await own.admin.query('INSERT INTO holding VALUES ($1)', [held.key])
    // All of its time is over once it hears that it failed.
    const real = performance.now.bind(performance)
    let passed = 0
    vi.spyOn(performance, 'now').mockImplementation(() => real() + passed)
    const client: any = await pool.connect()
    const { query } = client
    client.query = (...statement: any[]) => {
      const answer = statement.pop()
      return query.call(client, ...statement, (error: unknown, result: unknown) => {
        if (error) passed = 9e6
        answer(error, result)
      })
    }
    client.release()
    onTestFinished(() => own.server.proxy.slow(0))
    own.server.proxy.slow(100)
    await failure(store.deleteUser('7903', { minPasswordVersionUntil: NOW }, call()))
    expect(await pid()).toBe(before)
  })

  it('ends no process where the server ends it in the moment in which it becomes ready', () =>
    survive(async () => {
      const ready = Buffer.from('Z\0\0\0\x05I')
      const fields = 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0'
      const ended = Buffer.alloc(5 + fields.length, 'E')
      ended.writeInt32BE(4 + fields.length, 1)
      ended.write(fields, 5, 'latin1')
      const store = new PostgresStore(openPool(1))
      for (let i = 0; i < 3; i++) {
        own.server.proxy.endAfter(ready, ended)
        // Nobody knows whether the statement has arrived.
        await failure(store.touch(newKey(), NOW, NOW, call()))
      }
      own.server.proxy.endAfter(ready, ended)
      // A read is repeated on another connection.
      expect(await store.read(newKey(), call())).toBe(null)
    }))

  it('ends no process where it ends while it is idle, though the application does not listen to its pool', () =>
    survive(async () => {
      const pool = openPool(2, 'idle')
      pool.removeAllListeners('error')
      const store = new PostgresStore(pool)
      const another = new PostgresStore(pool)
      expect(pool.listenerCount('error')).toBe(1)
      await Promise.all([store.read(newKey(), { now: NOW }), another.read(newKey(), { now: NOW })])
      expect(pool.idleCount).toBe(2)
      const ended = await own.admin.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'idle'",
      )
      expect(ended.rowCount).toBe(2)
      await until('the pool to hear of it', async () => expect(pool.totalCount).toBe(0))
      expect(await store.read(newKey(), call())).toBe(null)
    }))
})
