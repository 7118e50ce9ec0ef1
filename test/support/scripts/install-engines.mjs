// @ts-check
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { ENGINES } from '../services/engine-list.mjs'
import { install } from './install.mjs'

/**
 * Installs the engines that this machine lacks, as root on Debian. Elsewhere it prints the exact line, and the process
 * ends with exit code 1.
 * @param {readonly string[]} [names] all but the optional ones unless given
 * @param {string} [without] what is possible without them
 */
export function installEngines(names, without = '') {
  const missingEngines = () =>
    Object.entries(ENGINES).filter(
      ([name, engine]) => (names?.includes(name) ?? !engine.optional) && engine.missing() !== null,
    )
  const missing = missingEngines()
  const packages = [...new Set(missing.flatMap(([, { debian }]) => debian?.split(' ') ?? []))]
  if (packages.length > 0) {
    const commands = ['apt-get update', `apt-get install -y --no-install-recommends ${packages.join(' ')}`]
    for (const [name, engine] of missing) console.log(`${name}: ${engine.missing()}`)
    if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) {
      console.error('\nThese programs are needed. On Debian or Ubuntu:\n')
      console.error(`  ${commands.map(command => `sudo ${command}`).join(' && ')}\n`)
      if (without) console.error(without)
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
        console.error(`\n\`${command}\` failed; nothing was run.`)
        process.exit(1)
      }
    }
  }

  for (const folder of new Set(missing.map(([, engine]) => ('npm' in engine ? engine.npm : null)))) {
    if (folder === null) continue
    // A failure is told by name: the engine is still missing then.
    install(folder)
  }
  if (missing.length > 0) {
    for (const [name, engine] of missingEngines()) console.error(`${name} is still missing: ${engine.missing()}`)
  }
}
