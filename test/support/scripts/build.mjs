// @ts-check
// Examples, tests and consumers resolve `coatcheck` to dist. `node test/support/scripts/build.mjs` builds it if the sources are
// newer, with `--always` in any case. As the `dependencies` script it builds a clone: npm runs that after `npm ci`.
import { execFile } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const bundler = join(root, 'node_modules/tsup/dist/cli-default.js')
const stamp = join(root, 'dist/.built')
const lock = join(tmpdir(), `coatcheck-build-${root.replaceAll(/\W/g, '_')}`)

/**
 * @param {string} path
 * @returns {number}
 */
function newest(path) {
  const { mtimeMs } = statSync(path)
  if (!statSync(path).isDirectory()) return mtimeMs
  return Math.max(0, ...readdirSync(path).map(name => newest(join(path, name))))
}
const isFresh = () =>
  existsSync(stamp) &&
  Math.max(...['src', 'stores', 'package.json', 'tsup.config.ts'].map(path => newest(join(root, path)))) <
    statSync(stamp).mtimeMs

async function bundle() {
  const started = new Date()
  await promisify(execFile)(process.execPath, [bundler, '--silent'], { cwd: root, timeout: 170_000 })
  // For CommonJS the same declarations hold, in a folder that says what it is.
  const dist = join(root, 'dist')
  for (const path of readdirSync(dist, { recursive: true, encoding: 'utf8' }))
    if (path.endsWith('.d.ts') && !path.startsWith('cjs')) cpSync(join(dist, path), join(dist, 'cjs', path))
  writeFileSync(join(dist, 'cjs/package.json'), '{ "type": "commonjs", "sideEffects": false }\n')
  writeFileSync(stamp, '')
  // What was edited while the build ran is not in it.
  utimesSync(stamp, started, started)
}

/**
 * Of several processes one builds, the others wait for it.
 * @param {() => boolean} isDone whether there is nothing to build
 */
async function buildUnless(isDone) {
  while (!isDone()) {
    try {
      mkdirSync(lock)
    } catch {
      // A builder that was killed leaves its lock behind.
      if (existsSync(lock) && Date.now() - statSync(lock).mtimeMs > 180_000) rmSync(lock, { recursive: true })
      await new Promise(resolve => setTimeout(resolve, 200))
      continue
    }
    try {
      if (!isDone()) await bundle()
      return
    } finally {
      rmSync(lock, { recursive: true, force: true })
    }
  }
}

/** Makes sure that `dist` is newer than the sources. */
export const build = () => buildUnless(isFresh)

async function main() {
  if (!existsSync(bundler)) {
    console.error('dist was not built: that needs the development dependencies (npm ci without --omit=dev).')
    // An installation without them is one that has a build from elsewhere, or wants none.
    if (process.env.npm_lifecycle_event !== 'dependencies') process.exitCode = 1
    return
  }
  try {
    await buildUnless(process.argv.includes('--always') ? () => false : isFresh)
  } catch (error) {
    const { stdout = '', stderr = '', message } = /** @type {Error & { stdout?: string, stderr?: string }} */ (error)
    console.error(`${stdout}${stderr}` || message)
    process.exitCode = 1
  }
}
if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) await main()
