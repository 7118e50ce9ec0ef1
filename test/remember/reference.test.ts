import { MemoryStore } from 'coatcheck/stores/memory'
import { it } from 'vitest'
import { checkRemember } from '../support/remember-model.ts'

it(
  '3,000 random schedules of a browser, a thief, lost responses and the clock answer as the reference does',
  () => checkRemember(() => new MemoryStore(), 3000),
  120_000,
)
