// @ts-check
// `npm run proof`: each search in its short form, two minutes. `npm run proof -- PART [options]`: one of them at length.
import { parseArgs } from 'node:util'
import { installEngines } from '../support/scripts/install-engines.mjs'
import { vitest } from '../support/scripts/vitest.mjs'

/** What each search is told: numbers with their defaults, and names, with the engine that each needs. */
const SEARCHES = /** @type {const} */ ({
  engines: {
    numbers: { minutes: '10', seed: '' },
    names: {
      ...{ memory: 'memory', redis: 'redis', 'redis-cluster': 'redis' },
      ...{ postgresql: 'postgresql', mariadb: 'mariadb', sqlite: 'libsql' },
    },
  },
  orders: { numbers: { minutes: '10', seed: '' }, names: {} },
  fuzz: { numbers: { inputs: '1000000', seed: '' }, names: null },
  soak: { numbers: { minutes: '30' }, names: { redis: 'redis', postgresql: 'postgresql' } },
})
/** @param {string} problem @returns {never} */
function refuse(problem) {
  console.error(problem)
  process.exit(2)
}

/** @param {keyof typeof SEARCHES} part */
function search(part) {
  const { numbers, names: known } = SEARCHES[part]
  const read = () => {
    const options = Object.fromEntries(
      Object.entries(numbers).map(([name, usual]) => [name, { type: /** @type {const} */ ('string'), default: usual }]),
    )
    try {
      return parseArgs({ args: process.argv.slice(3), options, allowPositionals: true })
    } catch (error) {
      return refuse(error instanceof Error ? error.message : String(error))
    }
  }
  const { values, positionals: names } = read()
  for (const [name, value] of Object.entries(values))
    if (value !== '' && !(Number(value) > 0)) refuse(`--${name}: expected a number above 0, got '${value}'`)
  for (const name of names)
    if (known !== null && !Object.hasOwn(known, name)) refuse(`'${name}' is none of: ${Object.keys(known).join(', ')}`)
  const needs = Object.entries(known ?? {}).filter(([name]) => names.length === 0 || names.includes(name))
  if (needs.length > 0) installEngines(needs.map(([, engine]) => engine))
  const told = Object.entries({ ...values, names: names.join(' ') }).map(([name, value]) => [
    `COATCHECK_${part}_${name}`.toUpperCase(),
    String(value),
  ])
  return vitest([`proof/${part}/${part}.test.ts`, '--disable-console-intercept'], {
    env: { ...Object.fromEntries(told), ...(needs.length > 0 && { COATCHECK_ALL_ENGINES: '1' }) },
  })
}

const [, , part] = process.argv
if (part === undefined) process.exitCode = vitest(['--project', 'proof'])
else if (Object.hasOwn(SEARCHES, part)) process.exitCode = search(/** @type {keyof typeof SEARCHES} */ (part))
else if (part === 'stalls')
  process.exitCode = vitest(['--project', 'rules', '--project', 'process', '--sequence.shuffle.tests'], {
    env: { COATCHECK_STALLS: '1' },
  })
else if (part === 'foreign') {
  process.argv.splice(2, 1)
  await import('./foreign/foreign.mjs')
} else refuse(`'${part}' is none of: ${[...Object.keys(SEARCHES), 'stalls', 'foreign'].join(', ')}`)
