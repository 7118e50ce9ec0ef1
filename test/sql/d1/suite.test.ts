import { modelTest, testStore } from 'coatcheck/custom-store/testing'
import { D1Store } from 'coatcheck/stores/d1'
import fc from 'fast-check'
import { afterAll, it } from 'vitest'
import { describeEngine } from '../../support/services/engines.ts'
import { startD1 } from '../d1.ts'

// Each call is a request, some milliseconds of the machine, and the calls of a race come one after the other.
const LONG = { runs: 50, rounds: 12 }
const SHORT = { runs: 5, rounds: 2 }
const slow = (name: string, run: () => Promise<void>) => it(name, run, 120_000)

describeEngine('d1', 'the store for D1', () => {
  let d1: Awaited<ReturnType<typeof startD1>> | undefined
  afterAll(() => d1?.stop())

  const { runs, rounds } = process.env.COATCHECK_LONG === '1' ? LONG : SHORT
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
  testStore(slow, open, undefined, { corrupt, outage, runs, rounds })
  slow('behaves like the reference model', () => modelTest(fc, open, undefined, { runs }))
})
