import { SqliteStore } from 'coatcheck/stores/sqlite'
import { openSqlite, sqliteFile } from '../support/services/sqlite.ts'
import { noTable, TABLES } from '../support/sql/backend.ts'
import { onEngine } from './on-engine.ts'

onEngine('libsql', 'SQLite', async () => {
  const { file, remove } = sqliteFile()
  const database = openSqlite('libsql', file)
  const store = new SqliteStore(database)
  await store.migrate()
  const dump = async () =>
    JSON.stringify(TABLES.map(name => (database.prepare(`SELECT * FROM ${name} ORDER BY 1, 2`) as any).all()))
  const outage = () => noTable(sql => database.exec(sql))
  return { store, dump, outage, commands: async () => null, close: () => [database.close(), remove()] }
})
