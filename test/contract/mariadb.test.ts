import { modelTest, testStore } from 'coatcheck/custom-store/testing'
import { MysqlStore } from 'coatcheck/stores/mysql'
import fc from 'fast-check'
import type mysql from 'mysql2/promise'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { type MariadbServer, startMariadb } from '../support/services/mariadb.ts'

describeEngine('mariadb', 'the MySQL store on MariaDB', () => {
  let server: MariadbServer
  let pool: mysql.Pool
  beforeAll(async () => {
    server = await startMariadb()
    pool = server.pool({ connectionLimit: 10 })
  })
  afterAll(() => server?.stop())

  describe.each([
    ['a pool of mysql2/promise', (pool: mysql.Pool) => pool],
    ['a pool of mysql2', (pool: mysql.Pool) => pool.pool],
    ['what an application made of a pool', (pool: mysql.Pool) => ({ getConnection: () => pool.getConnection() })],
  ] as const)('with %s', (given, of) => {
    const table = `sessions_of_${given.length}`
    const open = async () => {
      const store = new MysqlStore(of(pool), { table })
      await store.migrate()
      return store
    }
    const corrupt = async (_: unknown, key: string) => {
      await pool.query(`UPDATE ${table} SET version = -1 WHERE id = ?`, [key])
    }
    const rename = (from: string, to: string) => pool.query(`RENAME TABLE ${from} TO ${to}`)
    const outage = async () => {
      await rename(table, 'elsewhere')
      return () => rename('elsewhere', table)
    }
    testStore(it, open, undefined, { corrupt, outage, runs: 25 })
    it('behaves like the reference model', () => modelTest(fc, open, undefined, { runs: 50 }))
  })
})
