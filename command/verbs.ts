// What each command does once its store is open.
import { setTimeout as wait } from 'node:timers/promises'
import type { SessionInfo, SessionManager, Store } from 'coatcheck'
import type { CommandName, Given } from './arguments.ts'
import { Failure, plain } from './errors.ts'
import { counted, type Output, row } from './output.ts'
import type { SqlStore } from './stores.ts'

/** How a command went: one that finished although a signal came is done. */
export type Ending = 'done' | 'interrupted'

/** What a command works with. */
export interface Task {
  readonly given: Given
  /** USER and KEY, checked. */
  readonly user: string | null
  readonly key: string | null
  /** The store, for people. */
  readonly name: string
  readonly store: Store
  /** The same if it has tables. */
  readonly sql: SqlStore | null
  /** Of the namespace, if one is named. User IDs are text: so it reads those of every application, and prints them exactly. */
  readonly sessions: SessionManager<Record<string, unknown>, 'string'>
  /** How long one call waits, in ms. */
  readonly timeout: number
  readonly minPasswordVersion: number | undefined
  readonly output: Output
  readonly signal: AbortSignal
  /** Asks the person at the terminal. */
  readonly ask: (question: string) => Promise<string>
}

/** Creates the tables, and says whether there was anything to do. */
async function migrate({ sql, name, output }: Task): Promise<Ending> {
  const wasThere = sql === null || (await sql.isMigrated())
  if (!wasThere) await sql.migrate()
  const text =
    sql === null
      ? 'there is nothing to migrate, Redis needs no tables.'
      : wasThere
        ? 'the tables are there, nothing was changed.'
        : 'the tables were missing and have been created.'
  await output.result(`${name}: ${text}`, { migrated: !wasThere })
  return 'done'
}

const BATCH = 1000

/**
 * Removes what is expired, batch by batch, with pauses as long as the batches: requests have the database for at least
 * half of the time. The store itself is asked, since the manager's sweep tells nothing on its way and cannot be stopped.
 */
async function sweep({ store, name, timeout, output, signal }: Task): Promise<Ending> {
  if (store.sweep === undefined) {
    await output.result(`${name} removes expired sessions by itself.`, { removed: 0 })
    return 'done'
  }
  let removed = 0
  let isOver = false
  while (!isOver && !signal.aborted) {
    const begun = performance.now()
    const batch = await store.sweep(BATCH, { now: Date.now(), deadline: begun + timeout })
    removed += batch
    output.progress(`${counted(removed, 'record')} removed`)
    const took = performance.now() - begun
    // A batch that its time cut short is not the last one.
    isOver = batch < BATCH && took < timeout / 2
    if (!isOver) await wait(took, undefined, { signal }).catch(() => {})
  }
  return ended(output, `${counted(removed, 'expired record')} removed`, { removed }, isOver)
}

async function ended(output: Output, text: string, value: object, isOver: boolean): Promise<Ending> {
  const rest = isOver ? '.' : ', then interrupted: run it again for the rest.'
  await output.result(text + rest, { ...value, interrupted: !isOver })
  return isOver ? 'done' : 'interrupted'
}

/** `null` if a signal came before it was done. */
async function unlessStopped<T>({ signal }: Task, work: () => Promise<T>): Promise<T | null> {
  try {
    return await work()
  } catch (error) {
    if (signal.aborted && error === signal.reason) return null
    throw error
  }
}

/** How many live sessions there are; `null` if a signal came before it was known. */
const countOf = (task: Task): Promise<number | null> =>
  unlessStopped(task, async () => {
    const { store, given, sessions, output, signal } = task
    // A store that counts by itself answers at once; a walk takes its time, and shows how far it is.
    if (store.count !== undefined && !given.has('namespace')) return sessions.count({ signal })
    let count = 0
    for await (const _ of sessions.all({ signal })) {
      count += 1
      output.progress(`${counted(count)} counted`)
    }
    return count
  })

async function count(task: Task): Promise<Ending> {
  const { output, given } = task
  const found = await countOf(task)
  if (found === null) {
    output.say('Interrupted: the number is not known.')
    return 'interrupted'
  }
  const tenant = given.get('namespace')
  const users = tenant === undefined ? '' : ` of users of ${tenant}`
  await output.result(`${counted(found, 'live session')}${users}.`, { count: found })
  return 'done'
}

/** With the namespace if all are listed. */
type Info = SessionInfo<Record<string, unknown>, 'string'> & { readonly namespace?: string | null }

const HEAD = ['KEY', 'USER', 'BEGAN', 'LAST SEEN', 'ENDS', 'NAME']
const WIDTHS = [46, 20, 20, 20, 20]

/** In UTC, to the second. A record that others have edited may contain what is no date. */
function instant(epoch: number): string {
  const date = new Date(epoch)
  return Number.isNaN(date.getTime()) ? String(epoch) : date.toISOString().replace(/\.\d+Z$/, 'Z')
}

