import { modelTest, ReferenceStore, testStore } from 'coatcheck/custom-store/testing'
import { MemoryStore } from 'coatcheck/stores/memory'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { asTwo } from '../support/as-two.ts'

describe('the memory store', () => {
  testStore(it, () => asTwo(new MemoryStore()))
  it('behaves like the reference model', () => modelTest(fc, () => new MemoryStore()))
})

describe('the reference store', () => {
  testStore(it, () => asTwo(new ReferenceStore()))
})
