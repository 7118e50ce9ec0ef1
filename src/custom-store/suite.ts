import type { Store } from '../contract/store.ts'
import { type Connections, storesOf } from './connections.ts'
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

// Those that walk over all that is stored come before those that store much.
const CASES: readonly Case[] = [
  ...creating,
  ...writing,
  ...walking,
  likeTheModel,
  ...replacing,
  ...ending,
  ...identities,
  ...contents,
  ...reading,
  ...races,
]

/** Of a store that was tested over one connection. */
const ALONE =
  'coatcheck: what two processes do at once was not asked, since open() gave one store. Two on one database: open = () => [first, second]'

/**
 * Tests a store against the contract: one `it` per rule, each named by a sentence.
 *
 * ```ts
 * import { it } from 'node:test'
 * testStore(it, () => [new MyStore(connect()), new MyStore(connect())])
 * ```
 *
 * The cases about `sweep`, `scan` and `count` pass if the store has no such method: these are optional.
 *
 * @param it - of any test runner
 * @param open - opens a store over two connections to one database, whose calls alternate as those of two processes do, or
 *   over one, and then the last line says what was not asked. Called once per case; the database need not be empty
 * @param close - closes each of the stores after the case; without it, nothing is closed
 */
export function testStore(
  it: (name: string, test: () => Promise<void>) => unknown,
  open: () => Connections | Promise<Connections>,
  close?: (store: Store) => unknown,
  options: TestStoreOptions = {},
): void {
  const given = { ...options, textUserIds: options.textUserIds ?? true }
  const cases = CASES.filter(({ needs }) => needs === undefined || given[needs])
  for (const each of cases)
    it(each.name, async () => {
      const stores = storesOf(await open())
      try {
        await each.run(new Kit(stores, options))
      } finally {
        for (const store of new Set(stores)) await close?.(store)
        if (stores.length === 1 && each === cases.at(-1)) console.log(ALONE)
      }
    })
}
