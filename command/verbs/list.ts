import type { SessionInfo } from 'coatcheck'
import type { Ending } from '../exit.ts'
import { counted, plain } from '../messages.ts'
import { row } from '../output.ts'
import type { Task } from '../task.ts'
import { hintFor } from './hint.ts'

type Info = SessionInfo<Record<string, unknown>, 'text'>

const HEAD = ['KEY', 'USER', 'BEGAN', 'LAST SEEN', 'ENDS', 'NAME']
const WIDTHS = [46, 20, 20, 20, 20]

/** In UTC, to the second. A record that others have edited may contain what is no date. */
function instant(epoch: number): string {
  const date = new Date(epoch)
  return Number.isNaN(date.getTime()) ? String(epoch) : date.toISOString().replace(/\.\d+Z$/, 'Z')
}

const lineOf = ({ key, user, createdAt, seenAt, expiresAt, remembered }: Info) =>
  row(
    [
      key,
      user?.id ?? '-',
      instant(createdAt),
      instant(seenAt),
      instant(expiresAt),
      `${user?.name ?? ''}${remembered ? ' (remembered)' : ''}`.trimStart(),
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
  const found = await sessions.list(user!)
  if (!output.json && found.length > 0) output.line(row(HEAD, WIDTHS), {})
  for (const info of found) output.line(lineOf(info), objectOf(info))
  await output.flush()
  if (!output.json) output.say(`${counted(found.length)} of ${whose(user!)}.`)
  if (found.length === 0) hintFor(task)
  return 'done'
}

/** A user in a sentence; one that looks like a session ID is not repeated. */
export const whose = (user: string): string => (/^[A-Za-z0-9_-]{43}$/.test(user) ? 'that user' : `user ${plain(user)}`)
