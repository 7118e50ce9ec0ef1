// @ts-check
// `npm run proof -- fuzz [--inputs 1000000] [--seed 1] [target …]`: the long form of the fuzzing.
import { vitest } from '../../support/scripts/vitest.mjs'

const values = new Map([
  ['--inputs', '1000000'],
  ['--seed', ''],
])
const targets = []
const given = process.argv.slice(2)
while (given.length > 0) {
  const word = given.shift() ?? ''
  if (!word.startsWith('-')) targets.push(word)
  else {
    const [option = '', value = given.shift()] = word.split('=')
    if (!values.has(option) || !/^[1-9]\d*$/.test(value ?? '')) {
      console.error('expected: npm run proof -- fuzz [--inputs 1000000] [--seed 1] [target …]')
      process.exit(2)
    }
    values.set(option, value ?? '')
  }
}

process.exitCode = vitest(['proof/fuzz/fuzz.test.ts', '--reporter=verbose', '--silent=false'], {
  env: {
    COATCHECK_FUZZ_INPUTS: values.get('--inputs') ?? '',
    COATCHECK_FUZZ_TARGETS: targets.join(' '),
    ...(values.get('--seed') && { COATCHECK_FUZZ_SEED: values.get('--seed') ?? '' }),
  },
})
