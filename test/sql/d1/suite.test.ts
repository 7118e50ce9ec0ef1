import { testStore } from 'coatcheck/custom-store/testing'
import { D1Store } from 'coatcheck/stores/d1'
import { afterAll, it } from 'vitest'
import { describeEngine } from '../../support/services/engines.ts'
import { startD1 } from '../d1.ts'

// Each call is a request, some milliseconds of the machine, and the calls of a race come one after the other. What is left
// out asks thousands of them, and is decided by statements that SQLite runs as well.
const LONG =
  /^counts to 100|^ends 1,200|^keeps text user IDs apart|^lets no login with the old|^answers 1,000|^shows many visitors|^meets in a walk|^lets a walk that ends/

describeEngine('d1', 'the store for D1', () => {
  let d1: Awaited<ReturnType<typeof startD1>> | undefined
  afterAll(() => d1?.stop())

  const open = async () => {
    d1 ??= await startD1()
    const stores = [new D1Store(d1.database), new D1Store(d1.database)] as const
    await stores[0].migrate()
    return stores
  }
  const corrupt = async (_: unknown, key: string) => {
    await d1?.run(`UPDATE coatcheck_sessions SET version = -1 WHERE id = '${key}'`)
  }
  const outage = async () => {
    await d1?.run('ALTER TABLE coatcheck_sessions RENAME TO elsewhere')
    return () => d1!.run('ALTER TABLE elsewhere RENAME TO coatcheck_sessions')
  }
  const short = (name: string, run: () => Promise<void>) => LONG.test(name) || it(name, run)
  testStore(short, open, undefined, { corrupt, outage, runs: 5, rounds: 2 })
})
