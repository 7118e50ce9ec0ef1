// The old store behind a guard, as ours is: whatever goes wrong there is an outage, never a logout, and ends in time.
import type { AnyContext } from '../manager/context.ts'
import { isInSeconds, refuseSeconds } from '../text/epoch.ts'
import { quote } from '../text/quote.ts'
import { isObject, type OldSession, type OldSessions } from './from.ts'

/** How many calls that are not settled the old store may have: one that hangs must not fill the memory. */
const MAX_PENDING = 1000

/**
 * An instant that a reader answered. What is none would pass for unknown, and a session that has expired for a live one.
 * @throws TypeError that quotes the value
 */
export function epoch(name: string, value: unknown): number | null {
  if (value === undefined || value === null) return null
  const ms = value as number
  if (!Number.isFinite(ms) || ms < 0)
    throw new TypeError(`import: ${name}: expected epoch milliseconds or null, got ${quote(value)}`)
  if (ms > 0 && isInSeconds(ms)) refuseSeconds(`import: ${name}`, ms)
  return Math.floor(ms)
}

export class OldStore<T> {
  readonly #context: AnyContext
  readonly #from: OldSessions<T>
  readonly #tell: (error: Error) => void
  #pending = 0

  constructor(context: AnyContext, from: OldSessions<T>, tell: (error: Error) => void) {
    this.#context = context
    this.#from = from
    this.#tell = tell
  }

  /**
   * The live session; `null` where there is none, or one that cannot be read, which is told.
   * @throws SessionStoreError where the old store cannot say
   */
  async read(id: string, deadline: number): Promise<OldSession<T> | null> {
    const answer = await this.#call('read', deadline, async () => {
      try {
        return await this.#from.read(id)
      } catch (error) {
        // By its name: in a test runner the class may be another.
        if ((error as Error | null)?.name !== 'SyntaxError') throw error
        this.#tell(new Error('import: a session of the old store cannot be read: it is left alone', { cause: error }))
        return null
      }
    })
    if (answer === null || answer === undefined) return null
    if (!isObject(answer) || !('data' in answer))
      throw new TypeError(`import: expected { data, createdAt, expiresAt } or null from read(id), got ${quote(answer)}`)
    const [createdAt, seenAt, expiresAt] = (['createdAt', 'seenAt', 'expiresAt'] as const).map(name =>
      epoch(name, answer[name]),
    ) as [number | null, number | null, number | null]
    if (expiresAt !== null && expiresAt <= this.#context.now()) return null
    return { data: answer.data, createdAt, seenAt, expiresAt }
  }

  /** Removes a session. @throws SessionStoreError where the old store cannot say: it may be repeated */
  async end(id: string, deadline: number): Promise<void> {
    await this.#call('delete', deadline, async () => this.#from.destroy?.(id))
  }

  #call<V>(operation: 'read' | 'delete', deadline: number, run: () => Promise<V>): Promise<V> {
    const { calls, deadlines } = this.#context
    const outcome = operation === 'read' ? 'not-applied' : 'unknown'
    const fail = (message: string, options?: { cause: unknown }) =>
      calls.fail(operation, outcome, `${operation}: the store of the old sessions ${message}`, options)
    if (this.#pending >= MAX_PENDING) return Promise.reject(fail(`has not answered ${MAX_PENDING} calls`))
    this.#pending += 1
    const answer = run().finally(() => {
      this.#pending -= 1
    })
    const late = () => fail('did not answer within storeTimeout')
    return deadlines.within(deadline, answer, late, cause => fail('failed', { cause }))
  }
}
