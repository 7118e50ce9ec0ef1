// One pool for the application's query builder and for the sessions: neither disturbs the other.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { SessionManager } from 'coatcheck'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import mysql2 from 'mysql2'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { fromKnex, fromSequelize } from '../../examples/lent-connections.mjs'
import { soon, within } from '../support/deadlines.ts'
import { describeEngine } from '../support/services/engines.ts'
import { sharedMariadb } from '../support/services/mariadb.ts'
import { type PostgresDatabase, sharedPostgres } from '../support/services/postgres.ts'
import { locksOfPostgres } from './locks.ts'
import { NOW, record } from './records.ts'

const builder = createRequire(new URL('../support/drivers/package.json', import.meta.url))
const MOST = 3

/** A query builder over connections that the store has too, or beside the store's. */
interface Shared {
  readonly store: PostgresStore | MysqlStore
  /** How many connections are open; `null` if the client does not tell. */
  open(): Promise<number> | number | null
  query(sql: string): Promise<unknown>
  /** Runs statements in one transaction of the builder's. */
  transaction(work: (query: (sql: string) => Promise<unknown>) => Promise<unknown>): Promise<unknown>
}

const managerOf = ({ store }: Shared) => new SessionManager({ store, sweepInterval: false, storeTimeout: '20s' })

async function count({ query }: Shared, id: string): Promise<number> {
  const answer = (await query(`SELECT id FROM orders WHERE id LIKE '${id}%'`)) as { rows?: unknown[] }
  return (answer.rows ?? (answer as unknown as unknown[])).length
}

/** Transactions and sessions at once, on no more connections. */
async function areBothDone(shared: Shared, name: string): Promise<void> {
  const sessions = managerOf(shared)
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
  const open = await shared.open()
  if (open !== null) expect(open).toBeLessThanOrEqual(MOST)
}

async function undoesNoSession(shared: Shared, name: string): Promise<void> {
  const sessions = managerOf(shared)
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
        return {
          store: new PostgresStore(fromKnex(db)),
          open: () => db.client.pool.numUsed() + db.client.pool.numFree(),
          query: text => db.raw(text),
          transaction: work => db.transaction((tx: any) => work(text => tx.raw(text))),
        }
      },
      'Sequelize over pg'() {
        const { Sequelize } = builder('sequelize')
        const db = new Sequelize(server.url(), { logging: false, dialectModule: pg, pool: { max: MOST } })
        opened.push(() => db.close())
        return {
          store: new PostgresStore(fromSequelize(db)),
          open: () => db.connectionManager.pool.size,
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
    it.each(Object.keys(BUILDERS))('%s: neither disturbs the other', async name => {
      const shared = await BUILDERS[name]!()
      await areBothDone(shared, name)
      await undoesNoSession(shared, name)
    })

    it('what the store sets for a statement is over after it', async () => {
      const shared = await BUILDERS['Drizzle over pg']!()
      const sessions = managerOf(shared)
      const settings = async () => {
        const asked = Array.from({ length: MOST }, () =>
          shared.query(`SELECT string_agg(name || setting, ',' ORDER BY name) AS all FROM pg_settings`),
        )
        const answers = (await Promise.all(asked)) as { rows: { all: string }[] }[]
        return answers.map(({ rows }) => rows[0]!.all)
      }
      const before = await settings()
      const session = await sessions.create({ user: { id: 42, name: 'ada' } })
      await Promise.all(Array.from({ length: 10 }, (_, i) => sessions.update(session, { [i]: i })))
      await sessions.invalidateUser(42)
      expect(await settings()).toEqual(before)
    })

    // One of pg's pool, and those that have their own.
    it.each(['Drizzle over pg', 'Drizzle over Postgres.js', 'Knex over pg, its own pool', 'Sequelize over pg'])(
      '%s: a connection whose statement was given up is not given back',
      async name => {
        const shared = await BUILDERS[name]!()
        const { store } = shared
        const one = record({ userId: '42' })
        await store.create(one, { now: NOW })
        const locks = locksOfPostgres(server.pool({ max: 2 }))
        const release = await locks.hold()
        const calls = [
          store.read(one.key, { now: NOW, deadline: within(200) }),
          store.delete(one.key, { now: NOW, deadline: within(200) }),
        ]
        for (const { status } of await Promise.allSettled(calls)) expect(status).toBe('rejected')
        await locks.nothingWaits().finally(release)
        expect(await store.read(one.key, { now: NOW, deadline: soon() })).toEqual(one)
        const asked = Array.from({ length: 2 * MOST }, () => count(shared, 'given up'))
        expect(await Promise.all(asked)).toEqual(asked.map(() => 0))
      },
    )
  })
})

describeEngine('mariadb', 'a pool of mysql2 that TypeORM shares with the store', () => {
  describeEngine('query builders', 'of connections', () => {
    it('neither disturbs the other', async () => {
      const server = await sharedMariadb()
      const db = new (builder('typeorm').DataSource)({
        type: 'mysql',
        url: server.url(),
        driver: mysql2,
        poolSize: MOST,
      })
      await db.initialize()
      const store = new MysqlStore(db.driver.pool)
      await store.migrate()
      await db.query('CREATE TABLE orders (id varchar(20) PRIMARY KEY)')
      const shared: Shared = {
        store,
        async open() {
          const connections = 'information_schema.processlist WHERE db = database()'
          const [{ open }] = await db.query(`SELECT count(*) AS open FROM ${connections}`)
          return Number(open)
        },
        query: text => db.query(text),
        transaction: work => db.transaction((tx: any) => work(text => tx.query(text))),
      }
      await areBothDone(shared, 'kept')
      await undoesNoSession(shared, 'one')
      await db.destroy()
      await server.stop()
    })
  })
})
