import type { SessionRecord } from '../contract/store.ts'
import { checkOptions, type OptionsOf, wholeNumber } from '../text/check-options.ts'
import { aSignal, PAGE, recordsOf, requireScan, type Walker } from './walk.ts'

/** A page with sessions of 16 KiB each is 16 MB. */
const MAX_PAGE = 1000

type AllOptions = { signal?: AbortSignal | undefined; pageSize?: number | undefined }

const ALL: OptionsOf<AllOptions> = {
  where: 'all',
  rules: { signal: aSignal, pageSize: wholeNumber(1, MAX_PAGE) },
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
