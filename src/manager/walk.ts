// A walk over all that is stored, for operators: no request path comes here.
import type { ScanPage, SessionRecord } from '../contract/store.ts'
import type { UserIds } from '../session/user-id.ts'
import { namespaceOf } from '../session/users.ts'
import { type Rule, rule } from '../text/check-options.ts'
import { nextTurn } from '../time/next-turn.ts'
import type { AnyContext, Context } from './context.ts'
import { Recent } from './recent.ts'

/** How many entries a page has, unless told otherwise. */
export const PAGE = 500
/** How many store calls are under way at once: the requests of users come first. */
const WIDTH = 8
/** How many of the latest keys are kept, so that one which a store shows again is met once. */
const KEPT_KEYS = 10_000
const KEPT_TENANTS = 1000

/** By its shape: it may be another realm's. */
export const aSignal: Rule = rule('an AbortSignal', value => {
  const { aborted, addEventListener } = (value ?? {}) as Partial<AbortSignal>
  return typeof aborted === 'boolean' && typeof addEventListener === 'function'
})

/** @throws TypeError where the store cannot be walked over */
export function requireScan({ options }: AnyContext, verb: string): void {
  if (typeof options.store.scan !== 'function')
    throw new TypeError(
      `${verb}: this store has no scan, the verb of the contract that walks over all that is stored (see Store in 'coatcheck/custom-store')`,
    )
}

/**
 * The pages of a walk, each with a deadline of its own: a caller may take its time between them. `skew` ms before now is
 * when what is met has to be live.
 */
export async function* pagesOf(
  context: AnyContext,
  limit: number,
  signal: AbortSignal | undefined,
  skew = 0,
): AsyncGenerator<ScanPage, void, void> {
  let cursor: string | null = null
  for (;;) {
    if (signal?.aborted) throw signal.reason
    const call = { now: context.now() - skew, deadline: context.deadline() }
    const page: ScanPage = await context.calls.scan(cursor, limit, call)
    yield page
    cursor = page.next
    if (cursor === null) return
    // A store of this process answers within the turn: others must have the event loop too.
    await new Promise<void>(nextTurn)
  }
}

/** The live sessions that a manager may name: a tenant those of its users, the root all. */
export async function* recordsOf(
  context: AnyContext,
  limit: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<SessionRecord, void, void> {
  // What a store shows twice (Redis, where its table shrinks) it shows soon again.
  const met = new Recent<true>(Number.POSITIVE_INFINITY, KEPT_KEYS)
  for await (const { records } of pagesOf(context, limit, signal))
    for (const record of records) {
      if (record.kind !== 'session' || !(record.expiresAt > context.now()) || !isOwn(context, record.userId)) continue
      if (met.get(record.key, 0)) continue
      met.set(record.key, true, 0)
      yield record
    }
}

/** Whether a stored user is one of this manager's: the root has all, a tenant its own, and no visitor. */
export const isOwn = ({ namespace }: AnyContext, userId: string | null): boolean =>
  namespace === null || (userId !== null && namespaceOf(userId) === namespace)

/** The contexts of the tenants that are met on the way: events and user IDs are theirs. */
// biome-ignore lint/suspicious/noExplicitAny: most who end sessions look at no data
export class Tenants<D extends object = any, I extends UserIds = any> {
  readonly #root: Context<D, I>
  readonly #known = new Recent<Context<D, I>>(Number.POSITIVE_INFINITY, KEPT_TENANTS)

  constructor(root: Context<D, I>) {
    this.#root = root
  }

  of(userId: string | null): Context<D, I> {
    const namespace = userId === null ? null : namespaceOf(userId)
    if (namespace === null || namespace === this.#root.namespace) return this.#root
    const known = this.#known.get(namespace, 0)
    if (known !== undefined) return known
    const tenant = this.#root.tenant(namespace)
    this.#known.set(namespace, tenant, 0)
    return tenant
  }
}

/**
 * Runs through some items, a few at a time. After a failure none is begun, and those under way are waited for: where the
 * caller hears of it, nothing goes on.
 */
export async function eachOf<T>(items: readonly T[], run: (item: T) => Promise<unknown>): Promise<void> {
  const failures: unknown[] = []
  let begun = 0
  const take = async () => {
    while (begun < items.length && failures.length === 0) {
      const item = items[begun]!
      begun += 1
      await run(item).catch(error => failures.push(error))
    }
  }
  await Promise.all(Array.from({ length: Math.min(WIDTH, items.length) }, take))
  if (failures.length > 0) throw failures[0]
}
