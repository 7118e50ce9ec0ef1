// A store as one process of several opens it.
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { openSqlite, type SqliteDriver } from '../support/services/sqlite.ts'
import { type Mistake, naiveMysql, naivePostgres, naiveSqlite } from './naive.ts'

export interface Contestant {
  readonly database: 'postgres' | 'mysql' | 'sqlite'
  readonly url: string
  readonly table: string
  readonly isolation?: string
  readonly mistake?: Mistake
  readonly driver?: SqliteDriver
  /** In pieces of how many records a logout everywhere ends them; far more than a race has, unless told. */
  readonly pieces?: number
}
const POOL = 22

export interface Opened {
  readonly store: SqliteStore | MysqlStore | PostgresStore
  close(): unknown
}

export function openContestant(contestant: Contestant): Opened {
  const { database, url, table, isolation, mistake, driver = 'libsql', pieces } = contestant
  if (database === 'sqlite') {
    const connection = openSqlite(driver, url)
    const store = mistake ? naiveSqlite(connection, table, mistake) : new SqliteStore(connection, { table })
    return { store, close: () => connection.close() }
  }
  if (database === 'mysql') {
    const pool = mysql.createPool({ uri: url, connectionLimit: POOL })
    if (isolation !== undefined)
      pool.on('connection', connection => connection.query(`SET SESSION TRANSACTION ISOLATION LEVEL ${isolation}`))
    const store = mistake ? naiveMysql(pool, table, mistake) : new MysqlStore(pool, { table })
    return { store: inPieces(store, pieces), close: () => pool.end() }
  }
  const options =
    isolation === undefined
      ? {}
      : { options: `-c default_transaction_isolation=${isolation.toLowerCase().replace(' ', '\\ ')}` }
  const pool = new pg.Pool({ connectionString: url, max: POOL, ...options })
  const store = mistake ? naivePostgres(pool, table, mistake) : new PostgresStore(pool, { table })
  return { store: inPieces(store, pieces), close: () => pool.end() }
}

const inPieces = <S extends object>(store: S, batch: number | undefined): S =>
  batch === undefined ? store : Object.assign(store, { batch })
