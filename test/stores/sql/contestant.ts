// A store as one process of several opens it.
import { MysqlStore, PostgresStore, SqliteStore } from 'coatcheck/stores/sql'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { openSqlite, type SqliteDriver } from '../../services/sqlite.ts'
import { type Mistake, naiveMysql, naivePostgres, naiveSqlite } from './naive.ts'

export interface Contestant {
  readonly database: 'postgres' | 'mysql' | 'sqlite'
  readonly url: string
  readonly table: string
  readonly isolation?: string
  readonly mistake?: Mistake
  readonly driver?: SqliteDriver
}
const POOL = 22

export function openContestant({ database, url, table, isolation, mistake, driver = 'libsql' }: Contestant) {
  if (database === 'sqlite') {
    const connection = openSqlite(driver, url)
    return mistake ? naiveSqlite(connection, table, mistake) : new SqliteStore(connection, { table })
  }
  if (database === 'mysql') {
    const pool = mysql.createPool({ uri: url, connectionLimit: POOL })
    if (isolation !== undefined)
      pool.on('connection', connection => connection.query(`SET SESSION TRANSACTION ISOLATION LEVEL ${isolation}`))
    return mistake ? naiveMysql(pool, table, mistake) : new MysqlStore(pool, { table })
  }
  const options =
    isolation === undefined
      ? {}
      : { options: `-c default_transaction_isolation=${isolation.toLowerCase().replace(' ', '\\ ')}` }
  const pool = new pg.Pool({ connectionString: url, max: POOL, ...options })
  return mistake ? naivePostgres(pool, table, mistake) : new PostgresStore(pool, { table })
}
