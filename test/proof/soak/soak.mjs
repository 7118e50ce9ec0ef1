// @ts-check
// `npm run proof -- soak [--minutes 30] [redis|postgresql]`: soak.test.ts; with `--broken` it shows what the soak notices.
import { installEngines } from '../../support/scripts/install-engines.mjs'
import { vitest } from '../../support/scripts/vitest.mjs'
import { readOptions } from '../options.mjs'

const known = ['redis', 'postgresql']
const usage = `soak [--minutes 30] [${known.join('|')}], or npm run proof -- soak --broken`
const { numbers, names, has } = readOptions(usage, { numbers: { minutes: 30 }, flags: ['broken'], known })

installEngines(names.length > 0 ? names : known)
const env = {
  COATCHECK_ALL_ENGINES: '1',
  ...(has('broken') ? { COATCHECK_SOAK_BROKEN: '1' } : { COATCHECK_SOAK_MINUTES: `${numbers.minutes}` }),
  ...(names[0] && { COATCHECK_SOAK_DATABASE: names[0] }),
}
process.exitCode = vitest(['proof/soak/soak.test.ts', '--reporter=dot', '--disable-console-intercept'], { env })
