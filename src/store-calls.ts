import { SessionStoreError, type StoreOperation } from './errors.ts'
import type { Corrupt, CreateResult, Forward, ReplaceResult, SessionRecord, Store } from './store.ts'

type Answer<N extends keyof Store> = Awaited<ReturnType<NonNullable<Store[N]>>>
type Arguments<N extends keyof Store> = Parameters<NonNullable<Store[N]>>

const CREATED = new Set<unknown>([
  'created',
  'collision',
  'stale-login',
  'limit',
  'orphan',
] satisfies CreateResult['outcome'][])
const REPLACED = new Set<unknown>([...CREATED, 'conflict', 'gone'])

const isObject = (answer: unknown): answer is Record<string, unknown> => typeof answer === 'object' && answer !== null
const isCount = (answer: unknown) => Number.isSafeInteger(answer) && (answer as number) >= 0

/** What each verb may answer; anything else is a broken store, not an absent session. */
const SOUND: { readonly [N in StoreOperation]: (answer: unknown) => boolean } = {
  create: answer => isObject(answer) && CREATED.has(answer.outcome) && Array.isArray(answer.ended),
  read: answer =>
    answer === null || (isObject(answer) && ('key' in answer || 'movedTo' in answer || 'corrupt' in answer)),
  update: answer => answer === 'updated' || answer === 'conflict' || answer === 'gone',
  touch: answer => answer === 'touched' || answer === 'gone',
  replace: answer => isObject(answer) && REPLACED.has(answer.outcome) && Array.isArray(answer.ended),
  delete: answer => typeof answer === 'boolean',
  deleteUser: isCount,
  listUser: answer => Array.isArray(answer) && answer.every(record => isObject(record) && 'key' in record),
  sweep: isCount,
  close: () => true,
}

/** Nothing can have been written by these, whatever went wrong. */
const isReading = (operation: StoreOperation) => operation === 'read' || operation === 'listUser'

export const isRecord = (answer: SessionRecord | Forward | Corrupt): answer is SessionRecord => 'key' in answer
export const isForward = (answer: SessionRecord | Forward | Corrupt): answer is Forward => 'movedTo' in answer

/**
 * The store behind a guard: each call ends by its deadline, and whatever goes wrong is a `SessionStoreError` (G7).
 * Deadlines are on the scale of `performance.now()`: the wall clock may jump.
 */
export class StoreCalls {
  readonly #store: Store
  readonly #timeout: number
  readonly #onError: (error: SessionStoreError) => void

  constructor(store: Store, timeout: number, onError: (error: SessionStoreError) => void) {
    this.#store = store
    this.#timeout = timeout
    this.#onError = onError
  }

  /** The deadline of a manager's call that begins now. */
  deadline(): number {
    return performance.now() + this.#timeout
  }

  read(key: string, now: number, deadline: number): Promise<SessionRecord | Forward | Corrupt | null> {
    return this.#guard('read', deadline, [key, now, deadline])
  }
  create(...args: Required<Arguments<'create'>>): Promise<CreateResult> {
    return this.#guard('create', args[2], args)
  }
  update(...args: Required<Arguments<'update'>>): Promise<Answer<'update'>> {
    return this.#guard('update', args[4], args)
  }
  touch(...args: Required<Arguments<'touch'>>): Promise<Answer<'touch'>> {
    return this.#guard('touch', args[4], args)
  }
  replace(...args: Required<Arguments<'replace'>>): Promise<ReplaceResult> {
    return this.#guard('replace', args[4], args)
  }
  delete(...args: Required<Arguments<'delete'>>): Promise<boolean> {
    return this.#guard('delete', args[1], args)
  }
  deleteUser(...args: Required<Arguments<'deleteUser'>>): Promise<number> {
    return this.#guard('deleteUser', args[2], args)
  }
  listUser(...args: Required<Arguments<'listUser'>>): Promise<SessionRecord[]> {
    return this.#guard('listUser', args[3], args)
  }
  sweep(...args: Required<Arguments<'sweep'>>): Promise<number> {
    return this.#guard('sweep', args[2], args)
  }

  /** For errors found outside a call, such as time that ran out in our own queue. */
  fail(
    operation: StoreOperation,
    outcome: SessionStoreError['outcome'],
    message: string,
    options?: { cause?: unknown },
  ): SessionStoreError {
    const error = new SessionStoreError(operation, outcome, message, options)
    this.#onError(error)
    return error
  }

  #guard<N extends Exclude<StoreOperation, 'close'>>(
    operation: N,
    deadline: number,
    args: readonly unknown[],
  ): Promise<Answer<N>> {
    return new Promise((resolve, reject) => {
      const left = deadline - performance.now()
      if (left <= 0) {
        reject(this.fail(operation, 'not-applied', `${operation}: no time was left before storeTimeout`))
        return
      }
      const outcome = isReading(operation) ? 'not-applied' : 'unknown'
      // Referenced: a process that only waits for a hanging store must still hear that it hangs.
      let late = false
      const timer = setTimeout(() => {
        late = true
        reject(this.fail(operation, outcome, `${operation}: the store did not answer within storeTimeout`))
      }, left)
      const onFailure = (cause: unknown) => {
        if (late) return
        clearTimeout(timer)
        if (cause instanceof SessionStoreError) {
          this.#onError(cause)
          reject(cause)
          return
        }
        const reason = cause instanceof Error ? cause.message : String(cause)
        reject(this.fail(operation, outcome, `${operation}: the store failed: ${reason}`, { cause }))
      }
      try {
        const call = this.#store[operation] as (...args: readonly unknown[]) => Promise<Answer<N>>
        Promise.resolve(call.apply(this.#store, args as unknown[])).then(answer => {
          if (late) return
          clearTimeout(timer)
          if (SOUND[operation](answer)) resolve(answer)
          else reject(this.fail(operation, outcome, `${operation}: the store answered nonsense (${typeof answer})`))
        }, onFailure)
      } catch (error) {
        onFailure(error)
      }
    })
  }
}
