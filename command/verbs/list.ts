import type { SessionInfo } from 'coatcheck'
import type { Ending } from '../exit.ts'
import { counted, plain } from '../messages.ts'
import { row } from '../output.ts'
import type { Task } from '../task.ts'
import { hintFor } from './hint.ts'

/** With the namespace where all are listed. */
type Info = SessionInfo<Record<string, unknown>, 'string'> & { readonly namespace?: string | null }

const HEAD = ['KEY', 'USER', 'BEGAN', 'LAST SEEN', 'ENDS', 'NAME']
const WIDTHS = [46, 20, 20, 20, 20]

/** In UTC, to the second. A record that others have edited may contain what is no date. */
function instant(epoch: number): string {
  const date = new Date(epoch)
  return Number.isNaN(date.getTime()) ? String(epoch) : date.toISOString().replace(/\.\d+Z$/, 'Z')
}

const userOf = ({ user, namespace }: Info) =>
  user === null ? '-' : `${user.id}${namespace == null ? '' : ` of ${namespace}`}`

const lineOf = (info: Info) =>
  row(
    [
      info.key,
      userOf(info),
      instant(info.createdAt),
      instant(info.seenAt),
      instant(info.expiresAt),
      `${info.user?.name ?? ''}${info.remembered ? ' (remembered)' : ''}`.trimStart(),
    ],
    WIDTHS,
  )

// User IDs as text: readers of JSON such as jq round numbers above 2^53, and the next command would end another user.
const objectOf = ({ key, user, createdAt, seenAt, expiresAt, absoluteExpiresAt, remembered }: Info) => ({
  key,
  userId: user?.id ?? null,
  username: user?.name ?? null,
  createdAt,
  seenAt,
  expiresAt,
  absoluteExpiresAt,
  remembered,
})

/** The sessions of one user, or all of them. */
export async function list(task: Task): Promise<Ending> {
  const { output, sessions, user } = task
  if (user === null) return listAll(task)
  const found = await sessions.list(user)
  if (!output.json && found.length > 0) output.line(row(HEAD, WIDTHS), {})
  for (const info of found) output.line(lineOf(info), objectOf(info))
  await output.flush()
  if (!output.json) output.say(`${counted(found.length)} of ${whose(user)}.`)
  if (found.length === 0) hintFor(task)
  return 'done'
}

/** Page by page, as fast as they are read. */
async function listAll(task: Task): Promise<Ending> {
  const { output, sessions, given, progress, signal } = task
  const tenant = given.get('namespace') ?? null
  let found = 0
  try {
    for await (const info of sessions.all({ signal })) {
      if (!output.json && found === 0) output.line(row(HEAD, WIDTHS), {})
      found += 1
      output.line(lineOf(tenant === null ? info : { ...info, namespace: null }), {
        ...objectOf(info),
        namespace: info.namespace,
      })
      if (output.isFull) await output.flush()
      if (!output.isTerminal) progress.show(`${counted(found)} listed`)
    }
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error
    await output.flush()
    progress.clear()
    output.say(`Interrupted: the list ends after ${counted(found)}.`)
    return 'interrupted'
  }
  await output.flush()
  progress.clear()
  if (!output.json) output.say(`${counted(found)}.`)
  if (found === 0) hintFor(task)
  return 'done'
}

/** A user in a sentence; one that looks like a session ID is not repeated. */
export const whose = (user: string): string => (/^[A-Za-z0-9_-]{43}$/.test(user) ? 'that user' : `user ${plain(user)}`)
