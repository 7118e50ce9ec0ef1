// How a session is written while others write to it: one loop for all methods that change what is stored.
import type { SessionRecord } from '../contract/store.ts'
import type { UserIds } from '../session/user-id.ts'
import type { Context, Found } from './context.ts'
import { find } from './lookup.ts'
import { type Refused, refusal, tellRefused, tooManyWriters } from './refusals.ts'

/** How often a new ID is drawn again; one more collision means that the generator repeats itself. */
export const MAX_COLLISIONS = 5

/** What one attempt to write came to: its value, or what the store answered instead. */
export type Attempt<T> = { readonly value: T; readonly latest?: SessionRecord } | Refused

/**
 * Writes to a session that was found: attempts, and if another writer came first, finds the session again and
 * attempts once more. `null` if the session is gone. The writers of one session in this process take turns.
 *
 * An attempt answers its value, or why there is none: 'conflict' and 'gone' (another writer was first: find again, after
 * a wait), 'snapshot' (it needs to see what is stored now before it can tell), 'collision' (draw another ID).
 * @throws SessionError for what else is refused, ERR_SESSION_CONFLICT if others kept writing until the deadline
 */
export function write<Data extends object, Ids extends UserIds, T>(
  context: Context<Data, Ids>,
  operation: 'create' | 'update' | 'replace',
  start: Found<Ids>,
  deadline: number,
  attempt: (found: Found<Ids>, isSnapshot: boolean) => Promise<Attempt<T> | 'conflict' | 'gone' | 'snapshot'>,
  // The grace of a rotation leads on to the successor.
  findAgain: (found: Found<Ids>) => Found<Ids> | null | Promise<Found<Ids> | null> = found =>
    find(context, found.id, context.now(), deadline),
): Promise<T | null> {
  const inTurn = async (turn: { latest: SessionRecord | null }): Promise<T | null> => {
    let found: Found<Ids> = { ...start, record: newer(turn.latest, start.record) }
    let isSnapshot = true
    let collisions = 0
    let conflicts = 0
    for (;;) {
      const outcome = await attempt(found, isSnapshot)
      if (typeof outcome === 'object') {
        turn.latest = outcome.latest ?? turn.latest
        return outcome.value
      }
      if (outcome === 'collision' && collisions < MAX_COLLISIONS) {
        collisions += 1
        continue
      }
      if (outcome === 'conflict' || outcome === 'gone') {
        if (!(await mayRetry(conflicts, deadline))) {
          tellRefused(context, 'conflict', found.record)
          throw tooManyWriters()
        }
        conflicts += 1
      } else if (outcome !== 'snapshot') throw refusal(context, outcome)
      const again = await findAgain(found)
      if (again === null) return null
      found = again
      isSnapshot = false
    }
  }
  return context.writers.run(start.record.key, deadline, inTurn, () =>
    context.calls.fail(
      operation,
      'not-applied',
      `${operation}: earlier writers of this session took all of storeTimeout`,
    ),
  )
}

/** Keeps many writers apart, until the deadline. Full jitter: 100 writers need 13 tries each with it, and 70 without. */
async function mayRetry(conflicts: number, deadline: number): Promise<boolean> {
  if (conflicts === 0) return true
  const wait = Math.random() * Math.min(100, 2 ** conflicts)
  if (performance.now() + wait >= deadline) return false
  await new Promise(resolve => setTimeout(resolve, wait))
  return true
}

/** The later of what the caller holds and what the last writer of this process left. */
const newer = (latest: SessionRecord | null, held: SessionRecord): SessionRecord =>
  latest !== null && latest.key === held.key && latest.version > held.version ? latest : held
