// Loaded before each test file. Tests ask for most warnings of the library, and a warning comes once in a process, in
// whatever test is first: the library's are printed beside a test that failed, and by themselves they look like a failure.
// Any other fails the test that it comes in, such as too many listeners; but for what Node.js calls experimental or
// deprecated where a driver uses it.
import { afterAll, afterEach } from 'vitest'

const OF_NODE = /^(?:Experimental|Deprecation)Warning$/
const OF_OURS = /\/(?:src|stores)\/\S+\.ts:/
const KEPT = Symbol.for('coatcheck.tests.warnings')
interface Kept {
  ours: Error[]
  others: Error[]
}
const { [KEPT]: known } = globalThis as { [KEPT]?: Kept }
// Files share a process.
const kept: Kept = known ?? { ours: [], others: [] }
if (known === undefined) {
  Object.assign(globalThis, { [KEPT]: kept })
  process.removeAllListeners('warning')
  process.on('warning', warning => {
    if (warning.name === 'CoatcheckWarning') kept.ours.push(warning)
    else if (!OF_NODE.test(warning.name) || OF_OURS.test(warning.stack ?? '')) kept.others.push(warning)
  })
}

function failForOthers(): void {
  const others = kept.others.splice(0)
  if (others.length > 0) throw new Error(`the process was warned: ${others.map(String).join('; ')}`)
}

afterEach(({ task }) => {
  const ours = kept.ours.splice(0)
  if (task.result?.state === 'fail') for (const { message } of ours) console.error(`the process was warned: ${message}`)
  failForOthers()
})
afterAll(failForOthers)
