import type { Ending } from '../exit.ts'
import { counted } from '../messages.ts'
import type { Task } from '../task.ts'

/** How many live sessions there are; `null` where a signal came before it was known. */
export async function countOf({ store, given, sessions, progress, signal }: Task): Promise<number | null> {
  try {
    // A store that counts by itself answers at once; a walk takes its time, and shows how far it is.
    if (store.count !== undefined && !given.has('namespace')) return await sessions.count({ signal })
    let count = 0
    for await (const _ of sessions.all({ signal })) {
      count += 1
      progress.show(`${counted(count)} counted`)
    }
    return count
  } catch (error) {
    if (signal.aborted && error === signal.reason) return null
    throw error
  } finally {
    progress.clear()
  }
}

export async function count(task: Task): Promise<Ending> {
  const { output, given } = task
  const found = await countOf(task)
  if (found === null) {
    output.say('Interrupted: the number is not known.')
    return 'interrupted'
  }
  const tenant = given.get('namespace')
  const whose = tenant === undefined ? '' : ` of users of ${tenant}`
  await output.result(`${counted(found, 'live session')}${whose}.`, { count: found })
  return 'done'
}
