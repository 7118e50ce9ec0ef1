// Histories of one browser that are drawn by lot, and a thief, at two nodes whose clocks differ: what the requests of one moment
// answer must be what a small reference answers to them in some order (test/support/remember-model.ts).
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it } from 'vitest'
import { checkRemember } from '../support/remember-model.ts'

it('whatever a browser and a thief send, and in whichever order it is stored, the answers are those of the reference', async () => {
  await checkRemember(() => new MemoryStore(), 300)
}, 120_000)

it('a store that keeps the token which was used before is found out by the reference', async () => {
  /** Says that a series was rotated, and keeps it as it was. */
  class Forgetful extends MemoryStore {
    override async update() {
      return 'updated' as const
    }
  }
  await expect(checkRemember(() => new Forgetful(), 500)).rejects.toThrow(/^Property failed after/)
}, 120_000)
