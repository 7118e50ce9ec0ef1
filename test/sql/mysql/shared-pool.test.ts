// One pool of mysql2 for TypeORM and for the sessions: neither disturbs the other.
import { createRequire } from 'node:module'
import { SessionManager } from 'coatcheck'
import { MysqlStore } from 'coatcheck/stores/mysql'
import mysql2 from 'mysql2'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeEngine } from '../../support/services/engines.ts'
import { type MariadbDatabase, sharedMariadb } from '../../support/services/mariadb.ts'

const drivers = createRequire(new URL('../../support/drivers/package.json', import.meta.url))
const MOST = 3

describeEngine('mariadb', 'a pool of mysql2 that TypeORM shares with the store', () => {
  describeEngine('query builders', 'of connections', () => {
    let server: MariadbDatabase
    let db: any
    let sessions: SessionManager
    beforeAll(async () => {
      server = await sharedMariadb()
      db = new (drivers('typeorm').DataSource)({ type: 'mysql', url: server.url(), driver: mysql2, poolSize: MOST })
      await db.initialize()
      const store = new MysqlStore(db.driver.pool)
      await store.migrate()
      sessions = new SessionManager({ store, sweepInterval: false, storeTimeout: '20s' })
      await db.query('CREATE TABLE orders (id varchar(20) PRIMARY KEY)')
    })
    afterAll(async () => {
      await db?.destroy()
      await server?.stop()
    })

    it('has transactions and sessions at once, on no more connections', async () => {
      const each = Array.from({ length: 20 }, (_, i) => i)
      const begun = await Promise.all(
        each.map(async i => {
          const order = db.transaction((tx: any) => tx.query('INSERT INTO orders VALUES (?)', [`kept ${i}`]))
          const session = await sessions.create({ user: { id: i, name: 'ada' } })
          await order
          await sessions.update(session, { order: i })
          return session
        }),
      )
      const found = await Promise.all(begun.map(session => sessions.get(session.secret)))
      expect(found.map(session => session?.data.order)).toEqual(each)
      expect(await db.query("SELECT id FROM orders WHERE id LIKE 'kept%'")).toHaveLength(20)
      const [{ open }] = await db.query(
        'SELECT count(*) AS open FROM information_schema.processlist WHERE db = database()',
      )
      expect(Number(open)).toBeLessThanOrEqual(MOST)
    })

    it('undoes no session with a transaction', async () => {
      const undone = new Error('undone')
      let secret = ''
      const order = db.transaction(async (tx: any) => {
        await tx.query("INSERT INTO orders VALUES ('undone')")
        secret = (await sessions.create({ user: { id: 42, name: 'ada' } })).secret
        throw undone
      })
      await expect(order).rejects.toBe(undone)
      expect((await sessions.get(secret as never))?.user?.id).toBe(42n)
      expect(await db.query("SELECT id FROM orders WHERE id = 'undone'")).toEqual([])
    })
  })
})
