// @ts-check
// `npm run proof -- fuzz [--inputs 1000000] [--seed 1] [target …]`: the long form of the fuzzing.
import { vitest } from '../../support/scripts/vitest.mjs'
import { readOptions } from '../options.mjs'

const given = readOptions('fuzz [--inputs 1000000] [--seed 1] [target …]', {
  numbers: { inputs: 1_000_000, seed: undefined },
})
process.exitCode = vitest(['proof/fuzz/fuzz.test.ts', '--reporter=verbose', '--silent=false'], {
  env: {
    COATCHECK_FUZZ_INPUTS: `${given.numbers.inputs}`,
    COATCHECK_FUZZ_TARGETS: given.names.join(' '),
    ...(given.numbers.seed !== undefined && { COATCHECK_FUZZ_SEED: `${given.numbers.seed}` }),
  },
})
