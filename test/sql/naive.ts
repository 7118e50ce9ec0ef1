// Stores as one would write them first: each is wrong in one place, and the races have to notice it.
import type { DeleteUserOptions, SessionRecord } from 'coatcheck/custom-store'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore } from 'coatcheck/stores/postgres'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import { bind, compile, type Engine } from '../../stores/sql/base/engine.ts'
import { recordValues } from '../../stores/sql/base/rows.ts'
import type { Names } from '../../stores/sql/base/schema.ts'
import { type Form, partsOf, statements } from '../../stores/sql/base/statements.ts'

export const MISTAKES = {
  'no-lock': 'a create that looks at the minimum password version without locking it',
  'one-statement': 'a logout everywhere that locks and deletes in one statement',
  'no-transaction': 'a logout everywhere that commits its lock before it deletes',
  'lock-once': 'a logout everywhere in pieces of which only the first locks',
  'two-steps': 'a create that looks at the minimum password version and inserts in two steps',
} as const
export type Mistake = keyof typeof MISTAKES

/** What the mistakes are made with: the protected parts of a store. */
interface Inside {
  readonly engine: Engine
  readonly names: Names
  readonly texts: ReturnType<typeof statements>
  endPiece(...args: unknown[]): Promise<unknown>
}
const inside = (store: unknown) => store as Inside

/** Another text for some of the statements. */
const say = (store: unknown, texts: Partial<Inside['texts']>) => Object.assign(inside(store).texts, texts)

// Each statement of the transaction by itself.
function commitEach(store: unknown) {
  const { engine } = inside(store)
  const { run } = engine
  engine.run = (mode, ...rest) => run.call(engine, mode === 'together' ? 'each' : mode, ...rest) as never
}

/** A PostgresStore with one mistake. */
export function naivePostgres(pool: any, table: string, mistake: Mistake): PostgresStore {
  const store = new PostgresStore(pool, { table })
  const { engine, names } = inside(store)
  if (mistake === 'no-lock') say(store, { make: statements(names, { ...engine.dialect, locks: false }).make })
  if (mistake === 'one-statement')
    store.deleteUser = async (userId, { minPasswordVersion = 0, minPasswordVersionUntil }: DeleteUserOptions) => {
      await pool.query(
        `WITH l AS (INSERT INTO ${table}_users AS u VALUES ('', $1, $2, $3, $3)
           ON CONFLICT (user_id, namespace) DO UPDATE
             SET min_password_version = GREATEST(u.min_password_version, excluded.min_password_version),
               min_password_version_until = GREATEST(u.min_password_version_until, excluded.min_password_version_until)
           RETURNING 1)
         DELETE FROM ${table} WHERE user_id = $1 AND EXISTS (SELECT 1 FROM l)`,
        [userId, minPasswordVersion, minPasswordVersionUntil],
      )
      return 0
    }
  if (mistake === 'no-transaction') commitEach(store)
  if (mistake === 'lock-once') {
    const { endPiece, texts } = inside(store)
    inside(store).endPiece = (...args) =>
      endPiece.apply(store, args).finally(() => Object.assign(texts, { lockUser: 'SELECT 1' }))
  }
  return store
}

/** A MysqlStore with one mistake. */
export function naiveMysql(pool: any, table: string, mistake: Mistake): MysqlStore {
  const store = new MysqlStore(pool, { table })
  const { engine, names, texts } = inside(store)
  const { columns, values, stale } = partsOf(names, engine.dialect)
  const { make } = texts
  const create = `INSERT INTO ${table} (${columns}) SELECT ${Object.values(values).join(', ')}
    FROM (SELECT 1) one WHERE NOT EXISTS (${stale})`
  if (mistake === 'no-lock') say(store, { make: (form: Form) => (form.replaces ? make(form) : [create]) })
  if (mistake === 'no-transaction') {
    commitEach(store)
    // The second DELETE of our own sweeps up behind the first.
    Object.assign(texts, { endRest: `DELETE FROM ${table} WHERE id = :except LIMIT :limit` })
  }
  return store
}

/** A SqliteStore with one mistake. */
export function naiveSqlite(database: any, table: string, mistake: Mistake): SqliteStore {
  const store = new SqliteStore(database, { table })
  const { engine, names } = inside(store)
  const { columns, values } = partsOf(names, engine.dialect)
  const insert = compile(`INSERT INTO ${table} (${columns}) VALUES (${Object.values(values).join(', ')})`, '?')
  if (mistake === 'two-steps')
    store.create = async (record: SessionRecord) => {
      const sql = `SELECT min_password_version AS least FROM ${table}_users WHERE user_id = ?`
      const least = database.prepare(sql).get(record.userId)?.least ?? 0
      await new Promise(resolve => setImmediate(resolve))
      if (least > (record.passwordVersion ?? 0)) return 'stale-login'
      // libsql keeps a prepared statement running that meets a lock, and with it the next lock that it gets.
      database.exec('BEGIN IMMEDIATE')
      database.prepare(insert.text).run(...bind(insert, recordValues(record)))
      database.exec('COMMIT')
      return 'created'
    }
  return store
}
