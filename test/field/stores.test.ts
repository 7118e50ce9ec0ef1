import { MemoryStore } from 'coatcheck/stores/memory'
import { describe } from 'vitest'
import { regressions } from './stores.ts'

describe('regressions of the field, in memory', () => regressions(() => new MemoryStore()))
