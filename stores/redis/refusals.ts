import { NotReady } from './client.ts'

// Replies that say that the command was not run; the first of a message, or inside the text that Redis 6 puts around
// the error of a script.
const REFUSAL =
  /(?:^|-|: )(ASK|BUSY|CLUSTERDOWN|CROSSSLOT|LOADING|MASTERDOWN|MISCONF|MOVED|NOAUTH|NOPERM|NOREPLICAS|NOSCRIPT|OOM|READONLY|TRYAGAIN|WRONGPASS|WRONGTYPE)\b/
const PASSING = new Set(['ASK', 'CLUSTERDOWN', 'LOADING', 'MASTERDOWN', 'MOVED', 'READONLY', 'TRYAGAIN'])

/** Whether the same command may succeed in a moment: a slot or a master is on its way. */
export const isPassing = (error: unknown) => PASSING.has(refusalOf(error) ?? '')

/** The code of a refusal in an error of either client, or `null`: then the command may have run. */
export function refusalOf(error: unknown): string | null {
  if (error instanceof NotReady) return 'NOTREADY'
  if (!(error instanceof Error)) return null
  // What node-redis makes of an ASK to a master that has no slot yet: the first of a cluster that grows.
  if (error.message.startsWith('Cannot find node ')) return 'ASK'
  // It also wraps the last of too many redirections.
  return REFUSAL.exec(error.message)?.[1] ?? (error.cause === undefined ? null : refusalOf(error.cause))
}
