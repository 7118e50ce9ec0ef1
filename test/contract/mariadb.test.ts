import { modelTest, testStore } from 'coatcheck/custom-store/testing'
import { MysqlStore } from 'coatcheck/stores/mysql'
import fc from 'fast-check'
import type mysql from 'mysql2/promise'
import { it } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { sharedMariadb } from '../support/services/mariadb.ts'
import { damages } from '../support/sql/backend.ts'
import { started } from '../support/started.ts'

describeEngine('mariadb', 'the MySQL store on MariaDB', () => {
  const own = started(async () => {
    const server = await sharedMariadb()
    const pool = () => server.pool({ connectionLimit: 10 })
    return { pool: pool(), second: pool(), stop: server.stop }
  })

  type Given = ConstructorParameters<typeof MysqlStore>[0]
  const open = async (of: (pool: mysql.Pool) => Given = pool => pool) => {
    const stores = [new MysqlStore(of(own().pool)), new MysqlStore(of(own().second))] as const
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
  testStore(it, () => open(), undefined, { ...damages(sql => own().pool.query(sql)), runs: 15 })
})
