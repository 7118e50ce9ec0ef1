// @ts-check
// `npm run proof -- engines [--minutes 10] [--seed 7] [engine …]`: every store against the model.
import { installEngines } from '../../support/scripts/install-engines.mjs'
import { vitest } from '../../support/scripts/vitest.mjs'

/** What each needs of the engines that tests can start. */
const NEEDS = {
  memory: 'memory',
  redis: 'redis',
  'redis-cluster': 'redis',
  postgresql: 'postgresql',
  mariadb: 'mariadb',
  sqlite: 'libsql',
}
const ENGINES = /** @type {(keyof typeof NEEDS)[]} */ (Object.keys(NEEDS))
const USAGE = `npm run proof -- engines [[--minutes 10] [--seed 7] [${ENGINES.join(' | ')} …]]`

/** @param {string} problem @returns {never} */
function refuse(problem) {
  console.error(`${problem}\n${USAGE}`)
  process.exit(2)
}

/** @type {Record<string, number>} */
const numbers = { minutes: 10 }
/** @type {(keyof typeof NEEDS)[]} */
const engines = []
const args = process.argv.slice(2)
for (let arg = args.shift(); arg !== undefined; arg = args.shift()) {
  const option = /^--(minutes|seed)(?:=(.*))?$/.exec(arg)
  if (option !== null) {
    const text = option[2] ?? args.shift() ?? ''
    const value = Number(text)
    if (text === '' || !Number.isFinite(value) || value < 0) refuse(`${arg}: expected a number, got '${text}'`)
    numbers[/** @type {string} */ (option[1])] = value
    continue
  }
  const engine = ENGINES.find(name => name === arg)
  if (engine !== undefined) engines.push(engine)
  else refuse(`'${arg}' is no engine`)
}

installEngines((engines.length > 0 ? engines : ENGINES).map(name => NEEDS[name]))
process.exitCode = vitest(['proof/engines/engines.test.ts', '--disable-console-intercept'], {
  env: {
    COATCHECK_ALL_ENGINES: '1',
    COATCHECK_PROOF_MINUTES: String(numbers.minutes),
    ...(engines.length > 0 ? { COATCHECK_PROOF_ENGINES: engines.join() } : {}),
    ...(numbers.seed === undefined ? {} : { COATCHECK_PROOF_SEED: String(numbers.seed) }),
  },
})
