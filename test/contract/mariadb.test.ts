import { modelTest, testStore } from 'coatcheck/custom-store/testing'
import { MysqlStore } from 'coatcheck/stores/mysql'
import fc from 'fast-check'
import type mysql from 'mysql2/promise'
import { afterAll, beforeAll, it } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { type MariadbDatabase, sharedMariadb } from '../support/services/mariadb.ts'

describeEngine('mariadb', 'the MySQL store on MariaDB', () => {
  let server: MariadbDatabase
  let pool: mysql.Pool
  let second: mysql.Pool
  beforeAll(async () => {
    server = await sharedMariadb()
    pool = server.pool({ connectionLimit: 10 })
    second = server.pool({ connectionLimit: 10 })
  })
  afterAll(() => server?.stop())

  type Given = ConstructorParameters<typeof MysqlStore>[0]
  const open = async (of: (pool: mysql.Pool) => Given = pool => pool) => {
    const stores = [new MysqlStore(of(pool)), new MysqlStore(of(second))] as const
    await stores[0].migrate()
    return stores
  }
  const corrupt = async (_: unknown, key: string) => {
    await pool.query('UPDATE coatcheck_sessions SET version = -1 WHERE id = ?', [key])
  }
  const rename = (from: string, to: string) => pool.query(`RENAME TABLE ${from} TO ${to}`)
  const outage = async () => {
    await rename('coatcheck_sessions', 'elsewhere')
    return () => rename('elsewhere', 'coatcheck_sessions')
  }
  it.each([
    ['a pool of mysql2/promise', (pool: mysql.Pool) => pool],
    ['a pool of mysql2', (pool: mysql.Pool) => pool.pool],
    ['what an application made of a pool', (pool: mysql.Pool) => ({ getConnection: () => pool.getConnection() })],
  ] as const)('behaves like the reference model with %s', (_, of) =>
    modelTest(fc, () => open(of), undefined, { runs: 10 }),
  )
  testStore(it, () => open(), undefined, { corrupt, outage, runs: 15 })
})
