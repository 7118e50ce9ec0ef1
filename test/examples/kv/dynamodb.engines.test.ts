// examples/kv-store.mjs over dynalite. What the database does not decide: test/examples/kv-store.test.ts.
import { describeEngine } from '../../support/services/engines.ts'
import { startDynalite } from '../../support/services/key-values.ts'
import { kvScenesOn } from './scenes.ts'

describeEngine('dynalite', 'a store over DynamoDB, as dynalite speaks it', () => kvScenesOn(startDynalite))
