import { isReading, SessionStoreError, type StoreOperation } from '../contract/errors.ts'
import type { Forward, SessionRecord, Store, StoreCall } from '../contract/store.ts'
import { isThenable, within } from '../time/within.ts'

/** The manager always names a deadline. */
type Timed = StoreCall & { readonly deadline: number }
type Guarded<Method> = Method extends (...args: [...infer Given, StoreCall]) => infer Answer
  ? (...args: [...Given, Timed]) => Answer
  : never

/** The answer of `read`, taken apart; all `null` if nothing is live under the key. */
export interface Reading {
  readonly record: SessionRecord | null
  readonly forward: Forward | null
  /** Why the store has removed a damaged record. */
  readonly corrupt: string | null
}
const NOTHING: Reading = { record: null, forward: null, corrupt: null }

/** An incomplete record could pass for an expired one (a logout) or for another user's. */
const isWhole = (record: SessionRecord, key: string): boolean =>
  record.key === key &&
  (record.kind === 'session' || record.kind === 'remember') &&
  typeof record.data === 'string' &&
  typeof record.version === 'number' &&
  (record.userId === null || typeof record.userId === 'string') &&
  Number.isFinite(record.createdAt) &&
  Number.isFinite(record.seenAt) &&
  Number.isFinite(record.expiresAt) &&
  Number.isFinite(record.absoluteExpiresAt)

/** Sorts the answer of a store's `read`. @throws SessionStoreError for anything else */
function readingOf(key: string, answer: unknown): Reading {
  if (answer === null) return NOTHING
  if (typeof answer === 'object') {
    if (isWhole(answer as SessionRecord, key)) return { record: answer as SessionRecord, forward: null, corrupt: null }
    const { movedTo, salt, until, corrupt } = answer as Partial<Forward & { corrupt: string }>
    if (typeof corrupt === 'string') return { record: null, forward: null, corrupt }
    if (typeof movedTo === 'string' && typeof salt === 'string' && Number.isFinite(until))
      return { record: null, forward: answer as Forward, corrupt: null }
  }
  const message = `the store returned an invalid result for \`read\` (${typeof answer})`
  throw new SessionStoreError('read', 'not-applied', message)
}

const asItIs = <T>(answer: T) => answer

/** One count for all managers of a store, since its client holds the calls that are under way. */
const COUNTS = new WeakMap<Store, { count: number }>()

/** Options of a manager: the timeout in ms, and how many calls may be under way. */
type Limits = { readonly storeTimeout: number; readonly maxPendingCalls: number }

/**
 * The store behind a guard: each call ends by its deadline, and whatever goes wrong is a `SessionStoreError` (G7).
 * Deadlines are on the scale of `performance.now()`: the wall clock may jump.
 */
export class StoreCalls {
  readonly #store: Store
  readonly #limits: Limits
  readonly report: (error: SessionStoreError) => void
  /** The calls that the store has not settled, including those that were given up. */
  readonly underWay: { count: number }

  constructor(store: Store, limits: Limits, onError: (error: SessionStoreError) => void) {
    this.#store = store
    this.#limits = limits
    this.report = onError
    this.underWay = COUNTS.get(store) ?? { count: 0 }
    COUNTS.set(store, this.underWay)
  }

  /** The deadline of a manager's call that begins now. */
  deadline(): number {
    return performance.now() + this.#limits.storeTimeout
  }

  read(key: string, call: Timed): Reading | Promise<Reading> {
    return this.#ask(
      'read',
      call.deadline,
      () => this.#store.read(key, call),
      answer => readingOf(key, answer),
    )
  }
  readonly create = this.#guarded('create')
  readonly update = this.#guarded('update')
  readonly touch = this.#guarded('touch')
  readonly replace = this.#guarded('replace')
  readonly delete = this.#guarded('delete')
  readonly deleteUser = this.#guarded('deleteUser')
  readonly listUser = this.#guarded('listUser')
  readonly sweep = this.#guarded('sweep')
  readonly scan = this.#guarded('scan')
  readonly count = this.#guarded('count')

  async close(deadline: number): Promise<void> {
    if (this.#store.close) await this.#ask('close', deadline, () => this.#store.close!(), asItIs)
  }

  /** For errors outside a call, for example if time ran out in our own queue. */
  fail(...parts: ConstructorParameters<typeof SessionStoreError>): SessionStoreError {
    const error = new SessionStoreError(...parts)
    this.report(error)
    return error
  }

  #guarded<Name extends Exclude<StoreOperation, 'read' | 'close'>>(name: Name): Guarded<NonNullable<Store[Name]>> {
    const guarded = (...args: unknown[]) => {
      const { deadline } = args.at(-1) as Timed
      const method = this.#store[name] as (...args: unknown[]) => unknown
      return this.#ask(name, deadline, () => Promise.resolve(method.apply(this.#store, args)), asItIs)
    }
    return guarded as Guarded<NonNullable<Store[Name]>>
  }

  /** Answers at once if the store does: then nothing has to be waited for, and nothing can be late. */
  #ask<T, R>(
    operation: StoreOperation,
    deadline: number,
    run: () => T | PromiseLike<T>,
    accept: (answer: T) => R,
  ): R | Promise<R> {
    const refusal = this.#refusal(operation, deadline)
    if (refusal !== null) return Promise.reject(refusal)
    try {
      const answer = run()
      if (!isThenable(answer)) return accept(answer)
      const { underWay } = this
      underWay.count += 1
      return within(deadline, answer as PromiseLike<T>, {
        accept,
        failed: cause => this.#failure(operation, cause),
        late: () => this.#failure(operation, undefined, 'the store did not answer within storeTimeout'),
        settled: () => {
          underWay.count -= 1
        },
      })
    } catch (cause) {
      return Promise.reject(this.#failure(operation, cause))
    }
  }

  /** Why a call does not begin, or `null`. */
  #refusal(operation: StoreOperation, deadline: number): SessionStoreError | null {
    if (deadline <= performance.now())
      return this.fail(operation, 'not-applied', `${operation}: no time was left before storeTimeout`)
    const { count } = this.underWay
    // A store that hangs keeps every call as long as it hangs: more must not pile up.
    if (count >= this.#limits.maxPendingCalls && operation !== 'close')
      return this.fail(operation, 'not-applied', `${operation}: ${count} calls are under way (maxPendingCalls)`)
    return null
  }

  #failure(operation: StoreOperation, cause: unknown, message = 'the store failed'): SessionStoreError {
    if (!(cause instanceof SessionStoreError)) {
      const outcome = isReading(operation) ? 'not-applied' : 'unknown'
      return this.fail(operation, outcome, `${operation}: ${message}`, cause === undefined ? undefined : { cause })
    }
    this.report(cause)
    return cause
  }
}

// For methods that write more than once: a store says 'not-applied' about one call, but the caller has to know about all.
/**
 * Runs a step of a method whose earlier step was written.
 * @throws SessionStoreError with outcome 'unknown', whatever the step itself may have written
 */
export async function afterWrite<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    if (!(error instanceof SessionStoreError) || error.outcome === 'unknown') throw error
    // The guard has told it as an event already.
    throw new SessionStoreError(error.operation, 'unknown', error.message, { cause: error })
  }
}

/** Writes for each item, one after the other. @throws SessionStoreError with outcome 'unknown' from the second on */
export async function eachWrite<T>(items: Iterable<T>, write: (item: T) => Promise<unknown>): Promise<void> {
  let isFirst = true
  for (const item of items) {
    await (isFirst ? write(item) : afterWrite(() => write(item)))
    isFirst = false
  }
}
