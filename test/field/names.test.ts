// What went wrong in the field where the name of a table came from a user.
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { openSqlite } from '../support/services/sqlite.ts'

const HOSTILE = [
  'sessions"; DROP TABLE users; --',
  'sessions`; DROP TABLE users; --',
  "sessions' OR '1'='1",
  'web".session WHERE $1=$1;--',
  'a.b',
  'a b',
  'a\0',
  'sess\u00econs',
  '1a',
  '',
  'a'.repeat(49),
  ['sessions'],
  { toString: () => 'sessions"; --' },
]

describe('regressions of the field', () => {
  // connect-pg-simple: a table name with a quote left its quotes (SQL injection).
  it('CVE-2019-15658: a table or schema name that would leave its quotes is refused before anything is sent', async () => {
    // Neither pool connects before it is asked for something.
    const pool = new pg.Pool({ port: 1 })
    const mysqlPool = mysql.createPool({ port: 1 })
    const database = openSqlite('libsql', ':memory:')
    const opens: ((options: object) => unknown)[] = [
      options => new PostgresStore(pool, options),
      options => new MysqlStore(mysqlPool, options),
      options => new SqliteStore(database, options),
    ]
    for (const open of opens)
      for (const option of ['table', 'schema'])
        for (const name of HOSTILE)
          expect(() => open({ [option]: name }), `${option} ${JSON.stringify(name)}`).toThrow(
            new RegExp(`${option}: expected 1 to 48 letters, digits and underscores`),
          )
    database.close()
    await mysqlPool.end()
    await pool.end()
  })
})
