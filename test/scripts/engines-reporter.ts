// Prints, at the end of a run, which engines this machine has for the tests and which it has not.
import type { Reporter, TestModule } from 'vitest/node'
import { ENGINES } from '../services/engine-list.mjs'
import { table } from './table.mjs'

export default class EnginesReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    // Of one file, for the person at work on it, the table is noise.
    if (modules.length < 2) return
    const rows = Object.entries(ENGINES).map(([name, { debian, missing }]) => {
      const reason = missing()
      const hint = debian === null ? '' : ` (Debian: ${debian})`
      return reason === null ? [name, 'present', ''] : [name, 'MISSING', reason + hint]
    })
    console.log(`\n${table([['engine', 'on this machine', 'why not'], ...rows])}\n`)
  }
}
