import { modelTest, testStore } from 'coatcheck/custom-store/testing'
import { MysqlStore } from 'coatcheck/stores/mysql'
import fc from 'fast-check'
import type mysql from 'mysql2/promise'
import { afterAll, beforeAll, it } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { type MariadbDatabase, sharedMariadb } from '../support/services/mariadb.ts'
import { damages } from '../support/sql/backend.ts'

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
  it.each([
    ['a pool of mysql2/promise', (pool: mysql.Pool) => pool],
    ['a pool of mysql2', (pool: mysql.Pool) => pool.pool],
    ['what an application made of a pool', (pool: mysql.Pool) => ({ getConnection: () => pool.getConnection() })],
  ] as const)('behaves like the reference model with %s', (_, of) =>
    modelTest(fc, () => open(of), undefined, { runs: 10 }),
  )
  testStore(it, () => open(), undefined, { ...damages(sql => pool.query(sql)), runs: 15 })
})
