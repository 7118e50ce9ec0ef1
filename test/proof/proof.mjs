// @ts-check
// `npm run proof`: each search in its short form, two minutes. `npm run proof -- PART [options]`: one of them at length.
import { spawnSync } from 'node:child_process'
import { install } from '../support/scripts/install.mjs'
import { vitest } from '../support/scripts/vitest.mjs'

/** Programs that read their own options, from the third argument on as if they had been started themselves. */
const PARTS = ['engines/engines', 'orders/orders', 'fuzz/fuzz', 'soak/soak', 'foreign/foreign', 'newer']
const nameOf = (/** @type {string} */ part) => part.replace(/^.*\//, '')

const [name, ...options] = process.argv.slice(2)
const part = PARTS.find(each => nameOf(each) === name)
if (name === undefined) process.exitCode = vitest(['--project', 'proof'])
else if (name === 'protocol') process.exitCode = vitest(['test/proof/protocol'], { env: { COATCHECK_PROOF: 'long' } })
else if (name === 'mutants') {
  const stryker = 'test/proof/mutants/node_modules/@stryker-mutator/core/bin/stryker.js'
  const args = [stryker, 'run', 'test/proof/mutants/stryker.config.mjs', ...options]
  const isRun =
    install('test/proof/mutants', 'test/libraries') &&
    spawnSync(process.execPath, args, { stdio: 'inherit' }).status === 0
  process.exitCode = isRun ? 0 : 1
} else if (part !== undefined) {
  process.argv.splice(2, 1)
  await import(`./${part}.mjs`)
} else {
  console.error(`'${name}' is none of: ${[...PARTS.map(nameOf), 'protocol', 'mutants'].sort().join(', ')}`)
  process.exitCode = 2
}
