// Settings of a server, and of the application's pool, that change what a statement does or how its rows come.
import type { EventEmitter } from 'node:events'
import { PostgresStore } from 'coatcheck/stores/postgres'
import type pg from 'pg'
import { expect, it } from 'vitest'
import { within } from '../../support/deadlines.ts'
import { failure } from '../../support/failure.ts'
import { describeEngine } from '../../support/services/engines.ts'
import { startPostgres } from '../../support/services/postgres.ts'
import { postgresOf } from '../databases.ts'
import { isExact } from '../exact.ts'
import { givenUp } from '../locks.ts'
import { call, NOW, record } from '../records.ts'

describeEngine('postgresql', 'settings of PostgreSQL and of pg', () => {
  const own = postgresOf(startPostgres)
  let tables = 0

  it.each<[string, pg.PoolConfig]>([
    ['lets pg parse numbers', { types: { getTypeParser: () => Number.parseFloat as never } }],
    ['has the time zone of New York', { options: '-c timezone=America/New_York' }],
    ['has the time zone of Tokyo', { options: '-c timezone=Asia/Tokyo' }],
  ])('a pool that %s changes nothing', async (_, config) => {
    const store = new PostgresStore(own.server.pool(config), { table: `sessions_${++tables}` })
    await store.migrate()
    await isExact(store)
  })

  it('a statement that its connection no longer knows is not prepared any more, as behind a pooler', async () => {
    const pool = own.server.pool({ max: 1 })
    const store = new PostgresStore(pool)
    await store.read(record().key, call())
    for (const use of [() => store.read(record().key, call()), () => store.create(record({ userId: '80' }), call())]) {
      await pool.query('DEALLOCATE ALL')
      await use()
    }
    expect((await pool.query('SELECT 1 FROM pg_prepared_statements')).rowCount).toBe(0)
  })

  it('a connection that was made while the server took no writes is closed, and the next one writes', async () => {
    const pool = own.server.pool({ max: 1 })
    const store = new PostgresStore(pool)
    await pool.query('SET default_transaction_read_only = on')
    const one = record()
    expect(await store.create(one, call())).toBe('created')
  })

  it('a primary that is read-only for maintenance goes on being read after a write that it refused', async () => {
    const pool = own.server.pool({ max: 2 })
    const store = new PostgresStore(pool)
    const one = record({ userId: '45' })
    await store.create(one, call())
    const [a, b] = [await pool.connect(), await pool.connect()]
    for (const client of [a, b]) {
      await client.query('SET default_transaction_read_only = on')
      client.release()
    }
    // A connection that is made later takes no write.
    const before = await own.admin.connect()
    await before.query('ALTER ROLE postgres SET default_transaction_read_only = on')
    try {
      const short = { now: NOW, deadline: within(2000) }
      const readOnly = { message: expect.stringContaining('read-only') }
      await expect(store.create(record(), short)).rejects.toMatchObject({ outcome: 'not-applied', cause: readOnly })
      expect(await store.read(one.key, call())).toEqual(one)
    } finally {
      await before.query('ALTER ROLE postgres RESET default_transaction_read_only')
      before.release()
    }
  })

  it('a database or a client that does not speak UTF8 is refused by migrate and by a look, with the line to run', async () => {
    await own.admin.query("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    const latin = own.server.pool({ connectionString: own.server.url().replace(/[^/]*$/, 'latin') })
    // By the application: both drivers begin with UTF8.
    const set = own.server.pool({ max: 1 })
    await set.query("SET client_encoding = 'LATIN1'")
    for (const [pool, mend] of [
      [latin, /LATIN1.*: CREATE DATABASE latin_utf8 ENCODING 'UTF8'/],
      [set, /client_encoding is LATIN1.*: SET client_encoding = 'UTF8'/],
    ] as const) {
      await expect(new PostgresStore(pool).migrate()).rejects.toThrow(mend)
      await expect(new PostgresStore(pool).isMigrated()).rejects.toThrow(mend)
    }
  })

  it('a logout by an old ID is told as one where the server refuses to forget what led to the session', async () => {
    const store = new PostgresStore(own.admin)
    const [one, next] = [record(), record()]
    await store.create(one, call())
    await store.replace(one.key, 1, next, { forward: { salt: '', until: NOW + 9e6 } }, call())
    await own.admin.query(`
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
      CREATE TRIGGER refuse BEFORE DELETE ON coatcheck_sessions FOR EACH ROW WHEN (OLD.moved_to IS NOT NULL)
        EXECUTE FUNCTION refuse()`)
    try {
      expect(await store.delete(one.key, call())).toBe(true)
      expect(await store.read(next.key, call())).toBe(null)
      await expect(store.delete(one.key, call())).rejects.toMatchObject({ outcome: 'not-applied' })
    } finally {
      await own.admin.query('DROP TRIGGER refuse ON coatcheck_sessions')
    }
    expect(await store.delete(one.key, call())).toBe(false)
  })

  it('a statement that was prepared before an ALTER is prepared anew', async () => {
    const store = new PostgresStore(own.server.pool({ max: 2 }))
    const one = record({ userId: '43' })
    await store.create(one, call())
    const list = () => store.listUser('43', 'session', call())
    for (const collation of ['C', 'default']) {
      for (let time = 0; time < 3; time++) expect(await Promise.all([list(), list()])).toEqual([[one], [one]])
      await own.admin.query(`ALTER TABLE coatcheck_sessions ALTER COLUMN user_name TYPE text COLLATE "${collation}"`)
      expect(await Promise.all([list(), list()])).toEqual([[one], [one]])
    }
  })

  it('binary: true of a pool is refused by its name, and no list is empty for it', async () => {
    const store = new PostgresStore(own.server.pool({ binary: true } as pg.PoolConfig))
    const one = record({ userId: '44' })
    await new PostgresStore(own.admin).create(one, call())
    for (const use of [
      () => store.create(record(), call()),
      () => store.read(one.key, call()),
      () => store.listUser('44', 'session', call()),
      () => store.scan(null, 10, call()),
      () => store.sweep(10, call()),
    ])
      expect(String((await failure(use())).cause)).toContain('binary')
  })

  it('a pool whose application wraps each client anew, and knows promises alone, gains no listener with each use', async () => {
    const pool = own.server.pool({ max: 1 })
    const connections = new Set<EventEmitter>()
    const wrapped = {
      async connect() {
        const client = await pool.connect()
        connections.add(client as unknown as EventEmitter)
        const memberOf = (key: string | symbol) => {
          const value = Reflect.get(client, key)
          return typeof value === 'function' ? value.bind(client) : value
        }
        return new Proxy(client, { get: (_, key) => memberOf(key) })
      },
    }
    const store = new PostgresStore(wrapped)
    await store.read(record().key, call())
    const before = [...connections].map(each => each.listenerCount('error'))
    for (let time = 0; time < 5; time++) await store.read(record().key, call())
    expect([...connections].map(each => each.listenerCount('error'))).toEqual(before)
  })

  it('with query_timeout of a pool nothing that was given up waits at the server', async () => {
    const pool = own.server.pool({ max: 2, query_timeout: 50 })
    const store = new PostgresStore(pool)
    await store.read(record().key, call())
    const release = await own.locks.hold()
    await givenUp(when => store.read(record().key, when))
    await own.locks.nothingWaits().finally(release)
    expect(await store.read(record().key, call())).toBe(null)
  })
})
