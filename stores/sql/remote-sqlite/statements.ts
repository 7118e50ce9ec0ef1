import type { Names } from '../options.ts'
import { ROW_COLUMNS } from '../rows.ts'
import { SQLITE, sqliteStatements } from '../sqlite/statements.ts'
import { compile } from '../statement.ts'
import { assignments, type Dialect, FORWARD, partsOf } from '../statements.ts'
import { SESSION_COLUMNS } from '../tables.ts'

/** The database's clock, in epoch ms. */
const CLOCK = "CAST(unixepoch('subsec') * 1000 AS INTEGER)"

/** Tells the database's clock. */
export const GREETING = compile('?', `SELECT ${CLOCK} AS clock`)

/**
 * The first statement of each batch that writes. After the deadline it fails, and the batch with it: outside of a trigger
 * SQLite has no other way to fail than a function that is given what it does not take.
 */
export const IN_TIME = compile(
  '?',
  `SELECT ${CLOCK} AS clock, CASE WHEN ${CLOCK} > :deadline THEN json('too late') END AS late`,
)
/** What it fails with. No other statement that writes uses JSON. */
export const LATE = /malformed JSON/

// As text: the clients throw at an integer above 2^53, or round it, and only a hand can have put one there.
const DIALECT: Dialect = {
  ...SQLITE,
  readable: Object.fromEntries(
    SESSION_COLUMNS.filter(({ holds }) => holds === 'integer' || holds === 'uint32').map(({ name }) => [
      name,
      `CAST(${name} AS TEXT) AS ${name}_text`,
    ]),
  ),
}

/**
 * The statements of a SQLite database on a network. A batch is a transaction in which no answer comes in the middle: the
 * INSERT looks by itself whether the session may become live, what follows it whether it was made, and the verdict is told
 * from the row of `facts`, of the same batch.
 */
export function remoteStatements(names: Names) {
  const { sessions, users } = names
  const { columns, values, live, ofUser } = partsOf(DIALECT)
  // A circle of forwards, which only a person can make, ends: UNION takes no row twice.
  const way = (from: string) => `WITH RECURSIVE way(id) AS (
      SELECT ${from} UNION SELECT s.moved_to FROM way JOIN ${sessions} s ON s.id = way.id WHERE s.moved_to IS NOT NULL
    ) SELECT id FROM way`
  const others = `FROM ${sessions} WHERE ${ofUser()} AND kind = 'session' AND ${live()} AND id <> :old AND id <> :id`
  const has = (condition: string) => `EXISTS (SELECT 1 FROM ${sessions} WHERE ${condition})`
  // No write ID has a `!`. A repeated call finds the record without one, and does nothing.
  const isNew = has(`id = :id AND write_id = '!' || :writeId`)
  const marked = { ...values, write_id: `'!' || ${values.write_id}` }
  return {
    ...sqliteStatements(names, { spared: `id IN (${way(':except')})`, dialect: DIALECT }),
    /** The records under several keys: in a list, because D1 takes no more than 100 parameters. */
    readEach: compile(
      '?',
      `SELECT ${ROW_COLUMNS.map(name => DIALECT.readable?.[name] ?? name).join(', ')} FROM ${sessions}
       WHERE id IN (SELECT value FROM json_each(:keys))`,
    ),
    /** Makes the session live where nothing stands in the way; its write ID says that until `settle`. */
    insert: compile(
      '?',
      `INSERT INTO ${sessions} (${columns}) SELECT ${Object.values(marked).join(', ')}
       WHERE NOT ${has('id = :id')}
         AND (:old = '' OR ${has(`id = :old AND version = :oldVersion AND ${live()}`)})
         AND NOT EXISTS (SELECT 1 FROM ${users} WHERE ${ofUser()} AND floor > :provenVersion AND min_password_version_until > :now)
         AND (:checksParent = 0 OR ${has(`id = :parent AND ${live()}`)} OR ${has(`id = :old AND parent = :parent AND ${live()}`)})
         AND (:refuseAt IS NULL OR (SELECT count(*) ${others}) < :refuseAt)`,
    ),
    /** Ends the user's oldest sessions beyond the limit. */
    endOldest: compile(
      '?',
      `DELETE FROM ${sessions} WHERE ${isNew} AND id IN (
         SELECT id ${others} ORDER BY created_at, id LIMIT max(0, (SELECT count(*) ${others}) + 1 - :max))`,
    ),
    /** What becomes of the record under the old key. */
    forward: compile('?', `UPDATE ${sessions} SET ${assignments(FORWARD)} WHERE id = :old AND ${isNew}`),
    removeOld: compile('?', `DELETE FROM ${sessions} WHERE id = :old AND ${isNew}`),
    settle: compile('?', `UPDATE ${sessions} SET write_id = :writeId WHERE id = :id AND write_id = '!' || :writeId`),
    /** Whether a session stands under a key, or where the forwards there lead. */
    ending: compile('?', `SELECT count(*) FROM ${sessions} WHERE moved_to IS NULL AND id IN (${way(':id')})`),
    /** Ends it, and the forwards. */
    end: compile('?', `DELETE FROM ${sessions} WHERE id IN (${way(':id')})`),
    count: compile('?', `SELECT count(*) FROM ${sessions} WHERE kind = 'session' AND ${live()}`),
  }
}
