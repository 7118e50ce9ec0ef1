import { NotReady } from './link.ts'

// Replies that say that the command was not run; the first of a message, or inside the text that Redis 6 puts around
// the error of a script.
const REFUSAL =
  /(?:^|-|: )(ASK|BUSY|CLUSTERDOWN|CROSSSLOT|LOADING|MASTERDOWN|MISCONF|MOVED|NOAUTH|NOPERM|NOREPLICAS|NOSCRIPT|OOM|READONLY|TRYAGAIN|WRONGPASS|WRONGTYPE)\b/
const PASSING = new Set(['ASK', 'CLUSTERDOWN', 'LOADING', 'MASTERDOWN', 'MOVED', 'READONLY', 'TRYAGAIN'])

/** Whether the same command may succeed in a moment: a slot is moving, or a master is being elected. */
export const isPassing = (error: unknown) => PASSING.has(refusalOf(error) ?? '')

/** Whether Redis, or a proxy before it, answered with an error: the connection is sound. */
export function isReply(error: unknown): boolean {
  const refusal = refusalOf(error)
  return refusal === null ? error instanceof Error && /^ERR\b/.test(error.message) : refusal !== 'NOTREADY'
}

/** Whether the same command will be refused next time as well: no right to it, or no such command. */
export const isLasting = (error: unknown) =>
  isReply(error) && (refusalOf(error) === null || refusalOf(error) === 'NOPERM')

/** The code of a refusal in an error of either client, or `null`: then the command may have run. */
export function refusalOf(error: unknown): string | null {
  if (error instanceof NotReady) return 'NOTREADY'
  if (!(error instanceof Error)) return null
  // What node-redis makes of an ASK to a master that has no slot yet: the first of a cluster that grows.
  if (error.message.startsWith('Cannot find node ')) return 'ASK'
  // What ioredis says of commands that it joined (`enableAutoPipelining`), and of which it sent none, while slots move.
  if (error.message.startsWith('All keys in the pipeline should belong to the same slots')) return 'TRYAGAIN'
  // What ioredis says where it has no connection and may not keep the command.
  if (error.message.startsWith("Stream isn't writeable")) return 'NOTREADY'
  // It also wraps the last of too many redirections.
  return REFUSAL.exec(error.message)?.[1] ?? (error.cause === undefined ? null : refusalOf(error.cause))
}

// What Redis adds for a command that it does not know: the first arguments, user IDs and names among them.
const ECHO = /,? with args beginning with:.*$/s

/**
 * The same error without the command that failed: ioredis keeps its arguments in a property, Redis repeats some in its
 * text, so a log of the error would show a user's data. Only what is named here is taken over.
 */
export function withoutArguments(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(`rejected with ${typeof error}`)
  const message = error.message.replace(ECHO, '')
  const plain = new Error(message, error.cause === undefined ? {} : { cause: withoutArguments(error.cause) })
  Object.defineProperty(plain, 'name', { value: error.name, configurable: true, writable: true })
  // Made anew above where the text was shortened: the stack begins with the text.
  if (message === error.message && error.stack !== undefined) plain.stack = error.stack
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? Object.assign(plain, { code }) : plain
}
