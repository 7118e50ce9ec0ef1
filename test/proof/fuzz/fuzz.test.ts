// The short form, of a few inputs; `npm run proof -- fuzz [--inputs 1000000] [--seed 1] [target …]` searches for long. An input
// that went wrong joins the corpus of its target.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { spoilt } from './mutate.ts'
import { checkNoPollution, wordsOf } from './target.ts'
import { TARGETS } from './targets.ts'

const INPUTS = Number(process.env.COATCHECK_FUZZ_INPUTS ?? 500)
const WANTED = (process.env.COATCHECK_FUZZ_NAMES ?? '').split(' ').filter(Boolean)
const SEED = Number(process.env.COATCHECK_FUZZ_SEED || Date.now() % 2 ** 31)

it('what was asked for is a target', () => {
  expect(TARGETS.map(({ name }) => name)).toEqual(expect.arrayContaining(WANTED))
})

it.each(TARGETS.filter(({ name }) => WANTED.length === 0 || WANTED.includes(name)))(
  '$name agrees with its reference, throws nothing else, and changes nothing built in',
  { timeout: 24 * 3_600_000 },
  target => {
    const agrees = (input: string) => {
      target.check(input)
      checkNoPollution()
    }
    for (const input of ['', ...target.corpus]) agrees(input)
    fc.assert(fc.property(spoilt(target.corpus, wordsOf(target)), agrees), { numRuns: INPUTS, seed: SEED })
  },
)
