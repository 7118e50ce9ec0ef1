import { SessionStoreError } from '../contract/errors.ts'
import { checkOptions, type OptionsOf } from '../text/check-options.ts'
import { aSignal, PAGE, recordsOf, requireScan, type Walker } from './walk.ts'

type CountOptions = { signal?: AbortSignal | undefined }

const COUNT: OptionsOf<CountOptions> = { where: 'count', rules: { signal: aSignal } }

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
      return await walker.calls.count({ now, deadline: deadline - (deadline - performance.now()) / 2 })
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
