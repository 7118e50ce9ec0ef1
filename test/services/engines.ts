// Which engines this machine can run. A missing one is never silent: its tests are skipped by name and the table at the
// end lists it; with COATCHECK_ALL_ENGINES=1 (`npm run test:all`, CI) it is a failure.
import { createRequire } from 'node:module'
import { describe, it } from 'vitest'
import { findBinary } from './process.ts'

const binaries = (...names: string[]) => {
  const missing = names.filter(name => findBinary(name) === null)
  return missing.length === 0 ? null : `not on PATH: ${missing.join(', ')}`
}
const module_ = (name: string) => {
  try {
    createRequire(import.meta.url).resolve(name)
    return null
  } catch {
    return `cannot be loaded: ${name} (Node ${process.versions.node})`
  }
}

/** Each engine and what is missing for it, or `null`. `debian` is the package that brings it. */
export const ENGINES = {
  memory: { debian: null, optional: false, missing: () => null },
  redis: { debian: 'redis-server', optional: false, missing: () => binaries('redis-server', 'redis-cli') },
  postgresql: { debian: 'postgresql', optional: false, missing: () => binaries('postgres', 'initdb') },
  mariadb: { debian: 'mariadb-server', optional: false, missing: () => binaries('mariadbd', 'mariadb-install-db') },
  libsql: { debian: null, optional: false, missing: () => module_('libsql') },
  // Not every Node version has these two: the table names them, nothing fails.
  'node:sqlite': { debian: null, optional: true, missing: () => module_('node:sqlite') },
  'better-sqlite3': { debian: null, optional: true, missing: () => module_('better-sqlite3') },
  chromium: { debian: 'chromium', optional: false, missing: () => binaries('chromium') },
  nginx: { debian: 'nginx-light', optional: false, missing: () => binaries('nginx') },
} as const satisfies Record<string, { debian: string | null; optional: boolean; missing: () => string | null }>

export type EngineName = keyof typeof ENGINES

export const allEnginesRequired = () => process.env.COATCHECK_ALL_ENGINES === '1'

/** `describe` for tests that need an engine: skipped where it is missing, failing where every engine is required. */
export function describeEngine(engine: EngineName, name: string, tests: () => void): void {
  const missing = ENGINES[engine].missing()
  if (missing === null) describe(name, tests)
  else if (allEnginesRequired() && !ENGINES[engine].optional)
    it(`${name}: ${engine} is required here`, () => {
      throw new Error(`${engine} ${missing}`)
    })
  else describe.skip(`${name} (${engine} ${missing})`, tests)
}
