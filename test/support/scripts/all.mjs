// @ts-check
// `npm run test:all`: every engine and every package, installed first where it is missing. Arguments go to vitest.
// `-- --rest`: without what `npm test` asks, for who has just run that with COATCHECK_ALL_ENGINES=1.
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

const REST = '--rest'
const wanted = process.argv.slice(2)
const asked = wanted.includes(REST) ? [] : ['guarantees', 'process', 'rules']
// By name: of several that are left out, vitest runs each that one of them does not name.
const projects = [...asked, 'engines', 'libraries', 'package'].flatMap(name => ['--project', name])
const others = wanted.filter(each => each !== REST)
process.exitCode = vitest([...projects, ...others], { env: { COATCHECK_ALL_ENGINES: '1' } })
