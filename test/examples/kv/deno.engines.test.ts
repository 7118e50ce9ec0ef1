// examples/kv-store.mjs over Deno KV. What the database does not decide: test/examples/kv-store.test.ts.
import { describeEngine } from '../../support/services/engines.ts'
import { openDenoKv } from '../../support/services/key-values.ts'
import { kvScenesOn } from './scenes.ts'

describeEngine('deno kv', 'a store over Deno KV', () => kvScenesOn(openDenoKv))
