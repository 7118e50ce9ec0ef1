// @ts-check
// `npm run test:all`: every engine, installed first where it is missing. Arguments go to vitest.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { missingDeviceChromium, unpackDeviceChromium } from '../services/device-chromium.mjs'
import { ENGINES } from '../services/engine-list.mjs'
import { vitest } from './vitest.mjs'

const missingEngines = () =>
  Object.entries(ENGINES).filter(([, engine]) => !engine.optional && engine.missing() !== null)

const missing = missingEngines()
const packages = [...new Set(missing.flatMap(([, { debian }]) => debian?.split(' ') ?? []))]
if (packages.length > 0) {
  const commands = ['apt-get update', `apt-get install -y --no-install-recommends ${packages.join(' ')}`]
  for (const [name, engine] of missing) console.log(`${name}: ${engine.missing()}`)
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) {
    console.error('\nThe whole suite needs these programs. On Debian or Ubuntu:\n')
    console.error(`  ${commands.map(command => `sudo ${command}`).join(' && ')}\n`)
    console.error('`npm test` runs what is possible without them.')
    process.exit(1)
  }
  console.log(`\nInstalling Debian packages: ${packages.join(', ')}`)
  for (const command of commands) {
    console.log(`> ${command}`)
    const { status } = spawnSync('sh', ['-c', command], {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    })
    if (status !== 0) {
      console.error(`\n\`${command}\` failed; the suite was not run.`)
      process.exit(1)
    }
  }
}

for (const folder of new Set(missing.map(([, engine]) => ('npm' in engine ? engine.npm : null)))) {
  if (folder === null) continue
  console.log(`\nInstalling the npm packages of ${folder}: what has to be compiled takes some minutes`)
  // A failure is told by name: the engine is still missing then.
  spawnSync('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', '--no-package-lock'], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
}
if (missing.length > 0) {
  for (const [name, engine] of missingEngines()) console.error(`${name} is still missing: ${engine.missing()}`)
}

if (missingDeviceChromium() !== null && existsSync('/etc/debian_version')) {
  console.log('\nUnpacking a Chromium that binds sessions to its device')
  unpackDeviceChromium()
}

process.exitCode = vitest(process.argv.slice(2), { env: { COATCHECK_ALL_ENGINES: '1' } })
