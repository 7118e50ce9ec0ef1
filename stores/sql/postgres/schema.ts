import { type Column, compareColumns } from '../columns.ts'
import type { Names } from '../options.ts'
import { Refusal } from '../patience.ts'
import { compile, type Run } from '../statement.ts'
import type { PgConnections } from './client.ts'

const MIGRATION_TIMEOUT = 60_000

const userType = (names: Names) => (names.userIds === 'u64' ? 'numeric(20)' : 'text COLLATE "C"')

function tables(names: Names): { sessions: string[]; users: string[] } {
  const { sessions, users, plain, quote } = names
  return {
    sessions: [
      `CREATE TABLE IF NOT EXISTS ${sessions} (
  id text COLLATE "C" PRIMARY KEY,
  kind text NOT NULL,
  parent text,
  tenant text COLLATE "C" NOT NULL,
  user_id ${userType(names)},
  username text,
  password_version bigint,
  data text NOT NULL,
  version bigint NOT NULL,
  write_id text NOT NULL,
  created_at bigint NOT NULL,
  seen_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  absolute_expires_at bigint NOT NULL,
  moved_to text
)`,
      `CREATE INDEX IF NOT EXISTS ${quote(`${plain.sessions}_user`)} ON ${sessions} (user_id, tenant) WHERE user_id IS NOT NULL`,
      `CREATE INDEX IF NOT EXISTS ${quote(`${plain.sessions}_expires`)} ON ${sessions} (expires_at)`,
    ],
    users: [
      `CREATE TABLE IF NOT EXISTS ${users} (
  tenant text COLLATE "C" NOT NULL,
  user_id ${userType(names)} NOT NULL,
  floor bigint NOT NULL,
  floor_until bigint NOT NULL,
  expires_at bigint NOT NULL,
  PRIMARY KEY (user_id, tenant)
)`,
      `CREATE INDEX IF NOT EXISTS ${quote(`${plain.users}_expires`)} ON ${users} (expires_at)`,
    ],
  }
}

export function postgresSchema(names: Names): string {
  const { sessions, users } = tables(names)
  return `${[...sessions, ...users].join(';\n')};\n`
}

function columns(names: Names): { sessions: Column[]; users: Column[] } {
  const byBytes = (name: string, notNull: boolean): Column => ({ name, type: 'text', notNull, collation: 'C' })
  const text = (name: string, notNull = false): Column => ({ name, type: 'text', notNull })
  const bigint = (name: string, notNull = true): Column => ({ name, type: 'bigint', notNull })
  const user = (notNull: boolean): Column =>
    names.userIds === 'u64' ? { name: 'user_id', type: 'numeric(20,0)', notNull } : byBytes('user_id', notNull)
  return {
    sessions: [
      byBytes('id', true),
      text('kind', true),
      text('parent'),
      byBytes('tenant', true),
      user(false),
      text('username'),
      bigint('password_version', false),
      text('data', true),
      bigint('version'),
      text('write_id', true),
      bigint('created_at'),
      bigint('seen_at'),
      bigint('expires_at'),
      bigint('absolute_expires_at'),
      text('moved_to'),
    ],
    users: [byBytes('tenant', true), user(true), bigint('floor'), bigint('floor_until'), bigint('expires_at')],
  }
}

const FOUND = compile(
  '$',
  `SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, c.collname, a.atthasdef
   FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation
   WHERE a.attrelid = to_regclass(:table) AND a.attnum > 0 AND NOT a.attisdropped`,
)
// One migration at a time: CREATE ... IF NOT EXISTS by two at once ends in a unique violation of the catalogue.
const ALONE = compile('$', `SELECT pg_advisory_xact_lock(hashtextextended('coatcheck ' || :table, 0))`)

async function foundColumns(run: Run, table: string): Promise<Column[]> {
  const { rows } = await run(FOUND, { table })
  return rows.map(([name, type, notNull, collation, optional]) => ({
    name,
    type,
    notNull: notNull === 't',
    collation: collation ?? 'default',
    optional: optional === 't',
  }))
}

export async function migratePostgres(connections: PgConnections, names: Names): Promise<void> {
  const expected = columns(names)
  try {
    await connections.transaction(performance.now() + MIGRATION_TIMEOUT, async run => {
      await run(ALONE, { table: names.sessions })
      for (const which of ['sessions', 'users'] as const) {
        // Only what is missing: a role without the right to create may call this on a finished schema.
        if ((await foundColumns(run, names[which])).length === 0)
          for (const ddl of tables(names)[which]) await run({ name: '', text: ddl, order: [] }, {})
        compareColumns(names[which], expected[which], await foundColumns(run, names[which]))
      }
    })
  } catch (error) {
    // The transaction tells what it was for the verbs; here only the reason counts.
    throw error instanceof Refusal && error.cause instanceof Error ? error.cause : error
  }
}