function lineOf({ key, user, namespace, remembered, ...at }: Info): string {
  const who = user === null ? '-' : `${user.id}${namespace == null ? '' : ` of ${namespace}`}`
  const name = `${user?.name ?? ''}${remembered ? ' (remembered)' : ''}`.trimStart()
  return row([key, who, ...[at.createdAt, at.seenAt, at.expiresAt].map(instant), name], WIDTHS)
}

// User IDs as text: readers of JSON such as jq round numbers above 2^53, and the next command would end another user.
const objectOf = ({ key, user, createdAt, seenAt, expiresAt, absoluteExpiresAt, remembered }: Info) => ({
  key,
  userId: user?.id ?? null,
  userName: user?.name ?? null,
  createdAt,
  seenAt,
  expiresAt,
  absoluteExpiresAt,
  remembered,
})

/** The sessions of one user, or all of them, page by page, as fast as they are read. */
async function list(task: Task): Promise<Ending> {
  const { output, sessions, given, user, signal } = task
  const tenant = given.get('namespace')
  let found = 0
  const each = (info: Info, object: object) => {
    if (!output.json && found === 0) output.line(row(HEAD, WIDTHS), {})
    found += 1
    output.line(lineOf(info), object)
  }
  const isOver = await unlessStopped(task, async () => {
    if (user !== null) for (const info of await sessions.list(user)) each(info, objectOf(info))
    else
      for await (const info of sessions.all({ signal })) {
        const { namespace } = info
        each(tenant === undefined ? info : { ...info, namespace: null }, { ...objectOf(info), namespace })
        if (output.isFull) await output.flush()
        output.progress(`${counted(found)} listed`)
      }
    return true
  })
  await output.flush()
  if (!isOver) {
    output.say(`Interrupted: the list ends after ${counted(found)}.`)
    return 'interrupted'
  }
  if (!output.json) output.say(`${counted(found)}${user === null ? '' : ` of ${whose(user)}`}.`)
  if (found === 0) hintFor(task)
  return 'done'
}

/** A user in a sentence; one that looks like a session ID is not repeated. */
const whose = (user: string): string => (/^[A-Za-z0-9_-]{43}$/.test(user) ? 'that user' : `user ${plain(user)}`)

/** If nothing was found. */
function hintFor({ sql, output }: Task): void {
  const options = sql === null ? '--prefix and --namespace' : '--table, --schema and --namespace'
  if (!output.json) output.say(`If there should be some, see whether ${options} are as in the application.`)
}

/** Ends one session by its key. */
async function revoke(task: Task): Promise<Ending> {
  const { sessions, user, key, output } = task
  const isEnded = await sessions.revoke(user!, key!)
  const none = `0 sessions ended: ${whose(user!)} has none with this key.`
  await output.result(isEnded ? `1 session of ${whose(user!)} ended.` : none, { ended: isEnded ? 1 : 0 })
  if (!isEnded) hintFor(task)
  return 'done'
}

/** Ends all sessions of one user. */
async function invalidateUser(task: Task): Promise<Ending> {
  const { sessions, user, minPasswordVersion, output } = task
  const count = await sessions.invalidateUser(user!, minPasswordVersion === undefined ? {} : { minPasswordVersion })
  const refused =
    minPasswordVersion === undefined ? '' : ` Logins below password version ${minPasswordVersion} are refused.`
  await output.result(`${counted(count)} of ${whose(user!)} ended.${refused}`, { ended: count })
  if (count === 0) hintFor(task)
  return 'done'
}

/** Logs everyone out; asks first, unless told not to. */
async function invalidateAll(task: Task): Promise<Ending> {
  const { sessions, given, output, signal } = task
  if (!given.has('yes') && !(await isWanted(task))) {
    if (!signal.aborted) throw new Failure('nothing was ended, since the answer was not yes')
    output.say('Nothing was ended.')
    return 'interrupted'
  }
  let count = 0
  const onProgress = (now: { ended: number }) => {
    count = now.ended
    output.progress(`${counted(count)} ended`)
  }
  const all = await unlessStopped(task, () => sessions.invalidateAll({ signal, onProgress }))
  count = all ?? count
  return ended(output, `${counted(count)} ended`, { ended: count }, all !== null)
}

async function isWanted(task: Task): Promise<boolean> {
  const { name, given, output } = task
  const count = await countOf(task)
  if (count === null) return false
  const tenant = given.get('namespace')
  const [whom, those] = tenant === undefined ? ['every user', ''] : [`every user of ${tenant}`, ` of theirs`]
  output.say(`${name}: this logs ${whom} out. It ends ${counted(count)}${those}, and all remember tokens.`)
  return (await task.ask('Type yes to go on:')).trim().toLowerCase() === 'yes'
}

/** By the names of the commands. */
export const RUN: Readonly<Record<Exclude<CommandName, 'ddl'>, (task: Task) => Promise<Ending>>> = {
  migrate,
  sweep,
  count,
  list,
  revoke,
  'invalidate-user': invalidateUser,
  'invalidate-all': invalidateAll,
}
