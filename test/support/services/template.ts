// A new data folder of a database takes its programs seconds; a copy of one takes a moment.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, realpathSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const cache = fileURLToPath(new URL('../../../node_modules/.cache/coatcheck-servers/', import.meta.url))

/** A copy goes to `to` of what `make` made there once with this version of `program`. Owners are kept. */
export function fromTemplate(program: string, to: string, make: () => void): void {
  const path = realpathSync(program)
  const version = createHash('sha256')
    .update(`${path} ${statSync(path).mtimeMs}`)
    .digest('hex')
    .slice(0, 16)
  const template = join(cache, `${basename(path)}-${version}`)
  const copy = (from: string, target: string) => execFileSync('cp', ['-a', from, target])
  if (existsSync(template)) return void copy(template, to)
  make()
  mkdirSync(cache, { recursive: true })
  const fresh = `${template}.${process.pid}`
  copy(to, fresh)
  try {
    renameSync(fresh, template)
  } catch {
    // Another process was first.
    rmSync(fresh, { recursive: true, force: true })
  }
}
