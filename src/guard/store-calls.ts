import { isReading, SessionStoreError, type StoreOperation } from '../contract/errors.ts'
import type {
  CreateOptions,
  CreateResult,
  DeleteUserOptions,
  Forward,
  RecordChange,
  ReplaceResult,
  ScanPage,
  SessionRecord,
  Store,
  StoreCall,
} from '../contract/store.ts'
import { Deadlines, type Pending } from '../time/deadlines.ts'

type Answer<N extends keyof Store> = N extends 'read' ? Reading : Awaited<ReturnType<NonNullable<Store[N]>>>
/** The manager always names a deadline. */
type Timed = StoreCall & { readonly deadline: number }

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
/** Has what is decided by: a record with less would pass for an expired one, and an outage for a logout. */
const isSoundRecord = (answer: object): answer is SessionRecord => {
  const record = answer as Record<string, unknown>
  return (
    typeof record.key === 'string' &&
    (record.kind === 'session' || record.kind === 'remember') &&
    typeof record.data === 'string' &&
    typeof record.version === 'number' &&
    (record.userId === null || typeof record.userId === 'string') &&
    Number.isFinite(record.createdAt) &&
    Number.isFinite(record.seenAt) &&
    Number.isFinite(record.expiresAt) &&
    Number.isFinite(record.absoluteExpiresAt)
  )
}

/** One with less leads nowhere: a session that goes on would be absent. */
const isSoundForward = (answer: object): answer is Forward => {
  const forward = answer as Record<string, unknown>
  return typeof forward.movedTo === 'string' && typeof forward.salt === 'string' && Number.isFinite(forward.until)
}

const areRecords = (answer: unknown) =>
  Array.isArray(answer) && answer.every(record => isObject(record) && isSoundRecord(record))

/** What `read` found under a key; all `null` where nothing is live there. */
export interface Reading {
  readonly record: SessionRecord | null
  readonly forward: Forward | null
  /** What is wrong with a record that the store has removed. */
  readonly corrupt: string | null
}
const NOTHING: Reading = { record: null, forward: null, corrupt: null }

const NONSENSE = Symbol('nonsense')

/** Tells apart what a store's `read` answered. */
function readingOf(answer: unknown): Reading | typeof NONSENSE {
  if (answer === null) return NOTHING
  if (!isObject(answer)) return NONSENSE
  if ('key' in answer) return isSoundRecord(answer) ? { record: answer, forward: null, corrupt: null } : NONSENSE
  if ('movedTo' in answer) return isSoundForward(answer) ? { record: null, forward: answer, corrupt: null } : NONSENSE
  return typeof answer.corrupt === 'string' ? { record: null, forward: null, corrupt: answer.corrupt } : NONSENSE
}

const sound = (test: (answer: unknown) => boolean) => (answer: unknown) => (test(answer) ? answer : NONSENSE)

/** What the manager gets for the answer to each verb; what a store must not answer is no absent session. */
const ACCEPT: { readonly [N in StoreOperation]: (answer: unknown) => unknown } = {
  create: sound(answer => isObject(answer) && CREATED.has(answer.outcome) && Array.isArray(answer.ended)),
  read: readingOf,
  update: sound(answer => answer === 'updated' || answer === 'conflict' || answer === 'gone'),
  touch: sound(answer => answer === 'touched' || answer === 'gone'),
  replace: sound(answer => isObject(answer) && REPLACED.has(answer.outcome) && Array.isArray(answer.ended)),
  delete: sound(answer => typeof answer === 'boolean'),
  deleteUser: sound(isCount),
  listUser: sound(areRecords),
  sweep: sound(isCount),
  scan: sound(
    answer =>
      isObject(answer) &&
      areRecords(answer.records) &&
      Array.isArray(answer.forwards) &&
      answer.forwards.every(key => typeof key === 'string') &&
      (answer.next === null || typeof answer.next === 'string'),
  ),
  count: sound(isCount),
  close: sound(() => true),
}

function accept(operation: StoreOperation, answer: unknown): unknown {
  try {
    return ACCEPT[operation](answer)
  } catch {
    return NONSENSE // a proxy, or a getter that throws
  }
}

/** One count for all managers of a store: it is the store's client that keeps what is under way. */
const COUNTS = new WeakMap<Store, { count: number }>()

/**
 * The store behind a guard: each call ends by its deadline, and whatever goes wrong is a `SessionStoreError` (G7).
 * Deadlines are on the scale of `performance.now()`: the wall clock may jump.
 */
export class StoreCalls {
  readonly #store: Store
  readonly #timeout: number
  readonly #maxPending: number
  readonly report: (error: SessionStoreError) => void
  readonly deadlines = new Deadlines()
  /** The calls that the store has not settled, those that were given up included. */
  readonly underWay: { count: number }

  constructor(
    store: Store,
    { storeTimeout, maxPendingCalls }: { storeTimeout: number; maxPendingCalls: number },
    onError: (error: SessionStoreError) => void,
  ) {
    this.#store = store
    this.#timeout = storeTimeout
    this.#maxPending = maxPendingCalls
    this.report = onError
    this.underWay = COUNTS.get(store) ?? { count: 0 }
    COUNTS.set(store, this.underWay)
  }

  /** The deadline of a manager's call that begins now. */
  deadline(): number {
    return performance.now() + this.#timeout
  }

