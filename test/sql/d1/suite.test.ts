import { D1Store } from 'coatcheck/stores/d1'
import { it } from 'vitest'
import { describeEngine } from '../../support/services/engines.ts'
import { started } from '../../support/started.ts'
import { startD1 } from '../d1.ts'
import { partOfTheSuite } from '../suite.ts'

// Each call is a request, some milliseconds of the machine, and the calls of a race come one after the other. What is left
// out asks thousands of them, and is decided by statements that SQLite runs as well.
const LONG =
  /^counts to 100|^ends 1,200|^keeps text user IDs apart|^lets no login with the old|^answers 1,000|^shows many visitors|^meets in a walk|^lets a walk that ends/

describeEngine('d1', 'the store for D1', () => {
  const d1 = started(startD1)
  partOfTheSuite(() => ({ stores: [new D1Store(d1().database), new D1Store(d1().database)], run: d1().run }), {
    test: (name, run) => LONG.test(name) || it(name, run),
  })
})
