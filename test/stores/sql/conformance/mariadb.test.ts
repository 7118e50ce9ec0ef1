import { MysqlStore } from 'coatcheck/stores/sql'
import { modelTest, testStore } from 'coatcheck/testing'
import fc from 'fast-check'
import type mysql from 'mysql2/promise'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { describeEngine } from '../../../services/engines.ts'
import { type MariadbServer, startMariadb } from '../../../services/mariadb.ts'

describeEngine('mariadb', 'the MySQL store on MariaDB', () => {
  let server: MariadbServer
  let pool: mysql.Pool
  beforeAll(async () => {
    server = await startMariadb()
    pool = server.pool({ connectionLimit: 10 })
  })
  afterAll(() => server?.stop())

  describe.each(['u64', 'text'] as const)('with %s user IDs', userIds => {
    const open = async () => {
      const store = new MysqlStore(pool, { userIds, table: `${userIds}_sessions` })
      await store.migrate()
      return store
    }
    const corrupt = async (_: unknown, key: string) => {
      await pool.query(`UPDATE ${userIds}_sessions SET version = -1 WHERE id = ?`, [key])
    }
    const rename = (from: string, to: string) => pool.query(`RENAME TABLE ${from} TO ${to}`)
    const outage = async () => {
      await rename(`${userIds}_sessions`, 'elsewhere')
      return () => rename('elsewhere', `${userIds}_sessions`)
    }
    testStore(it, open, undefined, { textUserIds: userIds === 'text', corrupt, outage, runs: 25 })
    it('behaves like the reference model', () => modelTest(fc, open, undefined, { runs: 50 }))
  })
})
