// @ts-check
// One node that sweeps. It tells how long each batch took, and what went wrong.
import { coatcheck } from '../servers/serve.mjs'
import { openStore } from '../sweep.mjs'

const { SessionManager } = await coatcheck('index.js')
const { store, end } = await openStore(process.argv[2] ?? '', process.argv[3] ?? '', 2)
/** @type {number[]} */
const batches = []
const sweep = store.sweep.bind(store)
store.sweep = async (/** @type {any[]} */ ...args) => {
  const start = performance.now()
  const removed = await sweep(...args)
  batches.push(performance.now() - start)
  return removed
}
/** @type {string[]} */
const errors = []
const sessions = new SessionManager({
  store,
  sweepEvery: false,
  onEvent: (/** @type {any} */ event) => {
    if (event.type === 'store-error') errors.push(event.error.message)
  },
})
const start = performance.now()
const removed = await sessions.sweep()
process.send?.({ removed, batches, errors, seconds: (performance.now() - start) / 1000 })
await end()
process.exit(0)
