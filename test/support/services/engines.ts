// Which engines this machine can run. A missing one is never silent: its tests are skipped by name and the table at the
// end lists it; with COATCHECK_ALL_ENGINES=1 (`npm run test:all`, CI) it is a failure.
import { describe, it } from 'vitest'
import { ENGINES } from './engine-list.mjs'

export { ENGINES }
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
