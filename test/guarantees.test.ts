import { MemoryStore } from 'coatcheck/stores/memory'
import { testGuarantees } from './guarantees.ts'

testGuarantees(() => new MemoryStore())
