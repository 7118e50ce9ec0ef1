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
import { describeEngine } from '../support/services/engines.ts'
import { sharedMariadb } from '../support/services/mariadb.ts'
import { sharedPostgres } from '../support/services/postgres.ts'
import { mariadbOf, postgresOf } from './databases.ts'
import { givenUp } from './locks.ts'
import { call, record } from './records.ts'

const builder = createRequire(new URL('../support/drivers/package.json', import.meta.url))
const MOST = 3

/** A query builder over connections that the store has too, or beside the store's. */
interface Shared {
  readonly store: PostgresStore | MysqlStore
  /** How many connections are open; `null` if the client does not tell. */
  open(): Promise<number> | number | null
  readonly query: Query
  /** Runs statements in one transaction of the builder's. */
  transaction(work: (query: Query) => Promise<unknown>): Promise<unknown>
}

type Query = (sql: string) => Promise<unknown>
/** A builder, and what runs a statement on it or in a transaction of it. */
const built = (
  parts: Pick<Shared, 'store' | 'open'>,
  db: any,
  queryOf: (on: any) => Query,
  begin = (work: (tx: any) => unknown) => db.transaction(work),
): Shared => ({ ...parts, query: queryOf(db), transaction: work => begin(tx => work(queryOf(tx))) })
const closings: (() => Promise<unknown>)[] = []
afterAll(() => Promise.all(closings.map(close => close())))

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

/** TypeORM and MikroORM give the rows alone. */
const rowsOf =
  (run: (sql: string) => Promise<unknown>): Query =>
  async sql => ({ rows: await run(sql) })

async function typeOrm(type: 'postgres' | 'mysql', url: string, driver: object) {
  const db = new (builder('typeorm').DataSource)({ type, url, driver, poolSize: MOST })
  await db.initialize()
  closings.push(() => db.destroy())
  return db
}

describeEngine('postgresql', 'a pool that a query builder shares with the store', () => {
  describeEngine('query builders', 'of connections', () => {
    const own = postgresOf(sharedPostgres)
    beforeAll(() => own.admin.query('CREATE TABLE orders (id text PRIMARY KEY)'))

    const ofPool = (pool: pg.Pool) => ({ store: new PostgresStore(pool), open: () => pool.totalCount })
    const drizzle = (adapter: string, client: object, parts: Pick<Shared, 'store' | 'open'>) => {
      const { sql } = builder('drizzle-orm')
      return built(
        parts,
        builder(`drizzle-orm/${adapter}`).drizzle({ client }),
        on => text => on.execute(sql.raw(text)),
      )
    }
    const BUILDERS: Record<string, () => Shared | Promise<Shared>> = {
      'Drizzle over pg'() {
        const pool = own.server.pool({ max: MOST })
        return drizzle('node-postgres', pool, ofPool(pool))
      },
      'Drizzle over Postgres.js'() {
        const client = own.server.postgresJs({ max: MOST })
        return drizzle('postgres-js', client, { store: new PostgresStore(client), open: () => null })
      },
      'Kysely over pg'() {
        const { CompiledQuery, Kysely, PostgresDialect } = builder('kysely')
        const pool = own.server.pool({ max: MOST })
        const db = new Kysely({ dialect: new PostgresDialect({ pool }) })
        const queryOf = (on: any) => (text: string) => on.executeQuery(CompiledQuery.raw(text))
        return built(ofPool(pool), db, queryOf, work => db.transaction().execute(work))
      },
      'Knex over pg, its own pool'() {
        const db = builder('knex')({ client: 'pg', connection: own.server.url(), pool: { min: 0, max: MOST } })
        closings.push(() => db.destroy())
        const open = () => db.client.pool.numUsed() + db.client.pool.numFree()
        return built({ store: new PostgresStore(fromKnex(db)), open }, db, on => text => on.raw(text))
      },
      'Sequelize over pg'() {
        const { Sequelize } = builder('sequelize')
        const db = new Sequelize(own.server.url(), { logging: false, dialectModule: pg, pool: { max: MOST } })
        closings.push(() => db.close())
        const queryOf = (on: any) =>
          rowsOf(async text => (await db.query(text, on === db ? {} : { transaction: on }))[0])
        const open = () => db.connectionManager.pool.size
        return built({ store: new PostgresStore(fromSequelize(db)), open }, db, queryOf)
      },
      async 'TypeORM over pg'() {
        const db = await typeOrm('postgres', own.server.url(), pg)
        return built(ofPool(db.driver.master), db, on => rowsOf(text => on.query(text)))
      },
      async 'MikroORM over pg'() {
        const { MikroORM } = await import(pathToFileURL(builder.resolve('@mikro-orm/postgresql')).href)
        const discovery = { warnWhenNoEntities: false }
        const orm = new MikroORM({ clientUrl: own.server.url(), entities: [], discovery, pool: { max: MOST } })
        closings.push(() => orm.close())
        const pool = await orm.em.getConnection().getNativeClient()
        const begin = (work: (tx: any) => unknown) => orm.em.fork().transactional(work)
        return built(ofPool(pool), orm.em.fork(), on => rowsOf(text => on.execute(text)), begin)
      },
      async 'Prisma adapter over pg'() {
        // Of the same package as the adapter's own: it takes any other for settings.
        const pool = new (builder('pg').Pool)({ connectionString: own.server.url(), max: MOST })
        closings.push(() => pool.end())
        const db = await new (builder('@prisma/adapter-pg').PrismaPg)(pool).connect()
        const queryOf = (on: any) => (sql: string) => {
          const query = { sql, args: [], argTypes: [] }
          return sql.startsWith('SELECT') ? on.queryRaw(query) : on.executeRaw(query)
        }
        return built(ofPool(pool), db, queryOf, async work => {
          const tx = await db.startTransaction()
          const end = async (sql: string, how: 'commit' | 'rollback') => {
            await queryOf(tx)(sql)
            await tx[how]()
          }
          try {
            await work(tx)
          } catch (error) {
            await end('ROLLBACK', 'rollback')
            throw error
          }
          await end('COMMIT', 'commit')
        })
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
        await store.create(one, call())
        const release = await own.locks.hold()
        await Promise.all((['read', 'delete'] as const).map(verb => givenUp(when => store[verb](one.key, when))))
        await own.locks.nothingWaits().finally(release)
        expect(await store.read(one.key, call())).toEqual(one)
        const asked = Array.from({ length: 2 * MOST }, () => count(shared, 'given up'))
        expect(await Promise.all(asked)).toEqual(asked.map(() => 0))
      },
    )
  })
})

describeEngine('mariadb', 'a pool of mysql2 that TypeORM shares with the store', () => {
  describeEngine('query builders', 'of connections', () => {
    const own = mariadbOf(sharedMariadb)
    it('neither disturbs the other', async () => {
      const db = await typeOrm('mysql', own.server.url(), mysql2)
      await db.query('CREATE TABLE orders (id varchar(20) PRIMARY KEY)')
      // One of them is that of `admin`.
      const open = async () =>
        (await db.query('SELECT id FROM information_schema.processlist WHERE db = database()')).length - 1
      const shared = built({ store: new MysqlStore(db.driver.pool), open }, db, on => text => on.query(text))
      await areBothDone(shared, 'kept')
      await undoesNoSession(shared, 'one')
    })
  })
})
