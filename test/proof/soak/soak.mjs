// @ts-check
// `npm run proof -- soak [--minutes 30] [redis|postgresql]`: soak.test.ts; with `--broken` it shows what the soak notices.
import { installEngines } from '../../support/scripts/install-engines.mjs'
import { vitest } from '../../support/scripts/vitest.mjs'

const DATABASES = ['redis', 'postgresql']
const USAGE = `usage: npm run proof -- soak [--minutes 30] [${DATABASES.join('|')}], or npm run proof -- soak --broken`

/** @param {string} fault @returns {never} */
function refuse(fault) {
  console.error(`${fault}\n${USAGE}`)
  process.exit(2)
}

let minutes = 30
let database = ''
let isBroken = false
const args = process.argv.slice(2)
for (let arg = args.shift(); arg !== undefined; arg = args.shift()) {
  if (arg === '--minutes') {
    const text = args.shift() ?? ''
    minutes = Number(text)
    if (!(minutes > 0 && minutes <= 24 * 60)) refuse(`--minutes: expected a number up to 1440, got "${text}"`)
  } else if (DATABASES.includes(arg)) database = arg
  else if (arg === '--broken') isBroken = true
  else refuse(`unknown argument "${arg}"`)
}

installEngines(database ? [database] : DATABASES)
const env = {
  COATCHECK_ALL_ENGINES: '1',
  ...(isBroken ? { COATCHECK_SOAK_BROKEN: '1' } : { COATCHECK_SOAK_MINUTES: `${minutes}` }),
  ...(database && { COATCHECK_SOAK_DATABASE: database }),
}
process.exitCode = vitest(['proof/soak/soak.test.ts', '--reporter=dot', '--disable-console-intercept'], { env })
