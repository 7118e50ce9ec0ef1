// @ts-check
// One node that sweeps. It tells how long each batch took, and what went wrong.
import { openStore } from '../sweep.mjs'

/** What the stores remove in one statement. */
const BATCH = 250

const { store, end } = await openStore(process.argv[2] ?? '', process.argv[3] ?? '', 2)
/** @type {number[]} */
const batches = []
/** @type {string[]} */
const errors = []
let removed = 0
const start = performance.now()
for (;;) {
  const before = performance.now()
  try {
    const swept = await store.sweep(Date.now(), BATCH, before + 10_000)
    batches.push(performance.now() - before)
    removed += swept
    if (swept < BATCH) break
  } catch (error) {
    errors.push(error instanceof Error ? error.message : String(error))
    if (errors.length > 100) break
  }
}
process.send?.({ removed, batches, errors, seconds: (performance.now() - start) / 1000 })
await end()
process.exit(0)
