import { MemoryStore } from 'coatcheck/stores/memory'
import { testGuarantees } from '../support/guarantees.ts'

testGuarantees(() => new MemoryStore())
