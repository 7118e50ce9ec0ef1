// @ts-check
// One node that sweeps as a manager does. It tells how long each batch took, and what went wrong.

import { openStore } from '../open-store.mjs'
import { coatcheck } from '../servers/serve.mjs'

const { store, end } = await openStore(process.argv[2] ?? '', process.argv[3] ?? '', 2)
/** @type {number[]} */
const batches = []
/** @type {string[]} */
const errors = []
let removed = 0
/** The store, with each of its batches timed. */
const timed = Object.create(store, {
  sweep: {
    async value(/** @type {unknown[]} */ ...args) {
      const before = performance.now()
      const swept = await store.sweep(...args)
      batches.push(performance.now() - before)
      removed += swept
      return swept
    },
  },
})
for (const verb of ['create', 'read', 'update', 'touch', 'replace', 'delete', 'deleteUser', 'listUser'])
  Object.defineProperty(timed, verb, { value: store[verb].bind(store) })
const { SessionManager } = await coatcheck('index.js')
const sessions = new SessionManager({ store: timed, sweepInterval: false, storeTimeout: '10s' })
const start = performance.now()
for (let tries = 0; tries < 100; tries++) {
  try {
    await sessions.sweep()
    break
  } catch (error) {
    errors.push(error instanceof Error ? error.message : String(error))
  }
}
process.send?.({ removed, batches, errors, seconds: (performance.now() - start) / 1000 })
await end()
process.exit(0)
