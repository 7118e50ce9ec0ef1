// What operators ask about all sessions.
import { SessionStoreError } from '../contract/errors.ts'
import type { StoredSession } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import { checkOptions, type OptionPlace, wholeNumber } from '../text/check-options.ts'
import type { AnyContext, Context } from './context.ts'
import { aSignal, PAGE, recordsOf, requireScan, Tenants } from './walk.ts'

/** A page with sessions of 16 KiB each is 16 MB. */
const MAX_PAGE = 1000

interface CountOptions {
  readonly signal?: AbortSignal | undefined
}

interface AllOptions {
  readonly signal?: AbortSignal | undefined
  readonly pageSize?: number | undefined
}

const COUNT: OptionPlace<CountOptions> = { where: 'count', rules: { signal: aSignal } }
const ALL: OptionPlace<AllOptions> = {
  where: 'all',
  rules: { signal: aSignal, pageSize: wholeNumber(1, MAX_PAGE) },
}

/** How many live sessions there are; of a tenant, those of its users. */
export async function countSessions(context: AnyContext, options: CountOptions): Promise<number> {
  checkOptions(COUNT, options)
  const { signal } = options
  if (signal?.aborted) throw signal.reason
  const { store } = context.options
  // Only a walk tells which tenant a session belongs to.
  if (context.namespace === null && typeof store.count === 'function') {
    try {
      return await context.calls.count({ now: context.now(), deadline: context.deadline() })
    } catch (error) {
      // One command may be too slow for many millions, where each page is not. In an outage the first page fails too.
      if (!(error instanceof SessionStoreError) || typeof store.scan !== 'function') throw error
    }
  }
  requireScan(context, 'count')
  let count = 0
  for await (const _ of recordsOf(context, PAGE, signal)) count += 1
  return count
}

/** Checks the options at once, and asks the store when the first session is wanted. */
export function allSessions<D extends object, I extends UserIds>(
  context: Context<D, I>,
  options: AllOptions,
): AsyncGenerator<StoredSession<D, I>, void, void> {
  checkOptions(ALL, options)
  requireScan(context, 'all')
  return listed(context, options.pageSize ?? PAGE, options.signal)
}

async function* listed<D extends object, I extends UserIds>(
  context: Context<D, I>,
  pageSize: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<StoredSession<D, I>, void, void> {
  const tenants = new Tenants<D, I>(context)
  for await (const record of recordsOf(context, pageSize, signal)) {
    const tenant = tenants.of(record.userId)
    // Another kind of user ID, of another application: `get` would find no session there either.
    if (record.userId !== null && tenant.userIdOf(record) === null) continue
    if (signal?.aborted) throw signal.reason
    yield tenant.stored(record)
  }
}
