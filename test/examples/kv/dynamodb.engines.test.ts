// examples/kv-store.mjs over dynalite. What the database does not decide: test/examples/kv-store.test.ts.
import { describeEngine } from '../../support/services/engines.ts'
import { startDynalite } from '../../support/services/key-values.ts'
import { kvScenesOn } from './scenes.ts'

// Six thousand requests to it take half a minute; the scenes log 200 in.
const CROWDS = /^answers 1,000 and 5,000|^ends 1,200 sessions/
describeEngine('dynalite', 'a store over DynamoDB, as dynalite speaks it', () => kvScenesOn(startDynalite, CROWDS))
