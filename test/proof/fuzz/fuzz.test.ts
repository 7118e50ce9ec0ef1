// The short form runs with the suite; `npm run proof -- fuzz [--inputs 1000000] [target …]` searches for long.
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { mutated } from './mutate.ts'
import { search } from './search.ts'
import { checkNoPollution, type Target } from './target.ts'
import { TARGETS } from './targets.ts'

/** Inputs that once went wrong, by target and by name: they always run. */
const SEEDS: Record<string, Record<string, string>> = JSON.parse(
  readFileSync(new URL('seeds.json', import.meta.url), 'utf8'),
)
const corpusOf = ({ name, corpus }: Target) => [...corpus, ...Object.values(SEEDS[name] ?? {})]

const INPUTS = Number(process.env.COATCHECK_FUZZ_INPUTS ?? 0)
const WANTED = (process.env.COATCHECK_FUZZ_TARGETS ?? '').split(' ').filter(Boolean)
const SEED = Number(process.env.COATCHECK_FUZZ_SEED ?? Date.now() % 2 ** 31)

/** A word of the corpus with mutations, as fast-check draws, prints and shrinks it. */
function texts(target: Target): fc.Arbitrary<string> {
  const words = fc.constantFrom(...corpusOf(target))
  const number = fc.nat(0xffff)
  const mutations = fc.array(fc.tuple(number, number, number), { minLength: 1, maxLength: 6 })
  return fc.tuple(words, words, mutations).map(([text, other, all]) => mutated(text, other, all, target.tokens))
}

describe.runIf(INPUTS === 0)('the fuzzed readers', () => {
  it('have names of their own, and seeds belong to one of them', () => {
    const names = TARGETS.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    for (const name of Object.keys(SEEDS)) expect(names).toContain(name)
  })

  describe.each(TARGETS.map(target => [target.name, target] as const))('%s', (_, target) => {
    it('agrees with its reference on the corpus and on every input that once went wrong', async () => {
      for (const input of ['', ...corpusOf(target)]) {
        await target.check(input)
        checkNoPollution()
      }
    })

    it('agrees with its reference on mutations of the corpus, throws nothing else, and changes nothing built in', () =>
      fc.assert(
        fc.asyncProperty(texts(target), async input => {
          await target.check(input)
          checkNoPollution()
        }),
        { numRuns: 500 },
      ))
  })
})

describe.runIf(INPUTS > 0)(`${INPUTS} inputs each`, () => {
  const wanted = TARGETS.filter(({ name }) => WANTED.length === 0 || WANTED.includes(name))
  it('has the targets that were asked for', () =>
    expect(WANTED.filter(name => wanted.every(target => target.name !== name))).toEqual([]))

  it.each(wanted.map(target => [target.name, target] as const))(
    '%s',
    async (name, target) => {
      const { kinds, seconds } = await search(target, corpusOf(target), INPUTS, SEED)
      console.log(`| \`${name}\` | ${target.reads} | ${INPUTS} | ${kinds} | ${seconds.toFixed(0)} s | seed ${SEED}`)
    },
    24 * 3_600_000,
  )
})
