import { Deadlines } from './deadlines.ts'
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
/** Has what is decided by: a record with less would pass for an expired one, and an outage for a log-out. */
const isSoundRecord = (answer: Record<string, unknown>) =>
  typeof answer.key === 'string' &&
  (answer.kind === 'session' || answer.kind === 'remember') &&
  typeof answer.data === 'string' &&
  typeof answer.version === 'number' &&
  (answer.userId === null || typeof answer.userId === 'string') &&
  Number.isFinite(answer.createdAt) &&
  Number.isFinite(answer.seenAt) &&
  Number.isFinite(answer.expiresAt) &&
  Number.isFinite(answer.absoluteExpiresAt)

/** What each verb may answer; anything else is a broken store, not an absent session. */
const SOUND: { readonly [N in StoreOperation]: (answer: unknown) => boolean } = {
  create: answer => isObject(answer) && CREATED.has(answer.outcome) && Array.isArray(answer.ended),
  read: answer =>
    answer === null ||
    (isObject(answer) && ('key' in answer ? isSoundRecord(answer) : 'movedTo' in answer || 'corrupt' in answer)),
  update: answer => answer === 'updated' || answer === 'conflict' || answer === 'gone',
  touch: answer => answer === 'touched' || answer === 'gone',
  replace: answer => isObject(answer) && REPLACED.has(answer.outcome) && Array.isArray(answer.ended),
  delete: answer => typeof answer === 'boolean',
  deleteUser: isCount,
  listUser: answer => Array.isArray(answer) && answer.every(record => isObject(record) && isSoundRecord(record)),
  sweep: isCount,
  close: () => true,
}

/** Nothing can have been written by these, whatever went wrong. */
const isReading = (operation: StoreOperation) => operation === 'read' || operation === 'listUser'

export const isRecord = (answer: SessionRecord | Forward | Corrupt): answer is SessionRecord => 'key' in answer
export const isForward = (answer: SessionRecord | Forward | Corrupt): answer is Forward => 'movedTo' in answer

function isSound(operation: StoreOperation, answer: unknown): boolean {
  try {
    return SOUND[operation](answer)
  } catch {
    return false // a proxy, or a getter that throws
  }
}

/**
 * The store behind a guard: each call ends by its deadline, and whatever goes wrong is a `SessionStoreError` (G7).
 * Deadlines are on the scale of `performance.now()`: the wall clock may jump.
 */
export class StoreCalls {
  readonly #store: Store
  readonly #timeout: number
  readonly #onError: (error: SessionStoreError) => void
  readonly #deadlines = new Deadlines()

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

  async close(deadline: number): Promise<void> {
    if (this.#store.close) await this.#guard('close', deadline, [])
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

  #guard<N extends StoreOperation>(operation: N, deadline: number, args: readonly unknown[]): Promise<Answer<N>> {
    if (deadline <= performance.now())
      return Promise.reject(this.fail(operation, 'not-applied', `${operation}: no time was left before storeTimeout`))
    return new Promise((resolve, reject) => {
      const deadlines = this.#deadlines
      const fail = (message: string, options?: { cause: unknown }) =>
        reject(
          this.fail(operation, isReading(operation) ? 'not-applied' : 'unknown', `${operation}: ${message}`, options),
        )
      const pending = deadlines.open(deadline, () => fail('the store did not answer within storeTimeout'))
      const onFailure = (cause: unknown) => {
        if (!deadlines.close(pending)) return
        if (cause instanceof SessionStoreError) {
          this.#onError(cause)
          reject(cause)
        } else fail('the store failed', { cause })
      }
      const onAnswer = (answer: Answer<N>) => {
        if (!deadlines.close(pending)) return
        if (isSound(operation, answer)) resolve(answer)
        else fail(`the store answered nonsense (${typeof answer})`)
      }
      try {
        const verb = this.#store[operation] as (...args: readonly unknown[]) => Promise<Answer<N>>
        Promise.resolve(verb.apply(this.#store, args as unknown[])).then(onAnswer, onFailure)
      } catch (error) {
        onFailure(error)
      }
    })
  }
}
