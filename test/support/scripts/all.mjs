// @ts-check
// `npm run test:all`: every engine and every package, installed first where it is missing. Arguments go to vitest.
import { existsSync } from 'node:fs'
import { missingDeviceChromium, unpackDeviceChromium } from '../services/device-chromium.mjs'
import { install } from './install.mjs'
import { installEngines } from './install-engines.mjs'
import { vitest } from './vitest.mjs'

/** What tests ask beyond the packages of the root, which are enough for `npm test`. */
const PACKAGES = ['test/libraries', 'test/package/tools', 'docs', 'bench']

if (!install(...PACKAGES)) process.exit(1)
installEngines(undefined, '`npm test` runs what is possible without them.')
if (missingDeviceChromium() !== null && existsSync('/etc/debian_version')) {
  console.log('\nUnpacking a Chromium that binds sessions to its device')
  unpackDeviceChromium()
}

process.exitCode = vitest(['--project', '!proof', ...process.argv.slice(2)], { env: { COATCHECK_ALL_ENGINES: '1' } })
