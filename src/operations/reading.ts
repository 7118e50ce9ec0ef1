// What operators read: no request comes here.
import { SessionStoreError } from '../contract/errors.ts'
import type { SessionRecord } from '../contract/store.ts'
import { checkOptions, type OptionsOf, wholeNumber } from '../text/check-options.ts'
import { aSignal, PAGE, recordsOf, requireScan, type Walker } from './walk.ts'

/** A page with sessions of 16 KiB each is 16 MB. */
const MAX_PAGE = 1000

type CountOptions = { signal?: AbortSignal | undefined }
type AllOptions = CountOptions & { pageSize?: number | undefined }

const COUNT: OptionsOf<CountOptions> = { where: 'count', rules: { signal: aSignal } }
const ALL: OptionsOf<AllOptions> = {
  where: 'all',
  rules: { ...COUNT.rules, pageSize: wholeNumber(1, MAX_PAGE) },
}

/** Checks the options at once, and asks the store when the first session is wanted. */
export function allSessions<Stored>(
  walker: Walker,
  options: AllOptions,
  storedOf: (record: SessionRecord) => Stored | null,
): AsyncGenerator<Stored, void, void> {
  checkOptions(ALL, options)
  requireScan(walker, 'all')
  const { pageSize = PAGE, signal } = options
  return (async function* () {
    for await (const record of recordsOf(walker, pageSize, signal)) {
      const stored = storedOf(record)
      if (stored !== null) yield stored
    }
  })()
}

/** How many live sessions there are; of a namespace, those of its users. */
export async function countSessions(walker: Walker, options: CountOptions): Promise<number> {
  checkOptions(COUNT, options)
  const { signal } = options
  if (signal?.aborted) throw signal.reason
  const { store } = walker.options
  const begun = walker.begin()
  // Only a walk tells which namespace a session belongs to.
  if (walker.namespace === null && typeof store.count === 'function') {
    try {
      const { now, deadline } = begun.call()
      return await walker.calls.count({ now, deadline: (deadline + performance.now()) / 2 })
    } catch (error) {
      // One command may be too slow for many millions, while each page is not. In an outage the first page fails too, in the
      // time that is left.
      if (!(error instanceof SessionStoreError) || typeof store.scan !== 'function') throw error
    }
  }
  requireScan(walker, 'count')
  let count = 0
  for await (const _ of recordsOf(walker, PAGE, signal, begun)) count += 1
  return count
}
