import { MemoryStore } from 'coatcheck/stores/memory'
import { testGuarantees } from './all.ts'

testGuarantees(() => new MemoryStore())
