// The stores that the regressions are asked of: memory, and one real server or file of each kind.

import type { Store } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe } from 'vitest'
import { onRealStores } from '../../support/real-stores.ts'

/** Runs the tests on memory and on each server; a missing one is skipped by name. */
export function onEachStore(tests: (open: () => Store) => void): void {
  describe('in memory', () => tests(() => new MemoryStore()))
  onRealStores(store => `on ${store}`, tests)
}
