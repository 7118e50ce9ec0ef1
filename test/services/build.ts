// Examples and consumers resolve `coatcheck` to dist. One build for all test files, and only if the sources are newer.
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = fileURLToPath(new URL('../../', import.meta.url))
const stamp = join(root, 'dist', '.built')
const lock = join(tmpdir(), `coatcheck-build-${root.replaceAll(/\W/g, '_')}`)

const newest = (path: string): number => {
  const { mtimeMs } = statSync(path)
  if (!statSync(path).isDirectory()) return mtimeMs
  return Math.max(0, ...readdirSync(path).map(name => newest(join(path, name))))
}
const isFresh = () =>
  existsSync(stamp) &&
  Math.max(...['src', 'stores', 'package.json', 'tsup.config.ts'].map(path => newest(join(root, path)))) <
    statSync(stamp).mtimeMs

/** Makes sure that `dist` is newer than the sources; test files in parallel wait for the one that builds. */
export async function build(): Promise<void> {
  while (!isFresh()) {
    try {
      mkdirSync(lock)
    } catch {
      // A builder that was killed leaves its lock behind.
      if (existsSync(lock) && Date.now() - statSync(lock).mtimeMs > 180_000) rmSync(lock, { recursive: true })
      await new Promise(resolve => setTimeout(resolve, 200))
      continue
    }
    try {
      if (isFresh()) return
      const started = new Date()
      await promisify(execFile)('npm', ['run', '--silent', 'build'], { cwd: root, timeout: 170_000 })
      writeFileSync(stamp, '')
      // What was edited while the build ran is not in it.
      utimesSync(stamp, started, started)
      return
    } finally {
      rmSync(lock, { recursive: true, force: true })
    }
  }
}
