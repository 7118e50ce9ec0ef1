// The application gives a connection back to the pool that it shares with the store, and has left a transaction open on it.
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import type { PoolConnection } from 'mysql2/promise'
import { beforeAll, expect, it } from 'vitest'
import { failure } from '../support/failure.ts'
import { describeEngine } from '../support/services/engines.ts'
import { sharedMariadb } from '../support/services/mariadb.ts'
import { sharedPostgres } from '../support/services/postgres.ts'
import { mariadbOf, postgresOf } from './databases.ts'
import { call, change, isLive, NOW, record } from './records.ts'

type Store = PostgresStore | MysqlStore

interface Shared {
  /** The store of another node. */
  readonly other: Store
  /** A store over a pool of one connection. */
  readonly store: Store
  /** Takes the one connection, runs these statements and gives it back. */
  leave(...statements: string[]): Promise<void>
  /** How many rows another node sees in the application's table. */
  orders(): Promise<number>
}

function leftOpen(name: string, begin: string, snapshot: readonly string[], open: () => Shared, readsSee = true) {
  const insert = "INSERT INTO orders VALUES ('left open')"

  it(`${name}: what was written stays written`, async () => {
    const { store, other, leave } = open()
    const [ended, updated, made] = [record(), record({ userId: '43' }), record({ userId: '44' })]
    for (const each of [ended, updated]) await other.create(each, call())
    for (const [use, answer] of [
      [() => store.delete(ended.key, call()), true],
      [() => store.create(made, call()), 'created'],
      [() => store.update(updated.key, 1, change(), call()), 'updated'],
    ] as const) {
      await leave(begin, insert)
      expect(await use()).toBe(answer)
    }
    expect([await isLive(other, ended.key), await isLive(other, made.key)]).toEqual([false, true])
    expect(await other.read(updated.key, call())).toMatchObject({ version: 2 })
  })

  // mysql2 does not tell the state of a connection with the rows of a SELECT.
  it.runIf(readsSee)(`${name}: a read sees what was committed before it`, async () => {
    const { store, other, leave } = open()
    const [ended, made] = [record({ userId: '45' }), record({ userId: '46' })]
    await other.create(ended, call())
    await leave(...snapshot)
    await other.delete(ended.key, call())
    await other.create(made, call())
    expect(await isLive(store, ended.key)).toBe(false)
    await leave(...snapshot)
    expect(await isLive(store, made.key)).toBe(true)
    await leave(...snapshot)
    await other.delete(made.key, call())
    expect(await store.listUser('46', 'session', call())).toEqual([])
  })

  it(`${name}: one that may only read is in the way of no write`, async () => {
    const { store, other, leave } = open()
    const [ended, made] = [record({ userId: '51' }), record({ userId: '51' })]
    await other.create(ended, call())
    for (const use of [
      () => store.update(ended.key, 1, change(), call()),
      () => store.create(made, call()),
      () => store.delete(ended.key, call()),
      () => store.sweep(10, call()),
      () => store.deleteUser('51', { minPasswordVersionUntil: 0 }, call()),
    ]) {
      await leave('START TRANSACTION READ ONLY')
      await use()
    }
    expect(await isLive(other, ended.key)).toBe(false)
    expect(await isLive(other, made.key)).toBe(false)
  })

  it(`${name}: a logout everywhere commits nothing of it`, async () => {
    const { store, other, leave, orders } = open()
    const one = record({ userId: '47' })
    await other.create(one, call())
    for (const statements of [[insert], snapshot.slice(1), []]) {
      await leave(begin, ...statements)
      await store.deleteUser('47', { minPasswordVersion: 1, minPasswordVersionUntil: NOW + 9e6 }, call())
      expect(await isLive(other, one.key)).toBe(false)
    }
    expect(await orders()).toBe(0)
  })
}

