// Prints, at the end of a run, which engines this machine has for the tests and which it has not, what `npm test` has left to
// other commands, and whether all that could run has passed; and what was thrown outside of any test, which fails a run
// without failing a test. Meanwhile it names what has been running for long: a run that is killed because something hangs
// says nothing else of it.
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Reporter, SerializedError, TestCase, TestModule, TestRunEndReason } from 'vitest/node'
import { ENGINES } from '../services/engine-list.mjs'
import { isInstalled } from './install.mjs'
import { table } from './table.mjs'

export default class EnginesReporter implements Reporter {
  readonly #long: number
  /** What is under way, and since when. */
  readonly #running = new Map<string, { readonly what: string; readonly since: number }>()
  #timer: NodeJS.Timeout | undefined

  /** `long`: after how many ms something is named. The limit of most tests is less. */
  constructor({ long = 150_000 }: { long?: number } = {}) {
    this.#long = long
  }

  onTestRunStart(): void {
    const tell = () => {
      for (const { what, since } of this.#running.values()) {
        const ms = Date.now() - since
        if (ms >= this.#long) console.log(`running for ${Math.round(ms / 1000)} s: ${what}`)
      }
    }
    this.#timer = setInterval(tell, this.#long / 2).unref()
  }

  // A file hangs in its hooks, or while it is loaded, as well.
  onTestModuleQueued(module: TestModule): void {
    this.#running.set(module.id, { what: module.relativeModuleId, since: Date.now() })
  }

  onTestCaseReady({ module, fullName }: TestCase): void {
    // It may be told after the end of a short file.
    if (this.#running.has(module.id))
      this.#running.set(module.id, { what: `${module.relativeModuleId}: ${fullName}`, since: Date.now() })
  }

  onTestModuleEnd({ id }: TestModule): void {
    this.#running.delete(id)
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[], reason: TestRunEndReason): void {
    clearInterval(this.#timer)
    const folder = process.env.COATCHECK_RESULTS
    // The summary of a CI run names them: they are thousands of lines above it.
    if (folder) for (const error of unhandled) appendFileSync(join(folder, 'unhandled.txt'), describe(error))
    // Of one file, for the person at work on it, the table is noise.
    if (modules.length < 2) return
    const engines = Object.entries(ENGINES).map(([name, { debian, missing }]) => ({ name, debian, why: missing() }))
    const [here, absent] = [engines.filter(({ why }) => why === null), engines.filter(({ why }) => why !== null)]
    console.log(`\n  engines on this machine: ${here.map(({ name }) => name).join(', ')}\n`)
    const rows = absent.map(({ name, debian, why }) => [name, debian === null ? why! : `${why} (Debian: ${debian})`])
    if (absent.length > 0) console.log(`${table([['not here: its tests were skipped', 'why'], ...rows])}\n`)
    if (process.env.npm_lifecycle_event !== 'test') return
    console.log(`${table([LEFT_OUT_HEAD, ...leftOut()])}\n`)
    const names = absent.map(({ name }) => name).join(', ')
    if (reason === 'passed')
      console.log(`All that this machine can run has passed.${names && ` Skipped for what is not here: ${names}.`}\n`)
  }
}

const LEFT_OUT_HEAD = ['asked by', 'left out here']

/** What `npm test` does not ask, behind the command that does. */
export function leftOut(areInstalled = isInstalled('test/libraries')): string[][] {
  const { devDependencies } = JSON.parse(readFileSync(new URL('../../libraries/package.json', import.meta.url), 'utf8'))
  return [
    ['npm run test:all', 'each client and browser: test/redis, test/sql, engines.test.ts of other folders'],
    ['npm run test:all', `test/libraries: ${Object.keys(devDependencies).join(', ')}`],
    ['npm run test:all', 'test/package'],
    ...(areInstalled ? [] : [['npm run test:all', 'test/connect on other libraries than Express']]),
    ['npm run test:recipes', 'test/recipes'],
    ['npm run proof', 'test/proof'],
  ]
}

/** One line: where it was, as far as vitest knows, then the error with its stack. */
function describe(error: SerializedError): string {
  const { VITEST_TEST_PATH: file = 'a file that is not known', VITEST_TEST_NAME: test } = error
  const where = test === undefined ? file : `${file}: ${test}`
  const what = error.stack ?? `${error.name}: ${error.message}`
  return `${where}: ${String(what).replaceAll('\n', ' | ').slice(0, 2000)}\n`
}
