// Reads an error of either client: what became of the command that failed.
import { SessionStoreError, type StoreOperation } from '../../src/contract/errors.ts'
import { bareError } from '../../src/text/bare-error.ts'

/** Nothing was sent: the client had no connection. */
export class NotReady extends Error {}
/** Not sent, or not believed: the connection is of no use, and a new one is on its way. */
export class NoUse extends Error {}
/** The server refused the command because its time was over. */
export class TooLate extends Error {}
/** The command was refused, and may have run before: a connection broke, and the client sends its unanswered commands again. */
export class SentAgain extends Error {}

// Errors that say that the command did not run: the first word, or inside the text that Redis 6 puts around the error of
// a script.
const REFUSAL =
  /(?:^|-|: )(ASK|BUSY|CLUSTERDOWN|CROSSSLOT|LOADING|MASTERDOWN|MISCONF|MOVED|NOAUTH|NOPERM|NOREPLICAS|NOSCRIPT|OOM|READONLY|TRYAGAIN|WRONGPASS|WRONGTYPE)\b/
const PASSING = new Set(['ASK', 'CLUSTERDOWN', 'LOADING', 'MASTERDOWN', 'MOVED', 'NOUSE', 'READONLY', 'TRYAGAIN'])

/** The code of a refusal in an error of either client, or `null`: then the command may have run. */
export function refusalOf(error: unknown): string | null {
  if (error instanceof NotReady) return 'NOTREADY'
  if (error instanceof NoUse) return 'NOUSE'
  if (error instanceof SentAgain || !(error instanceof Error)) return null
  if (error instanceof TooLate) return 'LATE'
  // node-redis says this after an ASK to a master that has no slot yet, as while a cluster grows.
  if (error.message.startsWith('Cannot find node ')) return 'ASK'
  // ioredis says this if it has no connection and may not queue the command.
  if (error.message.startsWith("Stream isn't writeable")) return 'NOTREADY'
  // ioredis also wraps the last of too many redirections.
  return REFUSAL.exec(error.message)?.[1] ?? (error.cause === undefined ? null : refusalOf(error.cause))
}

/** For `catch`: this answer where a key of ours has a value of another type, which somebody else put there. */
export const orIfForeign =
  <T>(answer: T) =>
  (error: unknown): T => {
    if (refusalOf(error) === 'WRONGTYPE') return answer
    throw error
  }

/** Whether Redis sent this error. What a client says by itself begins in lower case, or with one capital. */
export const isAnswer = (error: unknown) => error instanceof Error && /^-?[A-Z]{2}/.test(error.message)

/** Whether a script answers that it wrote nothing, because of what it found. */
export const saysNo = (answer: unknown) =>
  Array.isArray(answer) && /^(conflict|gone|collision|orphan|stale-login)$/.test(String(answer[0]))

/** Whether the same command may succeed in a moment: a slot is moving, or a master is being elected. */
export const isPassing = (error: unknown) => PASSING.has(refusalOf(error) ?? '')

// ioredis keeps the arguments of a command in a property, and Redis repeats some in its text: a log of the error would show
// a user's data.
const withoutArguments = (text: string) => text.replace(/,? with args beginning with:.*$/s, '')

/**
 * The error to reject with, and whether the command may have run. The text from Redis is in the cause, for the log; the message may
 * reach a client of the application.
 */
export function storeError(operation: StoreOperation, error: unknown, mayHaveWritten: boolean): SessionStoreError {
  if (error instanceof SessionStoreError) return error
  const outcome = mayHaveWritten ? 'unknown' : 'not-applied'
  return new SessionStoreError(operation, outcome, `${operation}: the store failed`, {
    cause: bareError(error, withoutArguments),
  })
}
