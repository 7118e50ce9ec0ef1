// For a client or a server whose relative runs the whole suite of `coatcheck/custom-store`: a part of it.
import { testStore } from 'coatcheck/custom-store/testing'
import { it } from 'vitest'
import { clientCases } from '../support/client-cases.ts'
import type { SqlStore } from './databases.ts'

interface Subject {
  /** Two stores with a connection each, or one. */
  readonly stores: SqlStore | readonly [SqlStore, SqlStore]
  run(sql: string): Promise<unknown>
}

/**
 * Declares that part, or what `test` makes of the whole; without `long` what takes seconds where all share one connection is
 * left out.
 */
export function partOfTheSuite(
  get: () => Subject,
  { long = true, test = clientCases(it, { long }) }: { long?: boolean; test?: Parameters<typeof testStore>[0] } = {},
): void {
  const open = async () => {
    const { stores } = get()
    for (const store of [stores].flat() as SqlStore[]) await store.migrate()
    return stores
  }
  const corrupt = async (_: unknown, key: string) => {
    await get().run(`UPDATE coatcheck_sessions SET version = -1 WHERE id = '${key}'`)
  }
  const outage = async () => {
    const { run } = get()
    await run('ALTER TABLE coatcheck_sessions RENAME TO elsewhere')
    return () => run('ALTER TABLE elsewhere RENAME TO coatcheck_sessions')
  }
  testStore(test, open, undefined, { corrupt, outage, runs: 5, rounds: 3 })
}
