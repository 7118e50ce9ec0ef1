// Transactions of another node, and the statements that wait for them.
import type mysql from 'mysql2/promise'
import type pg from 'pg'
import { expect } from 'vitest'
import { within } from '../support/deadlines.ts'
import { failure } from '../support/failure.ts'
import { until } from '../support/services/process.ts'
import { NOW } from './records.ts'

/** The error of a call that is given up at its server: on a busy machine one that has little time does not come so far. */
export async function givenUp(work: (when: { now: number; deadline: number }) => unknown) {
  for (let time = 200; ; time *= 2) {
    const error = await failure(work({ now: NOW, deadline: within(time) }))
    if (String(error.cause).endsWith('did not answer in time')) return error
    expect(time, String(error.cause)).toBeLessThan(10_000)
  }
}

/** A transaction that has begun: `run` runs a statement of it. */
export interface Transaction {
  run(sql: string): Promise<unknown>
  /** Ends it, and gives the connection back. */
  end(how?: 'COMMIT' | 'ROLLBACK'): Promise<unknown>
}

/** What a test of locks asks of a database. */
export interface Locks {
  begin(): Promise<Transaction>
  /** Locks rows by this statement, or else the whole table as an ALTER TABLE does; gives what ends it. */
  hold(sql?: string): Promise<() => Promise<unknown>>
  /** How many statements wait for a lock. */
  waiting(): Promise<number>
  /** Resolves when none waits. */
  nothingWaits(): Promise<unknown>
  /** Ends the connections that wait for the table. */
  killWaiting(): Promise<unknown>
}

const nothingWaits = (locks: Locks) => () =>
  until('no statement of ours at the server', async () => expect(await locks.waiting()).toBe(0))

export function locksOfPostgres(pool: pg.Pool, table = 'coatcheck_sessions'): Locks {
  const WAITING = `FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`
  const locks: Locks = {
    async begin() {
      const connection = await pool.connect()
      await connection.query('BEGIN')
      return {
        run: sql => connection.query(sql),
        end: (how = 'COMMIT') => connection.query(how).finally(() => connection.release()),
      }
    },
    async hold(sql = `LOCK TABLE ${table}`) {
      const { run, end } = await locks.begin()
      await run(sql)
      return () => end('ROLLBACK')
    },
    waiting: async () => (await pool.query(`SELECT 1 ${WAITING}`)).rowCount!,
    killWaiting: () => pool.query(`SELECT pg_terminate_backend(pid) ${WAITING}`),
    nothingWaits: () => nothingWaits(locks)(),
  }
  return locks
}

export function locksOfMariadb(pool: mysql.Pool, table = 'coatcheck_sessions'): Locks {
  const ofTable = async () => {
    const [rows] = await pool.query<mysql.RowDataPacket[]>(
      "SELECT id FROM information_schema.processlist WHERE db = database() AND state LIKE 'Waiting for table%'",
    )
    return rows.map(({ id }) => id as number)
  }
  const taken = async (begin: string) => {
    const connection = await pool.getConnection()
    await connection.query(begin)
    return {
      run: (sql: string) => connection.query(sql),
      end: (how = 'COMMIT') => connection.query(how).finally(() => connection.release()),
    }
  }
  const locks: Locks = {
    begin: () => taken('START TRANSACTION'),
    async hold(sql) {
      if (sql === undefined) {
        const { end } = await taken(`LOCK TABLES ${table} WRITE, ${table}_users WRITE`)
        return () => end('UNLOCK TABLES')
      }
      const { run, end } = await locks.begin()
      await run(sql)
      return () => end('ROLLBACK')
    },
    async waiting() {
      const [rows] = await pool.query<mysql.RowDataPacket[]>('SHOW ENGINE INNODB STATUS')
      const ofRows = rows[0]!.Status.match(/^LOCK WAIT /gm)?.length ?? 0
      return ofRows + (await ofTable()).length
    },
    async killWaiting() {
      for (const id of await ofTable()) await pool.query(`KILL ${id}`)
    },
    nothingWaits: () => nothingWaits(locks)(),
  }
  return locks
}
