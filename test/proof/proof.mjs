// @ts-check
// `npm run proof`: each search in its short form, two minutes. `npm run proof -- PART [options]`: one of them at length.
import { vitest } from '../support/scripts/vitest.mjs'

/** Programs that read their own options, from the third argument on as if they had been started themselves. */
const PARTS = ['engines/engines', 'orders/orders', 'fuzz/fuzz', 'soak/soak', 'foreign/foreign', 'newer']
const nameOf = (/** @type {string} */ part) => part.replace(/^.*\//, '')

const name = process.argv[2]
const part = PARTS.find(each => nameOf(each) === name)
if (name === undefined) process.exitCode = vitest(['--project', 'proof'])
else if (part !== undefined) {
  process.argv.splice(2, 1)
  await import(`./${part}.mjs`)
} else {
  console.error(`'${name}' is none of: ${PARTS.map(nameOf).sort().join(', ')}`)
  process.exitCode = 2
}
