// @ts-check
// `npm run proof -- engines [--minutes 10] [--seed 7] [engine …]`: every store against the model.
import { installEngines } from '../../support/scripts/install-engines.mjs'
import { vitest } from '../../support/scripts/vitest.mjs'
import { readOptions } from '../options.mjs'

/** What each needs of the engines that tests can start. @type {Record<string, string>} */
const NEEDS = {
  memory: 'memory',
  redis: 'redis',
  'redis-cluster': 'redis',
  postgresql: 'postgresql',
  mariadb: 'mariadb',
  sqlite: 'libsql',
}
const known = Object.keys(NEEDS)
const usage = `engines [[--minutes 10] [--seed 7] [${known.join(' | ')} …]]`
const { numbers, names } = readOptions(usage, { numbers: { minutes: 10, seed: undefined }, known })

installEngines((names.length > 0 ? names : known).map(name => NEEDS[name] ?? name))
process.exitCode = vitest(['proof/engines/engines.test.ts', '--disable-console-intercept'], {
  env: {
    COATCHECK_ALL_ENGINES: '1',
    COATCHECK_PROOF_MINUTES: `${numbers.minutes}`,
    ...(names.length > 0 && { COATCHECK_PROOF_ENGINES: names.join() }),
    ...(numbers.seed !== undefined && { COATCHECK_PROOF_SEED: `${numbers.seed}` }),
  },
})
