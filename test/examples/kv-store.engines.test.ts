// examples/kv-store.mjs over databases. What the database does not decide: kv-store.test.ts.
import { afterAll } from 'vitest'
import { describeEngine } from '../support/services/engines.ts'
import { type KeyValues, openDenoKv, startDynalite } from '../support/services/key-values.ts'
import { kvScenes } from './kv/scenes.ts'

function scenesOn(start: () => Promise<KeyValues>) {
  let database: KeyValues
  afterAll(() => database?.stop())
  kvScenes(
    async () => {
      database = await start()
      return [await database.connect(), await database.connect()]
    },
    { runs: 3, rounds: 2 },
  )
}

describeEngine('deno kv', 'a store over Deno KV', () => scenesOn(openDenoKv))
describeEngine('dynalite', 'a store over DynamoDB, as dynalite speaks it', () => scenesOn(startDynalite))
