// Stores as one would write them first: each is wrong in one place, and the races have to notice it.
import type { DeleteUserOptions, SessionRecord } from 'coatcheck/custom-store'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import { namesOf } from '../../../stores/sql/options.ts'
import { recordValues } from '../../../stores/sql/rows.ts'
import { sqliteStatements } from '../../../stores/sql/sqlite/statements.ts'
import { bind, compile, type Outcome, type Statement, type Steps, type Values } from '../../../stores/sql/statement.ts'
import { SESSION_COLUMNS } from '../../../stores/sql/tables.ts'
import type { TransactionDatabase } from '../../../stores/sql/transaction-store.ts'

export const MISTAKES = {
  'no-lock': 'a create that looks at the floor without locking it',
  'one-statement': 'a logout everywhere that locks and deletes in one statement',
  'no-transaction': 'a logout everywhere that commits its lock before it deletes',
  'lock-once': 'a logout everywhere in pieces of which only the first locks',
  'two-steps': 'a create that looks at the floor and inserts in two steps',
} as const
export type Mistake = keyof typeof MISTAKES

/** What the mistakes are made with: the protected parts of a store. */
interface Inside {
  statements: Record<string, unknown>
  database: TransactionDatabase & { run(statement: Statement, values: Values, end: number): Promise<Outcome> }
}

const columns = SESSION_COLUMNS.map(({ name }) => name).join(', ')
const inside = (store: unknown) => store as Inside

// Each statement of the transaction by itself.
function commitEach(store: unknown) {
  const { database } = inside(store)
  database.transaction = database.write
}

// The pieces of a logout everywhere, of which only the first is a transaction that locks the user's row.
function lockOnce(store: { deleteUser: (...args: any) => Promise<number> }) {
  const { database, statements } = inside(store)
  const { deleteUser } = store
  const { transaction } = database
  store.deleteUser = (...args) => {
    let first = true
    database.transaction = (operation, end, steps, inTime) => {
      if (!first) return database.write(operation, end, () => without(statements.lockUser, steps()))
      first = false
      return transaction.call(database, operation, end, steps, inTime) as never
    }
    return deleteUser.apply(store, args)
  }
}

function* without<T>(left: unknown, steps: Steps<T>): Steps<T> {
  let next = steps.next()
  while (next.done !== true) {
    const step = next.value
    next = steps.next(step[0] === left ? { rows: [], changed: 0 } : yield step)
  }
  return next.value
}

/** A PostgresStore with one mistake. */
export function naivePostgres(pool: any, table: string, mistake: Mistake): PostgresStore {
  const store = new PostgresStore(pool, { table })
  const { statements, database } = inside(store)
  if (mistake === 'no-lock')
    statements.create = () =>
      compile(
        '$',
        `INSERT INTO ${table} (${columns}) SELECT :id::text, :kind::text, :parent::text, :tenant::text, :userId::numeric,
           :username::text, :passwordVersion::bigint, :data::text, :version::bigint, :writeId::text, :createdAt::bigint,
           :seenAt::bigint, :expiresAt::bigint, :absoluteExpiresAt::bigint, NULL
         WHERE NOT EXISTS (SELECT 1 FROM ${table}_users WHERE user_id = :userId::numeric AND floor > :provenVersion AND min_password_version_until > :now)`,
      )
  if (mistake === 'one-statement') {
    const both = compile(
      '$',
      `WITH l AS (INSERT INTO ${table}_users AS u (tenant, user_id, floor, min_password_version_until, expires_at)
         VALUES ('', :userId::numeric, :floor, :minPasswordVersionUntil, :minPasswordVersionUntil)
         ON CONFLICT (user_id, tenant) DO UPDATE SET floor = GREATEST(u.floor, excluded.floor),
           min_password_version_until = GREATEST(u.min_password_version_until, excluded.min_password_version_until) RETURNING 1),
       d AS (DELETE FROM ${table} WHERE user_id = :userId::numeric AND EXISTS (SELECT 1 FROM l) RETURNING 1)
       SELECT count(*) FROM d`,
    )
    store.deleteUser = async (
      userId: string,
      { minPasswordVersion: passwordVersion, minPasswordVersionUntil }: DeleteUserOptions,
    ) => {
      await database.run(
        both,
        { userId, floor: passwordVersion ?? 0, minPasswordVersionUntil },
        performance.now() + 5000,
      )
      return 0
    }
  }
  if (mistake === 'no-transaction') commitEach(store)
  if (mistake === 'lock-once') lockOnce(store)
  return store
}

/** A MysqlStore with one mistake. */
export function naiveMysql(pool: any, table: string, mistake: Mistake): MysqlStore {
  const store = new MysqlStore(pool, { table })
  if (mistake === 'no-lock')
    inside(store).statements.create = () =>
      compile(
        '?',
        `INSERT INTO ${table} (${columns}) SELECT :id, :kind, :parent, :tenant, CAST(:userId AS UNSIGNED), :username,
           :passwordVersion, :data, :version, :writeId, :createdAt, :seenAt, :expiresAt, :absoluteExpiresAt, NULL
         FROM (SELECT 1) one WHERE NOT EXISTS (SELECT 1 FROM ${table}_users
           WHERE user_id = CAST(:userId AS UNSIGNED) AND floor > :provenVersion AND min_password_version_until > :now)`,
      )
  if (mistake === 'no-transaction') {
    commitEach(store)
    // The second DELETE of our own sweeps up behind the first.
    inside(store).statements.endRest = compile('?', `DELETE FROM ${table} WHERE id = :except`)
  }
  return store
}

/** A SqliteStore with one mistake. */
export function naiveSqlite(database: any, table: string, mistake: Mistake): SqliteStore {
  const store = new SqliteStore(database, { table })
  const { insert } = sqliteStatements(namesOf({ table }, '"'))
  if (mistake === 'two-steps')
    store.create = async (record: SessionRecord) => {
      const floor = database.prepare(`SELECT floor FROM ${table}_users WHERE user_id = ?`).get(record.userId)
      await new Promise(resolve => setImmediate(resolve))
      if ((floor?.floor ?? 0) > (record.passwordVersion ?? 0)) return { outcome: 'stale-login', ended: [] }
      database.prepare(insert.text).run(...bind(insert, recordValues(record)))
      return { outcome: 'created', ended: [] }
    }
  return store
}
