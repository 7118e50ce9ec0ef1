// Transactions of another node, and the statements that wait for them.
import type mysql from 'mysql2/promise'
import type pg from 'pg'

/** A transaction that has begun: `run` runs a statement of it. */
export interface Transaction {
  run(sql: string): Promise<unknown>
  /** Commits, and gives the connection back. */
  commit(): Promise<unknown>
}

/** What a test of locks asks of a database. */
export interface Locks {
  begin(): Promise<Transaction>
  /** How many statements wait for a lock. */
  waiting(): Promise<number>
}

export const locksOfPostgres = (pool: pg.Pool): Locks => ({
  async begin() {
    const connection = await pool.connect()
    await connection.query('BEGIN')
    return {
      run: sql => connection.query(sql),
      commit: () => connection.query('COMMIT').finally(() => connection.release()),
    }
  },
  async waiting() {
    return (await pool.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")).rowCount!
  },
})

export const locksOfMariadb = (pool: mysql.Pool): Locks => ({
  async begin() {
    const connection = await pool.getConnection()
    await connection.query('START TRANSACTION')
    return {
      run: sql => connection.query(sql),
      commit: () => connection.query('COMMIT').finally(() => connection.release()),
    }
  },
  async waiting() {
    const [rows] = await pool.query("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
    return Number((rows as { Value: string }[])[0]!.Value)
  },
})
