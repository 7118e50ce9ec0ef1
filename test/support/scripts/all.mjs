// @ts-check
// `npm run test:all`: every engine, installed first where it is missing. Arguments go to vitest. `-- --rest`: without the
// folders that `npm test` asks.
import { existsSync, readFileSync } from 'node:fs'
import { missingDeviceChromium, unpackDeviceChromium } from '../services/device-chromium.mjs'
import { installEngines } from './install-engines.mjs'
import { root, vitest } from './vitest.mjs'

const REST = '--rest'
const { scripts } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))
const asked = scripts.test.split(' ').filter((/** @type {string} */ word) => word.startsWith('test/'))
const exclude = process.argv.includes(REST) ? asked.map((/** @type {string} */ folder) => `${folder}/**`) : []

installEngines(undefined, '`npm test` runs what is possible without them.')
if (missingDeviceChromium() !== null && existsSync('/etc/debian_version')) {
  console.log('\nUnpacking a Chromium that binds sessions to its device')
  unpackDeviceChromium()
}

const args = process.argv.slice(2).filter(each => each !== REST)
process.exitCode = vitest(['--project', '!proof', ...args], { env: { COATCHECK_ALL_ENGINES: '1' }, exclude })