  /** At once where the store answers at once: then there is nothing to wait for, and nothing that could be late. */
  read(key: string, call: Timed): Reading | Promise<Reading> {
    const refusal = this.#refusal('read', call.deadline)
    if (refusal !== null) return Promise.reject(refusal)
    let answer: unknown
    try {
      answer = this.#store.read(key, call)
      // Of a promise it makes nothing.
      const reading = readingOf(answer)
      if (reading !== NONSENSE) return reading
    } catch (cause) {
      answer = Promise.reject(cause)
    }
    return this.#wait('read', call.deadline, answer)
  }
  create(record: SessionRecord, options: CreateOptions, call: Timed): Promise<CreateResult> {
    return this.#guard('create', call.deadline, [record, options, call])
  }
  update(key: string, version: number, change: RecordChange, call: Timed): Promise<Answer<'update'>> {
    return this.#guard('update', call.deadline, [key, version, change, call])
  }
  touch(key: string, seenAt: number, expiresAt: number, call: Timed): Promise<Answer<'touch'>> {
    return this.#guard('touch', call.deadline, [key, seenAt, expiresAt, call])
  }
  replace(
    oldKey: string,
    oldVersion: number,
    record: SessionRecord,
    options: CreateOptions,
    call: Timed,
  ): Promise<ReplaceResult> {
    return this.#guard('replace', call.deadline, [oldKey, oldVersion, record, options, call])
  }
  delete(key: string, call: Timed): Promise<boolean> {
    return this.#guard('delete', call.deadline, [key, call])
  }
  deleteUser(userId: string, options: DeleteUserOptions, call: Timed): Promise<number> {
    return this.#guard('deleteUser', call.deadline, [userId, options, call])
  }
  listUser(userId: string, kind: SessionRecord['kind'], call: Timed): Promise<SessionRecord[]> {
    return this.#guard('listUser', call.deadline, [userId, kind, call])
  }
  sweep(limit: number, call: Timed): Promise<number> {
    return this.#guard('sweep', call.deadline, [limit, call])
  }
  scan(cursor: string | null, limit: number, call: Timed): Promise<ScanPage> {
    return this.#guard('scan', call.deadline, [cursor, limit, call])
  }
  count(call: Timed): Promise<number> {
    return this.#guard('count', call.deadline, [call])
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
    this.report(error)
    return error
  }

  #guard<N extends StoreOperation>(operation: N, deadline: number, args: readonly unknown[]): Promise<Answer<N>> {
    const refusal = this.#refusal(operation, deadline)
    if (refusal !== null) return Promise.reject(refusal)
    let answer: unknown
    try {
      const verb = this.#store[operation] as (...args: readonly unknown[]) => unknown
      answer = verb.apply(this.#store, args as unknown[])
    } catch (cause) {
      answer = Promise.reject(cause)
    }
    return this.#wait(operation, deadline, answer)
  }

  /** Why a call does not begin, or `null`. */
  #refusal(operation: StoreOperation, deadline: number): SessionStoreError | null {
    if (deadline <= performance.now())
      return this.fail(operation, 'not-applied', `${operation}: no time was left before storeTimeout`)
    const { count } = this.underWay
    // A store that hangs keeps what it was asked for as long as it hangs: more of it must not pile up.
    if (count >= this.#maxPending && operation !== 'close')
      return this.fail(operation, 'not-applied', `${operation}: ${count} calls are under way (maxPendingCalls)`)
    return null
  }

  /** What the store answers, or a `SessionStoreError` by the deadline. */
  #wait<N extends StoreOperation>(operation: N, deadline: number, answer: unknown): Promise<Answer<N>> {
    return new Promise((resolve, reject) => {
      const call = new Call(this, operation, resolve, reject, deadline)
      this.deadlines.add(call)
      this.underWay.count += 1
      Promise.resolve(answer).then(
        value => call.answer(value),
        cause => call.fail(cause),
      )
    })
  }
}

/** One call of the store. Once it is given up it holds on to nothing, since the store may hold on to it for long. */
class Call<N extends StoreOperation> implements Pending {
  readonly deadline: number
  place = -1
  readonly #calls: StoreCalls
  readonly #operation: N
  #resolve: ((answer: Answer<N>) => void) | null
  #reject: ((error: SessionStoreError) => void) | null

  constructor(
    calls: StoreCalls,
    operation: N,
    resolve: (answer: Answer<N>) => void,
    reject: (error: SessionStoreError) => void,
    deadline: number,
  ) {
    this.#calls = calls
    this.#operation = operation
    this.#resolve = resolve
    this.#reject = reject
    this.deadline = deadline
  }

  answer(answer: unknown): void {
    const { deadlines, underWay } = this.#calls
    underWay.count -= 1
    if (!deadlines.close(this)) return
    const accepted = accept(this.#operation, answer)
    if (accepted !== NONSENSE) this.#resolve!(accepted as Answer<N>)
    else this.#refuse(`the store answered nonsense (${typeof answer})`)
    this.#release()
  }

  fail(cause: unknown): void {
    const { deadlines, underWay } = this.#calls
    underWay.count -= 1
    if (!deadlines.close(this)) return
    if (cause instanceof SessionStoreError) {
      this.#calls.report(cause)
      this.#reject!(cause)
    } else this.#refuse('the store failed', { cause })
    this.#release()
  }

  late(): void {
    this.#refuse('the store did not answer within storeTimeout')
    this.#release()
  }

  #refuse(message: string, options?: { cause: unknown }): void {
    const operation = this.#operation
    const outcome = isReading(operation) ? 'not-applied' : 'unknown'
    this.#reject!(this.#calls.fail(operation, outcome, `${operation}: ${message}`, options))
  }

  #release(): void {
    this.#resolve = null
    this.#reject = null
  }
}
