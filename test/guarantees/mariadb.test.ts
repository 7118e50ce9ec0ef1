import { MysqlStore } from 'coatcheck/stores/mysql'
import { sharedMariadb } from '../support/services/mariadb.ts'
import { noTable, TABLES } from '../support/sql/backend.ts'
import { onEngine } from './on-engine.ts'

onEngine('mariadb', 'MariaDB', async () => {
  const server = await sharedMariadb()
  const pool = server.pool({ connectionLimit: 10 })
  const store = new MysqlStore(pool)
  await store.migrate()
  const dump = async () =>
    JSON.stringify(
      await Promise.all(TABLES.map(async name => (await pool.query(`SELECT * FROM ${name} ORDER BY 1, 2`))[0])),
    )
  const commands = async () => {
    const [rows] = await pool.query("SHOW GLOBAL STATUS LIKE 'Com_select'")
    return Number((rows as { Value: string }[])[0]!.Value)
  }
  return { store, dump, outage: () => noTable(sql => pool.query(sql)), commands, close: () => server.stop() }
})
