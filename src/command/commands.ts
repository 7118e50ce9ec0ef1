// The commands, once the store is open.
import type { SessionInfo } from 'coatcheck'
import type { Run } from './arguments.ts'
import { Failure, plain } from './errors.ts'
import { counted, type Output } from './output.ts'
import type { Sessions, SqlStore } from './stores.ts'

/** The things that a command works with. */
export interface Task extends Run {
  /** The store, for people. */
  readonly name: string
  /** The store if it has tables. */
  readonly sql: SqlStore | null
  /** Of the namespace, if one is named. */
  readonly sessions: Sessions
  readonly output: Output
  /** Asks the person at the terminal; `null` only where --yes is given. */
  readonly ask: ((question: string) => Promise<string>) | null
}

/** What a command has to tell at its end. */
interface Told {
  readonly text: string
  readonly value: object
  /** If nothing was found, the options may be wrong. */
  readonly found?: number
}

/** Creates the tables, and says whether there was anything to do. */
async function migrate({ sql, name }: Task): Promise<Told> {
  if (sql === null)
    return { text: `${name}: there is nothing to migrate, Redis needs no tables.`, value: { migrated: false } }
  const wasThere = await sql.isMigrated()
  if (!wasThere) await sql.migrate()
  const text = wasThere
    ? 'the tables are there, nothing was changed.'
    : 'the tables were missing and have been created.'
  return { text: `${name}: ${text}`, value: { migrated: !wasThere } }
}

/** Removes expired records. */
async function sweep({ sessions, sql, name }: Task): Promise<Told> {
  const removed = await sessions.sweep()
  const text =
    sql === null ? `${name} removes expired sessions by itself.` : `${counted(removed, 'expired record')} removed.`
  return { text, value: { removed } }
}

async function count({ sessions, given }: Task): Promise<Told> {
  const found = await sessions.count()
  const namespace = given.get('namespace')
  const users = namespace === undefined ? '' : ` of users of ${namespace}`
  return { text: `${counted(found, 'live session')}${users}.`, value: { count: found }, found }
}

/** With the namespace if all are listed. */
type Info = SessionInfo<Record<string, unknown>, 'string'> & { readonly namespace?: string | null }

/** A key has 46 characters. */
const row = (cells: readonly string[]): string =>
  cells
    .map((cell, at) => plain(cell).padEnd(at === 0 ? 46 : 20))
    .join('  ')
    .trimEnd()

const HEAD = ['KEY', 'USER', 'BEGAN', 'LAST SEEN', 'ENDS', 'NAME']

/** In UTC, to the second. A record that someone has edited may contain no date. */
function instant(epoch: number): string {
  const date = new Date(epoch)
  return Number.isNaN(date.getTime()) ? String(epoch) : date.toISOString().replace(/\.\d+Z$/, 'Z')
}

function cellsOf({ key, user, namespace, remembered, createdAt, seenAt, expiresAt }: Info): string[] {
  const who = user === null ? '-' : `${user.id}${namespace == null ? '' : ` of ${namespace}`}`
  const name = `${user?.name ?? ''}${remembered ? ' (remembered)' : ''}`.trimStart()
  return [key, who, instant(createdAt), instant(seenAt), instant(expiresAt), name]
}

// User IDs as text: readers of JSON such as jq round numbers above 2^53, and the next command would end another user.
const objectOf = ({ key, user, createdAt, seenAt, expiresAt, absoluteExpiresAt, remembered, namespace }: Info) => ({
  key,
  userId: user?.id ?? null,
  userName: user?.name ?? null,
  createdAt,
  seenAt,
  expiresAt,
  absoluteExpiresAt,
  remembered,
  namespace,
})

/** The sessions of one user, or all of them, page by page, as fast as they are read. */
async function list({ output, sessions, user }: Task): Promise<Pick<Told, 'found'>> {
  let found = 0
  for await (const info of user === null ? sessions.all() : await sessions.list(user)) {
    if (!output.json && found === 0) output.line(row(HEAD), {})
    found += 1
    output.line(row(cellsOf(info)), objectOf(info))
    if (found % 100 === 0 && !(await output.flush())) return {}
  }
  await output.flush()
  output.note(`${counted(found)}${user === null ? '' : ` of ${whose(user)}`}.`)
  return { found }
}

/** A user in a sentence; one that looks like a session ID is not repeated. */
const whose = (user: string): string => (/^[A-Za-z0-9_-]{43}$/.test(user) ? 'that user' : `user ${plain(user)}`)

/** Ends one session by its key. */
async function revoke({ sessions, user, key }: Task): Promise<Told> {
  const ended = (await sessions.revoke(user!, key!)) ? 1 : 0
  const none = `0 sessions ended: ${whose(user!)} has none with this key.`
  return { text: ended ? `1 session of ${whose(user!)} ended.` : none, value: { ended }, found: ended }
}

/** Ends all sessions of one user. */
async function endUser({ sessions, user, minPasswordVersion }: Task): Promise<Told> {
  const ended = await sessions.invalidateUser(user!, minPasswordVersion === undefined ? {} : { minPasswordVersion })
  const refused =
    minPasswordVersion === undefined ? '' : ` Logins below password version ${minPasswordVersion} are refused.`
  return { text: `${counted(ended)} of ${whose(user!)} ended.${refused}`, value: { ended }, found: ended }
}

/** Logs everyone out; asks first, unless told not to. */
async function endAll({ name, sessions, given, output, ask }: Task): Promise<Told> {
  if (!given.has('yes')) {
    const namespace = given.get('namespace')
    const [whom, those] = namespace === undefined ? ['every user', ''] : [`every user of ${namespace}`, ' of theirs']
    const count = counted(await sessions.count())
    output.say(`${name}: this logs ${whom} out. It ends ${count}${those}, and all remember tokens.`)
    const answer = await ask!('Type yes to go on:')
    if (answer.trim().toLowerCase() !== 'yes') throw new Failure('nothing was ended, since the answer was not yes')
  }
  const ended = await sessions.invalidateAll()
  return { text: `${counted(ended)} ended.`, value: { ended }, found: ended }
}

const RUN = { migrate, sweep, count, list, revoke, 'invalidate-user': endUser, 'invalidate-all': endAll }

/** Runs a command by its name, and tells what came of it. */
export async function runCommand(name: keyof typeof RUN, task: Task): Promise<void> {
  const { output, sql } = task
  const { text, value, found }: Partial<Told> = await RUN[name](task)
  if (text !== undefined) await output.result(text, value!)
  if (found !== 0) return
  const options = sql === null ? '--prefix and --namespace' : '--table, --schema and --namespace'
  output.note(`If there should be some, see whether ${options} are as in the application.`)
}