describeEngine('postgresql', 'a transaction left open on a connection of pg', () => {
  const own = postgresOf(sharedPostgres)
  beforeAll(() => own.admin.query('CREATE TABLE orders (id text)'))

  const shared = (): Shared => {
    const { admin, server } = own
    const pool = server.pool({ max: 1 })
    return {
      other: new PostgresStore(admin),
      store: new PostgresStore(pool),
      async leave(...statements) {
        const client = await pool.connect()
        for (const text of statements) await client.query(text).catch(() => {})
        client.release()
      },
      orders: async () => Number((await admin.query('SELECT count(*) AS n FROM orders')).rows[0].n),
    }
  }
  const snapshot = ['BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM orders']
  leftOpen('pg', 'BEGIN', snapshot, shared)

  it('pg: one that has failed is in the way of one statement, which is repeated', async () => {
    const { store, other, leave } = shared()
    const one = record({ userId: '48' })
    await other.create(one, call())
    for (const [use, answer] of [
      [() => isLive(store, one.key), true],
      [() => store.delete(one.key, call()), true],
      [() => store.deleteUser('48', { minPasswordVersionUntil: 0 }, call()), 0],
    ] as const) {
      await leave('BEGIN', 'SELECT 1/0')
      expect(await use()).toBe(answer)
    }
  })

  it('pg: a COMMIT that the application did not wait for is committed', async () => {
    const { admin, server } = own
    const pool = server.pool({ max: 1 })
    const store = new PostgresStore(pool)
    await admin.query('CREATE TABLE of_both (id text)')
    for (const use of [
      () => store.read(record().key, call()),
      () => store.deleteUser('49', { minPasswordVersionUntil: 0 }, call()),
    ]) {
      const client = await pool.connect()
      await client.query('BEGIN')
      await client.query("INSERT INTO of_both VALUES ('x')")
      const committed = client.query('COMMIT')
      client.release()
      await use()
      await committed
    }
    expect((await admin.query('SELECT id FROM of_both')).rows.length).toBe(2)
    expect(pool.totalCount).toBe(1)
  })
})

describeEngine('mariadb', 'a transaction left open on a connection of mysql2', () => {
  const own = mariadbOf(sharedMariadb)
  beforeAll(() => own.admin.query('CREATE TABLE orders (id VARCHAR(20))'))

  const snapshot = ['START TRANSACTION', 'SELECT count(*) FROM coatcheck_sessions']
  const shared = (): Shared => {
    const { admin, server } = own
    const pool = server.pool({ connectionLimit: 1 })
    return {
      other: new MysqlStore(admin),
      store: new MysqlStore(pool),
      async leave(...statements) {
        const connection: PoolConnection = await pool.getConnection()
        for (const text of statements) await connection.query(text)
        connection.release()
      },
      orders: async () => ((await admin.query('SELECT id FROM orders')) as any)[0].length,
    }
  }
  leftOpen('mysql2', 'START TRANSACTION', snapshot, shared, false)

  it.each(['orders WRITE', 'coatcheck_sessions READ'])(
    'mysql2: LOCK TABLES %s that was left is in the way of no call',
    async lock => {
      const { store, other, leave } = shared()
      const [ended, updated] = [record({ userId: '52' }), record({ userId: '52' })]
      for (const each of [ended, updated]) await other.create(each, call())
      for (const [use, answer] of [
        [() => isLive(store, ended.key), true],
        [() => store.delete(ended.key, call()), true],
        [() => store.update(updated.key, 1, change(), call()), 'updated'],
        [() => store.create(record({ userId: '52' }), call()), 'created'],
        [() => store.deleteUser('52', { minPasswordVersionUntil: 0 }, call()), 2],
      ] as const) {
        await leave(`LOCK TABLES ${lock}`)
        expect(await use()).toBe(answer)
      }
    },
  )

  it('mysql2: with autocommit off no session is read, because no logout would be seen', async () => {
    const pool = own.server.pool({ connectionLimit: 1 })
    pool.on('connection', connection => connection.query('SET autocommit = 0'))
    const one = record({ userId: '50' })
    await new MysqlStore(own.admin).create(one, call())
    for (const use of [
      () => new MysqlStore(pool).read(one.key, call()),
      () => new MysqlStore(pool).create(record(), call()),
    ])
      expect(String((await failure(use())).cause)).toContain('autocommit is off')
  })
})
