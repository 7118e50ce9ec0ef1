// For a client or a server whose relative runs the whole suite of `coatcheck/custom-store`: a part of it.
import { testStore } from 'coatcheck/custom-store/testing'
import { it } from 'vitest'
import { clientCases } from '../support/client-cases.ts'
import { damages } from '../support/sql/backend.ts'
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
  testStore(test, open, undefined, { ...damages(sql => get().run(sql)), runs: 5, rounds: 3 })
}
