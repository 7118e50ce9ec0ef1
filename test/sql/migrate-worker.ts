// One of ten processes that migrate at once.
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { openSqlite } from '../support/services/sqlite.ts'

export interface Migration {
  readonly url: string
  readonly table: string
}

function storeOf({ url, table }: Migration) {
  if (url.startsWith('postgres:')) return new PostgresStore(new pg.Pool({ connectionString: url }), { table })
  if (url.startsWith('mysql:')) return new MysqlStore(mysql.createPool(url), { table })
  return new SqliteStore(openSqlite('libsql', url), { table })
}

process.once('message', async (message: Migration) => {
  const answer = await storeOf(message)
    .migrate()
    .then(
      () => 'done',
      (error: Error) => error.message,
    )
  process.send?.(answer)
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
