import { modelTest, ReferenceStore, testStore } from 'coatcheck/custom-store/testing'
import { MemoryStore } from 'coatcheck/stores/memory'
import fc from 'fast-check'
import { describe, it } from 'vitest'

describe('the memory store', () => {
  testStore(it, () => new MemoryStore())
  it('behaves like the reference model', () => modelTest(fc, () => new MemoryStore()))
})

describe('the reference store', () => {
  testStore(it, () => new ReferenceStore())
})
