// @ts-check
// `npm run proof -- soak [--minutes 30] [redis|postgresql]`: soak.test.ts.
import { installEngines } from '../../support/scripts/install-engines.mjs'
import { vitest } from '../../support/scripts/vitest.mjs'
import { readOptions } from '../options.mjs'

const known = ['redis', 'postgresql']
const { numbers, names } = readOptions(`soak [--minutes 30] [${known.join('|')}]`, { numbers: { minutes: 30 }, known })

installEngines(names.length > 0 ? names : known)
const env = {
  COATCHECK_ALL_ENGINES: '1',
  COATCHECK_SOAK_MINUTES: `${numbers.minutes}`,
  ...(names[0] && { COATCHECK_SOAK_DATABASE: names[0] }),
}
process.exitCode = vitest(['proof/soak/soak.test.ts', '--reporter=dot', '--disable-console-intercept'], { env })
