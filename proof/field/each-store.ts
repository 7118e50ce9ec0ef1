// The stores that the regressions are asked of: memory, and one real server or file of each kind.
import { describe } from 'vitest'
import type { Store } from '../../src/contract/store.ts'
import { MemoryStore } from '../../stores/memory.ts'
import { onRealStores } from '../../test/support/real-stores.ts'

/** Runs the tests on memory and on each server; a missing one is skipped by name. */
export function onEachStore(tests: (open: () => Store) => void): void {
  describe('in memory', () => tests(() => new MemoryStore()))
  onRealStores(store => `on ${store}`, tests)
}
