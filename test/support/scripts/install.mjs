// @ts-check
// What only some commands need is in folders with a package.json and a lock file of their own, so that `npm ci` brings
// little. `node test/support/scripts/install.mjs FOLDER...` installs them; what is installed already is not asked again.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../..', import.meta.url))
/**
 * @param {string} path
 * @returns {Record<string, { version?: string, optional?: boolean, devOptional?: boolean }>}
 */
const packagesOf = path => (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).packages : {})

/**
 * Whether a folder has what its lock file says; packages for other platforms are optional.
 * @param {string} folder from the root
 */
export function isInstalled(folder) {
  const installed = packagesOf(join(root, folder, 'node_modules/.package-lock.json'))
  return Object.entries(packagesOf(join(root, folder, 'package-lock.json'))).every(
    ([path, { version, optional, devOptional }]) =>
      path === '' || optional || devOptional || installed[path]?.version === version,
  )
}

/**
 * Installs what the lock file of each folder says, from npm's cache where that has it.
 * @param {readonly string[]} folders from the root
 * @returns {boolean} whether all of them are installed
 */
export function install(...folders) {
  for (const folder of folders) {
    if (isInstalled(folder)) continue
    console.log(`Installing the npm packages of ${folder}`)
    const npm = () =>
      spawnSync('npm', ['ci', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'], {
        cwd: join(root, folder),
        stdio: ['ignore', 'inherit', 'inherit'],
        shell: process.platform === 'win32',
      }).status === 0
    // The second time covers a registry that was unreachable for a moment, nothing else.
    if (!npm() && !npm()) console.error(`The npm packages of ${folder} could not be installed.`)
  }
  return folders.every(isInstalled)
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  process.exitCode = install(...process.argv.slice(2)) ? 0 : 1
