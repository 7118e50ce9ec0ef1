import type { OptionName } from '../options.ts'
import type { Task } from '../task.ts'

/** Where nothing was found: which options have to be those of the application. */
export function hintFor({ sql, given, output }: Task): void {
  if (output.json) return
  const names: OptionName[] = sql === null ? ['key-prefix', 'namespace'] : ['table', 'schema', 'namespace']
  const missing = names.filter(name => !given.has(name)).map(name => `--${name}`)
  const about = missing.length === 0 ? '' : `, or lacks ${missing.join(', ')}`
  output.say(`If there should be some, see whether an option differs from the application's${about}.`)
}
