import type { Ending } from '../exit.ts'
import { counted } from '../messages.ts'
import { numberOf } from '../options.ts'
import type { Task } from '../task.ts'
import { hintFor } from './hint.ts'
import { whose } from './list.ts'

/** Ends one session by its key. */
export async function revoke(task: Task): Promise<Ending> {
  const { sessions, user, key, output } = task
  const ended = (await sessions.revoke(user!, key!)) ? 1 : 0
  const text =
    ended === 1 ? `1 session of ${whose(user!)} ended.` : `0 sessions ended: ${whose(user!)} has none with this key.`
  await output.result(text, { ended })
  if (ended === 0) hintFor(task)
  return 'done'
}

/** Ends all sessions of one user. */
export async function endUser(task: Task): Promise<Ending> {
  const { sessions, user, given, output } = task
  const passwordVersion = numberOf(given, 'password-version', 0xffff_ffff)
  const ended = await sessions.invalidateUser(user!, {
    ...(passwordVersion !== undefined && { minPasswordVersion: passwordVersion }),
  })
  const floor = passwordVersion === undefined ? '' : ` Logins below password version ${passwordVersion} are refused.`
  await output.result(`${counted(ended)} of ${whose(user!)} ended.${floor}`, { ended })
  if (ended === 0) hintFor(task)
  return 'done'
}
