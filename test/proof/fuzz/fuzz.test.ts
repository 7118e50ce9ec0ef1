// The short form, of a few inputs; `npm run proof -- fuzz [--inputs 1000000] [--seed 1] [target …]` searches for long.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { search } from './search.ts'
import { checkNoPollution } from './target.ts'
import { TARGETS } from './targets.ts'

/** Inputs that once went wrong, by target and by name: they always run. */
const SEEDS: Record<string, Record<string, string>> = JSON.parse(
  readFileSync(new URL('seeds.json', import.meta.url), 'utf8'),
)
const INPUTS = Number(process.env.COATCHECK_FUZZ_INPUTS ?? 500)
const WANTED = (process.env.COATCHECK_FUZZ_TARGETS ?? '').split(' ').filter(Boolean)
const SEED = Number(process.env.COATCHECK_FUZZ_SEED ?? Date.now() % 2 ** 31)
const names = TARGETS.map(({ name }) => name)

it('targets have names of their own; what was asked for, and each seed, is of one of them', () => {
  expect(new Set(names).size).toBe(names.length)
  for (const name of [...Object.keys(SEEDS), ...WANTED]) expect(names).toContain(name)
})

it.each(TARGETS.filter(({ name }) => WANTED.length === 0 || WANTED.includes(name)))(
  '$name agrees with its reference, throws nothing else, and changes nothing built in',
  { timeout: 24 * 3_600_000 },
  async target => {
    const corpus = [...target.corpus, ...Object.values(SEEDS[target.name] ?? {})]
    for (const input of ['', ...corpus]) {
      await target.check(input)
      checkNoPollution()
    }
    const { kinds, seconds } = await search(target, corpus, INPUTS, SEED)
    if (INPUTS > 500)
      console.log(`${target.name}: ${INPUTS} inputs, ${kinds} kinds, ${Math.round(seconds)} s, seed ${SEED}`)
  },
)
