// Histories drawn by lot; `COATCHECK_PROOF=long` draws more of them.
import { expect, it } from 'vitest'
import { browse } from './random-browser.ts'

const HISTORIES = process.env.COATCHECK_PROOF === 'long' ? 2000 : 60
const seeds = Array.from({ length: HISTORIES }, (_, index) => index + 1)

it('an honest browser that loses answers is never a visitor, never a thief, and has three sessions at most', async () => {
  for (const seed of seeds) {
    const { nobody, thefts, most } = await browse(seed, false)
    expect({ nobody, thefts }, `seed ${seed}`).toEqual({ nobody: 0, thefts: 0 })
    expect(most, `seed ${seed}`).toBeLessThanOrEqual(3)
  }
}, 600_000)

it('a thief and the browser do not both go on with tokens of one series', async () => {
  for (const seed of seeds) expect((await browse(seed, true)).isShared, `seed ${seed}`).toBe(false)
}, 600_000)
