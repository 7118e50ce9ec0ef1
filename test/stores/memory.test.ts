import { MemoryStore } from 'coatcheck/stores/memory'
import { testStore } from 'coatcheck/testing'
import { describe, it } from 'vitest'

describe('the memory store', () => {
  testStore(it, () => new MemoryStore())
})
