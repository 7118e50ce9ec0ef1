import type { Store } from '../contract/store.ts'
import { contents } from './contents.ts'
import { creating } from './creating.ts'
import { ending } from './ending.ts'
import { identities } from './identities.ts'
import { type Case, Kit, type TestStoreOptions } from './kit.ts'
import { compareWithModel } from './model.ts'
import { races } from './races.ts'
import { reading } from './reading.ts'
import { replacing } from './replacing.ts'
import { walking } from './walking.ts'
import { writing } from './writing.ts'

const likeTheModel: Case = {
  name: 'answers random sequences of calls as the reference model does',
  run: ({ store, seed, options: { runs = 50 } }) => compareWithModel(store, seed, runs),
}

const CASES: readonly Case[] = [
  ...creating,
  ...writing,
  ...replacing,
  ...ending,
  ...identities,
  ...contents,
  ...reading,
  ...walking,
  ...races,
  likeTheModel,
]

/**
 * Tests a store against the contract: one `it` per rule, each named by a sentence.
 *
 * ```ts
 * import { it } from 'node:test'
 * testStore(it, () => new MyStore())
 * ```
 *
 * The cases about `sweep`, `scan` and `count` pass if the store has no such method: these are optional.
 *
 * @param it - of any test runner
 * @param open - opens a store, once per case; all of them may be connections to one database, which need not be empty
 * @param close - closes it after the case; without it, nothing is closed
 */
export function testStore(
  it: (name: string, test: () => Promise<void>) => unknown,
  open: () => Store | Promise<Store>,
  close?: (store: Store) => unknown,
  options: TestStoreOptions = {},
): void {
  for (const { name, needs, run } of CASES) {
    if (needs === 'textUserIds' && options.textUserIds === false) continue
    if (needs === 'corrupt' && options.corrupt === undefined) continue
    if (needs === 'outage' && options.outage === undefined) continue
    it(name, async () => {
      const store = await open()
      try {
        await run(new Kit(store, options))
      } finally {
        await close?.(store)
      }
    })
  }
}
