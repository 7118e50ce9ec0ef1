// A walk over all that is stored, for operators: no request comes here.
import type { ScanPage, SessionRecord, Store } from '../contract/store.ts'
import type { StoreCalls } from '../guard/store-calls.ts'
import { namespaceOf } from '../session/users.ts'
import { type Rule, rule } from '../text/check-options.ts'
import { nextTurn } from '../time/next-turn.ts'

/** How many entries a page has, unless told otherwise. */
export const PAGE = 500
/** How many store calls are under way at once: the requests of users come first. */
const WIDTH = 8

/** The part of a manager that a walk needs. */
export interface Walker {
  readonly options: { readonly store: Store }
  readonly calls: StoreCalls
  readonly namespace: string | null
  now(): number
  /** For calls that begin now: the last argument of each. */
  begin(): { call(now?: number): { readonly now: number; readonly deadline: number } }
}

/** By its shape: it may be another realm's. */
export const aSignal: Rule = rule('an AbortSignal', value => {
  const { aborted, addEventListener } = (value ?? {}) as Partial<AbortSignal>
  return typeof aborted === 'boolean' && typeof addEventListener === 'function'
})

/** @throws TypeError if the store cannot be walked over */
export function requireScan({ options }: Walker, method: string): void {
  if (typeof options.store.scan !== 'function')
    throw new TypeError(
      `${method}: this store has no scan, the method of the contract that walks over all that is stored (see Store in 'coatcheck/custom-store')`,
    )
}

/**
 * The pages of a walk, each with its own deadline: a caller may take its time between them. `now`: of a clock that stands
 * still; `first`: for whose first page the time has begun.
 */
export async function* pagesOf(
  walker: Walker,
  limit: number,
  signal: AbortSignal | undefined,
  now?: number,
  first = walker.begin(),
): AsyncGenerator<ScanPage, void, void> {
  let cursor: string | null = null
  for (let begun = first; ; begun = walker.begin()) {
    if (signal?.aborted) throw signal.reason
    const page: ScanPage = await walker.calls.scan(cursor, limit, begun.call(now))
    yield page
    cursor = page.next
    if (cursor === null) return
    // A store of this process answers within the turn: others must have the event loop too.
    await new Promise<void>(nextTurn)
  }
}

/** The live sessions that a manager may name: a namespace those of its users, the root all. */
export async function* recordsOf(
  walker: Walker,
  limit: number,
  signal: AbortSignal | undefined,
  first = walker.begin(),
): AsyncGenerator<SessionRecord, void, void> {
  // A store that shows an entry twice (Redis, while its table shrinks) does so within two pages.
  let before = new Set<string>()
  for await (const { records } of pagesOf(walker, limit, signal, undefined, first)) {
    const met = new Set<string>()
    for (const record of records) {
      const { key, kind, expiresAt, userId } = record
      if (kind !== 'session' || !(expiresAt > walker.now()) || !isOwn(walker, userId)) continue
      if (before.has(key) || met.has(key)) continue
      met.add(key)
      if (signal?.aborted) throw signal.reason
      yield record
    }
    before = met
  }
}

/** Whether a stored user is one of this manager's: the root has all, a namespace its own, and no visitor. */
export const isOwn = ({ namespace }: Walker, userId: string | null): boolean =>
  namespace === null || (userId !== null && namespaceOf(userId) === namespace)

/**
 * Runs through some items, a few at a time. After a failure none is begun, and those under way are waited for: when the
 * caller hears of it, nothing goes on.
 */
export async function eachOf<T>(items: Iterable<T>, run: (item: T) => Promise<unknown>): Promise<void> {
  const failures: unknown[] = []
  const left = items[Symbol.iterator]()
  const take = async () => {
    for (let next = left.next(); !next.done && failures.length === 0; next = left.next())
      await run(next.value).catch(error => failures.push(error))
  }
  await Promise.all(Array.from({ length: WIDTH }, take))
  if (failures.length > 0) throw failures[0]
}
