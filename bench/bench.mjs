// @ts-check
// npm run bench -- [memory] [redis] [sql] [own] [growth] [details] [package] [sweep] [failover] [--quick]
// npm run bench -- --write: all stores, and from this one run the tables and the chart of docs/performance.md.
// npm run bench -- own [redis] [sql]: sessions alone, in memory or above the clients of a database.
// npm run bench -- own --write, own redis sql --write, growth --write, failover --write: its other tables.
// npm run bench -- compare [--quick] [--write]: those of docs/compare.md and the README.
// Installs what it compares with (once, in this folder), then prints tables of this run.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { arch, cpus, loadavg, platform, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { install } from '../test/support/scripts/install.mjs'

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url))
/** @type {Record<string, readonly string[]>} */
const STORES = { memory: ['memory'], redis: ['redis'], sql: ['postgresql', 'mariadb', 'sqlite'] }
/** Which options each takes. @type {Record<string, readonly string[]>} */
const TAKES = {
  memory: ['quick'],
  redis: ['quick'],
  sql: ['quick'],
  own: ['write'],
  growth: ['quick', 'write'],
  details: [],
  package: [],
  // A million rows take their time: only where it is named.
  sweep: [],
  failover: ['write'],
  compare: ['quick', 'write'],
}
const usage = `Usage: npm run bench -- ${Object.keys(TAKES)
  .map(name => `[${name}]`)
  .join(' ')} [--quick] [--write]; growth, compare and failover stand alone, own alone or with stores`

/** @param {string} problem @returns {never} */
function refuse(problem) {
  console.error(`${problem}\n${usage}`)
  process.exit(2)
}

function readArguments() {
  const flag = { type: /** @type {const} */ ('boolean') }
  try {
    return parseArgs({ allowPositionals: true, options: { quick: flag, write: flag } })
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error))
  }
}
const { positionals, values } = readArguments()
const names = positionals.length > 0 ? positionals : Object.keys(STORES)
const isOwn = names.includes('own')
if (isOwn && names.some(name => name !== 'own' && !STORES[name])) refuse('own takes stores, and nothing else.')
for (const name of isOwn ? ['own'] : names) {
  const takes = TAKES[name] ?? refuse(`unknown: ${name}.`)
  // All stores or none: the page is of one run.
  const isWhole = positionals.length === 0
  for (const option of Object.keys(values))
    if (!takes.includes(option) && !(option === 'write' && isWhole)) refuse(`${name} takes no --${option}.`)
}
if (values.quick && values.write && names.includes('compare')) refuse('a quick comparison lacks rows.')
if (values.quick && values.write && names.includes('growth')) refuse('quick growth lacks sizes.')
for (const alone of ['growth', 'compare', 'failover'])
  if (names.includes(alone) && names.length > 1) refuse(`${alone} stands alone.`)

if (!existsSync(here('../dist/index.js')) && !process.env.COATCHECK_DIST)
  refuse('dist is missing: run `npm run build` in the root first (`npm run bench` there does).')
const { dependencies } = JSON.parse(readFileSync(here('package.json'), 'utf8'))
/** The version that is installed, or `null`. @param {string} name */
const installed = name => {
  const file = here(`node_modules/${name}/package.json`)
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : null
}
if (!install('bench')) process.exit(1)

const commit = () => {
  try {
    return `, commit ${execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: here('.'), encoding: 'utf8', stdio: 'pipe' }).trim()}`
  } catch {
    return ''
  }
}
const gigabytes = Math.round(totalmem() / 2 ** 30)
const command = ['npm run bench', ...(process.argv.length > 2 ? ['--', ...process.argv.slice(2)] : [])].join(' ')
const heading = [
  `\`${command}\`, ${new Date().toISOString().slice(0, 10)}${commit()}.`,
  `${cpus().length} CPUs (${cpus()[0]?.model.trim()}), ${gigabytes} GB, ${platform()} ${arch()}, Node ${process.versions.node}; ${loadavg()[0]?.toFixed(1)} processes were running or waiting when it began.`,
  `${Object.keys(dependencies)
    .map(name => `${name} ${installed(name)}`)
    .join(', ')}.`,
]
console.log(heading.join('\n'))

const started = performance.now()
const tables = isOwn ? [] : names.flatMap(name => STORES[name] ?? [])
if (tables.length > 0) {
  const medians = await (await import('./tables.mjs')).benchTables(tables, values.quick === true)
  if (values.write) await (await import('./figures.mjs')).writePage(medians, heading)
}
if (isOwn) {
  const { benchOwn } = await import('./own.mjs')
  await benchOwn(
    names.filter(name => name !== 'own'),
    values.write === true,
    heading,
  )
}
if (names.includes('growth'))
  await (await import('./growth.mjs')).benchGrowth(values.quick === true, values.write === true, heading)
if (names.includes('details')) await (await import('./details.mjs')).benchDetails()
if (names.includes('package')) await (await import('./package.mjs')).benchPackage()
if (names.includes('sweep')) await (await import('./sweep.mjs')).benchSweep()
if (names.includes('failover')) await (await import('./failover.mjs')).benchFailover(values.write === true, heading)
if (names.includes('compare')) {
  const { compareLibraries } = await import('./compare/compare.mjs')
  await compareLibraries({ quick: values.quick === true, write: values.write === true, heading: String(heading[0]) })
}
console.log(`\nTook ${Math.round((performance.now() - started) / 1000)} s.`)
// What the servers of the comparison keep open ends here.
process.exit()
