// One pool for the application's query builder and for the sessions: neither disturbs the other.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { SessionManager } from 'coatcheck'
import { PostgresStore } from 'coatcheck/stores/postgres'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { soon, within } from '../support/deadlines.ts'
import { describeEngine } from '../support/services/engines.ts'
import { type PostgresDatabase, sharedPostgres } from '../support/services/postgres.ts'
import { until } from '../support/services/process.ts'
import { NOW, record } from './records.ts'

const builder = createRequire(new URL('../support/drivers/package.json', import.meta.url))
const MOST = 3

/** A query builder over connections that the store has too, or beside the store's. */
interface Shared {
  readonly store: PostgresStore
  /** How many connections are open. */
  open(): number | null
  query(sql: string): Promise<unknown>
  /** Runs statements in one transaction of the builder's. */
  transaction(work: (query: (sql: string) => Promise<unknown>) => Promise<unknown>): Promise<unknown>
}

describeEngine('postgresql', 'a pool that a query builder shares with the store', () => {
  describeEngine('query builders', 'of connections', () => {
    let server: PostgresDatabase
    beforeAll(async () => {
      server = await sharedPostgres()
      const pool = server.pool({ max: 1 })
      await pool.query('CREATE TABLE orders (id text PRIMARY KEY)')
      await new PostgresStore(pool).migrate()
    })
    afterAll(async () => {
      await Promise.all(opened.map(close => close()))
      await server?.stop()
    })

    const ofPool = (pool: pg.Pool) => ({ store: new PostgresStore(pool), open: () => pool.totalCount })
    const opened: (() => Promise<unknown>)[] = []
    const BUILDERS: Record<string, () => Shared | Promise<Shared>> = {
      'Drizzle over pg'() {
        const { sql } = builder('drizzle-orm')
        const pool = server.pool({ max: MOST })
        const db = builder('drizzle-orm/node-postgres').drizzle({ client: pool })
        return {
          ...ofPool(pool),
          query: text => db.execute(sql.raw(text)),
          transaction: work => db.transaction((tx: any) => work(text => tx.execute(sql.raw(text)))),
        }
      },
      'Drizzle over Postgres.js'() {
        const { sql } = builder('drizzle-orm')
        const client = server.postgresJs({ max: MOST })
        const db = builder('drizzle-orm/postgres-js').drizzle({ client })
        return {
          store: new PostgresStore(client),
          open: () => null,
          query: text => db.execute(sql.raw(text)),
          transaction: work => db.transaction((tx: any) => work(text => tx.execute(sql.raw(text)))),
        }
      },
      'Kysely over pg'() {
        const { CompiledQuery, Kysely, PostgresDialect } = builder('kysely')
        const pool = server.pool({ max: MOST })
        const db = new Kysely({ dialect: new PostgresDialect({ pool }) })
        return {
          ...ofPool(pool),
          query: text => db.executeQuery(CompiledQuery.raw(text)),
          transaction: work =>
            db.transaction().execute((tx: any) => work(text => tx.executeQuery(CompiledQuery.raw(text)))),
        }
      },
      'Knex over pg, its own pool'() {
        const db = builder('knex')({ client: 'pg', connection: server.url(), pool: { min: 0, max: MOST } })
        opened.push(() => db.destroy())
        const pool = {
          async connect() {
            const client = await db.client.acquireConnection()
            client.release = (isBroken: boolean) => {
              client.__knex__disposed = isBroken && 'given up by a session'
              db.client.releaseConnection(client)
            }
            return client
          },
        }
        return {
          store: new PostgresStore(pool),
          open: () => db.client.pool.numUsed() + db.client.pool.numFree(),
          query: text => db.raw(text),
          transaction: work => db.transaction((tx: any) => work(text => tx.raw(text))),
        }
      },
      'Sequelize over pg'() {
        const { Sequelize } = builder('sequelize')
        const db = new Sequelize(server.url(), { logging: false, dialectModule: pg, pool: { max: MOST } })
        opened.push(() => db.close())
        const connections = db.connectionManager
        const pool = {
          async connect() {
            const client = await connections.getConnection({ type: 'write' })
            client.release = (isBroken: boolean) =>
              connections[isBroken ? 'destroyConnection' : 'releaseConnection'](client)
            return client
          },
        }
        return {
          store: new PostgresStore(pool),
          open: () => connections.pool.size,
          query: async text => ({ rows: (await db.query(text))[0] }),
          transaction: work => db.transaction((transaction: any) => work(text => db.query(text, { transaction }))),
        }
      },
      async 'TypeORM over pg'() {
        const { DataSource } = builder('typeorm')
        const db = new DataSource({ type: 'postgres', url: server.url(), driver: pg, poolSize: MOST })
        await db.initialize()
        opened.push(() => db.destroy())
        return {
          ...ofPool(db.driver.master),
          query: async text => ({ rows: await db.query(text) }),
          transaction: work => db.transaction((tx: any) => work(text => tx.query(text))),
        }
      },
      async 'MikroORM over pg'() {
        const { MikroORM } = await import(pathToFileURL(builder.resolve('@mikro-orm/postgresql')).href)
        const orm = new MikroORM({
          clientUrl: server.url(),
          entities: [],
          discovery: { warnWhenNoEntities: false },
          pool: { max: MOST },
        })
        opened.push(() => orm.close())
        const on = (em: any) => async (text: string) => ({ rows: await em.execute(text) })
        return {
          ...ofPool(await orm.em.getConnection().getNativeClient()),
          query: on(orm.em.fork()),
          transaction: work => orm.em.fork().transactional((em: any) => work(on(em))),
        }
      },
      async 'Prisma adapter over pg'() {
        // Of the same package as the adapter's own: it takes any other for settings.
        const pool = new (builder('pg').Pool)({ connectionString: server.url(), max: MOST })
        opened.push(() => pool.end())
        const db = await new (builder('@prisma/adapter-pg').PrismaPg)(pool).connect()
        const on = (scope: any) => async (sql: string) => {
          const query = { sql, args: [], argTypes: [] }
          if (!sql.startsWith('SELECT')) return scope.executeRaw(query)
          const { columnNames, rows } = await scope.queryRaw(query)
          return {
            rows: rows.map((cells: unknown[]) => Object.fromEntries(cells.map((cell, at) => [columnNames[at], cell]))),
          }
        }
        return {
          ...ofPool(pool),
          query: on(db),
          async transaction(work) {
            const tx = await db.startTransaction()
            try {
              await work(on(tx))
              await tx.executeRaw({ sql: 'COMMIT', args: [], argTypes: [] })
              await tx.commit()
            } catch (error) {
              await tx.executeRaw({ sql: 'ROLLBACK', args: [], argTypes: [] })
              await tx.rollback()
              throw error
            }
          },
        }
      },
    }
    const count = async (shared: Shared, id: string) => {
      const answer = (await shared.query(`SELECT id FROM orders WHERE id LIKE '${id}%'`)) as { rows?: unknown[] }
      return (answer.rows ?? (answer as unknown as unknown[])).length
    }

    it.each(Object.keys(BUILDERS))('%s: transactions and sessions at once, on no more connections', async name => {
      const shared = await BUILDERS[name]!()
      const sessions = new SessionManager({ store: shared.store, sweepInterval: false, storeTimeout: '20s' })
      const each = Array.from({ length: 20 }, (_, i) => i)
      const begun = await Promise.all(
        each.map(async i => {
          const order = shared.transaction(query => query(`INSERT INTO orders VALUES ('${name} ${i}')`))
          const session = await sessions.create({ user: { id: i, name: 'ada' } })
          await order
          await sessions.update(session, { order: i })
          return session
        }),
      )
      const found = await Promise.all(begun.map(session => sessions.get(session.secret)))
      expect(found.map(session => session?.data.order)).toEqual(each)
      expect(await count(shared, name)).toBe(20)
      if (shared.open() !== null) expect(shared.open()).toBeLessThanOrEqual(MOST)
    })

    it.each(Object.keys(BUILDERS))('%s: a transaction that is undone takes no session with it', async name => {
      const shared = await BUILDERS[name]!()
      const sessions = new SessionManager({ store: shared.store, sweepInterval: false, storeTimeout: '20s' })
      const undone = new Error('undone')
      let secret = ''
      const order = shared.transaction(async query => {
        await query(`INSERT INTO orders VALUES ('undone ${name}')`)
        secret = (await sessions.create({ user: { id: 42, name: 'ada' } })).secret
        throw undone
      })
      await expect(order).rejects.toBe(undone)
      expect((await sessions.get(secret as never))?.user?.id).toBe(42n)
      expect(await count(shared, 'undone')).toBe(0)
    })

    it.each(Object.keys(BUILDERS))('%s: what the store sets for a statement is over after it', async name => {
      const shared = await BUILDERS[name]!()
      const sessions = new SessionManager({ store: shared.store, sweepInterval: false, storeTimeout: '20s' })
      const settings = async () => {
        const asked = Array.from({ length: MOST }, () =>
          shared.query(`SELECT string_agg(name || setting, ',' ORDER BY name) AS all FROM pg_settings`),
        )
        const answers = (await Promise.all(asked)) as { rows?: { all: string }[] }[]
        return answers.map(answer => (answer.rows ?? (answer as unknown as { all: string }[]))[0]!.all)
      }
      const before = await settings()
      const session = await sessions.create({ user: { id: 42, name: 'ada' } })
      await Promise.all(Array.from({ length: 10 }, (_, i) => sessions.update(session, { [i]: i })))
      await sessions.invalidateUser(42)
      expect(await settings()).toEqual(before)
    })

    it.each(Object.keys(BUILDERS))('%s: a connection whose statement was given up is not given back', async name => {
      const shared = await BUILDERS[name]!()
      const { store } = shared
      const one = record({ userId: '42' })
      await store.create(one, { now: NOW })
      const lock = await server.pool({ max: 1 }).connect()
      await lock.query('BEGIN; LOCK TABLE coatcheck_sessions')
      const waiting = () => lock.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
      const read = store.read(one.key, { now: NOW, deadline: within(200) })
      const written = store.delete(one.key, { now: NOW, deadline: within(200) })
      for (const { status } of await Promise.allSettled([read, written])) expect(status).toBe('rejected')
      await until('nothing of ours at the server', async () => expect((await waiting()).rowCount).toBe(0))
      await lock.query('ROLLBACK')
      lock.release()
      expect(await store.read(one.key, { now: NOW, deadline: soon() })).toEqual(one)
      const asked = Array.from({ length: 2 * MOST }, () => count(shared, 'given up'))
      expect(await Promise.all(asked)).toEqual(asked.map(() => 0))
    })
  })
})
