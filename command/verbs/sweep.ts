import { setTimeout as wait } from 'node:timers/promises'
import type { Ending } from '../exit.ts'
import { counted } from '../messages.ts'
import type { Task } from '../task.ts'

const BATCH = 1000

/**
 * Removes what is expired, batch by batch, with pauses as long as the batches: requests have the database for at least
 * half of the time. The store itself is asked, since the manager's sweep tells nothing on its way and cannot be stopped.
 */
export async function sweep({ store, name, timeout, output, progress, signal }: Task): Promise<Ending> {
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
    progress.show(`${counted(removed, 'record')} removed`)
    const took = performance.now() - begun
    // A batch that its time cut short is not the last one.
    isOver = batch < BATCH && took < timeout / 2
    if (!isOver) await wait(took, undefined, { signal }).catch(() => {})
  }
  progress.clear()
  const rest = isOver ? '.' : ', then interrupted: run it again for the rest.'
  await output.result(`${counted(removed, 'expired record')} removed${rest}`, { removed, interrupted: !isOver })
  return isOver ? 'done' : 'interrupted'
}
