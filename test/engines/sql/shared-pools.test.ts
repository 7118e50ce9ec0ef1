// One pool for the application's query builder and for the sessions: neither disturbs the other.
import { createRequire } from 'node:module'
import { SessionManager } from 'coatcheck'
import { PostgresStore } from 'coatcheck/stores/postgres'
import type pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeEngine } from '../../support/services/engines.ts'
import { type PostgresDatabase, sharedPostgres } from '../../support/services/postgres.ts'

const builder = createRequire(new URL('../../support/drivers/package.json', import.meta.url))
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
    afterAll(() => server?.stop())

    const ofPool = (pool: pg.Pool) => ({ store: new PostgresStore(pool), open: () => pool.totalCount })
    const BUILDERS: Record<string, () => Shared> = {
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
      'Knex with a pool of its own'() {
        const pool = server.pool({ max: MOST })
        const db = builder('knex')({ client: 'pg', connection: server.url(), pool: { min: 0, max: MOST } })
        return {
          ...ofPool(pool),
          query: text => db.raw(text),
          transaction: work => db.transaction((tx: any) => work(text => tx.raw(text))),
        }
      },
    }
    const count = async (shared: Shared, id: string) => {
      const answer = (await shared.query(`SELECT id FROM orders WHERE id LIKE '${id}%'`)) as { rows?: unknown[] }
      return (answer.rows ?? (answer as unknown as unknown[])).length
    }

    it.each(Object.keys(BUILDERS))('%s: transactions and sessions at once, on no more connections', async name => {
      const shared = BUILDERS[name]!()
      const sessions = new SessionManager({ store: shared.store, sweepInterval: false })
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
      const shared = BUILDERS[name]!()
      const sessions = new SessionManager({ store: shared.store, sweepInterval: false })
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
      const shared = BUILDERS[name]!()
      const sessions = new SessionManager({ store: shared.store, sweepInterval: false })
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
  })
})
