// @ts-check
// `npm run test:all`: every engine, installed first where it is missing. Arguments go to vitest.
import { existsSync } from 'node:fs'
import { missingDeviceChromium, unpackDeviceChromium } from '../services/device-chromium.mjs'
import { installEngines } from './install-engines.mjs'
import { vitest } from './vitest.mjs'

installEngines(undefined, '`npm test` runs what is possible without them.')
if (missingDeviceChromium() !== null && existsSync('/etc/debian_version')) {
  console.log('\nUnpacking a Chromium that binds sessions to its device')
  unpackDeviceChromium()
}

process.exitCode = vitest(['--project', '!proof', ...process.argv.slice(2)], { env: { COATCHECK_ALL_ENGINES: '1' } })
