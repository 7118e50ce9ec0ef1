// @ts-check
// npm run bench -- [memory] [redis] [sql] [alone] [details] [growth] [nodes] [sweep] [all] [--quick] [--long]
// Installs what it compares with (once, in this folder), then prints tables of this run.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { arch, cpus, loadavg, platform, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url))
/** @type {Record<string, readonly string[]>} */
const STORES = { memory: ['memory'], redis: ['node-redis', 'ioredis'], sql: ['postgresql', 'mariadb', 'sqlite'] }
const OTHERS = ['alone', 'details', 'growth', 'nodes', 'sweep']
const names = [...Object.keys(STORES), ...OTHERS, 'all']
const usage = `Usage: npm run bench -- ${names.map(name => `[${name}]`).join(' ')} [--quick] [--long]`

/** @returns {{ positionals: string[], values: { quick?: boolean, long?: boolean } }} */
function readArguments() {
  try {
    return parseArgs({ allowPositionals: true, options: { quick: { type: 'boolean' }, long: { type: 'boolean' } } })
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n${usage}`)
    process.exit(2)
  }
}
const { positionals, values } = readArguments()
const unknown = positionals.filter(name => !names.includes(name))
if (unknown.length > 0) {
  console.error(`unknown: ${unknown.join(', ')}. ${usage}`)
  process.exit(2)
}
/** Names that have no shorter or no longer form. */
const WITHOUT = { quick: ['alone', 'details', 'sweep'], long: ['alone', 'details', 'growth', 'nodes', 'sweep'] }
for (const form of /** @type {const} */ (['quick', 'long'])) {
  const lacking = positionals.filter(name => WITHOUT[form].includes(name))
  if (values[form] && lacking.length > 0) {
    console.error(`--${form}: ${lacking.join(', ')} has no such form. ${usage}`)
    process.exit(2)
  }
}
if (values.quick && values.long) {
  console.error(`--quick and --long: choose one. ${usage}`)
  process.exit(2)
}
const isAll = positionals.includes('all')
// Without a name: the table of each store.
const isWanted = (/** @type {string} */ name) =>
  isAll || positionals.includes(name) || (positionals.length === 0 && name in STORES)

if (!existsSync(here('../dist/index.js')) && !process.env.COATCHECK_DIST) {
  console.error('dist is missing: run `npm run build` in the root first (`npm run bench` there does)')
  process.exit(2)
}
const { dependencies } = JSON.parse(readFileSync(here('package.json'), 'utf8'))
/** The version that is installed, or `null`. @param {string} name */
const installed = name => {
  const file = here(`node_modules/${name}/package.json`)
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : null
}
if (Object.keys(dependencies).some(name => installed(name) !== dependencies[name]))
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: here('.'),
    stdio: 'inherit',
  })

const commit = () => {
  try {
    return `, commit ${execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: here('.'), encoding: 'utf8', stdio: 'pipe' }).trim()}`
  } catch {
    return ''
  }
}
const gigabytes = Math.round(totalmem() / 2 ** 30)
const command = ['npm run bench', ...(process.argv.length > 2 ? ['--', ...process.argv.slice(2)] : [])].join(' ')
console.log(`\`${command}\`, ${new Date().toISOString().slice(0, 10)}${commit()}.`)
console.log(
  `${cpus().length} CPUs (${cpus()[0]?.model.trim()}), ${gigabytes} GB, ${platform()} ${arch()}, Node ${process.versions.node}; ${loadavg()[0]?.toFixed(1)} processes were running or waiting when it began.`,
)
console.log(
  `${Object.keys(dependencies)
    .map(name => `${name} ${installed(name)}`)
    .join(', ')}.`,
)

const started = performance.now()
const seconds = () => (performance.now() - started) / 1000
if (Object.keys(STORES).some(isWanted)) {
  const { benchTables } = await import('./tables.mjs')
  await benchTables(
    Object.entries(STORES).flatMap(([name, tables]) => (isWanted(name) ? tables : [])),
    values.quick ? 'quick' : values.long ? 'long' : 'usual',
  )
}
if (isWanted('alone')) await (await import('./alone.mjs')).benchAlone()
if (isWanted('details')) await (await import('./details.mjs')).benchDetails()
if (isWanted('growth')) await (await import('./growth.mjs')).benchGrowth(values.quick === true)
if (isWanted('nodes')) await (await import('./nodes.mjs')).benchNodes(values.quick === true)
// A million rows take their time: only where it is named.
if (isWanted('sweep')) await (await import('./sweep.mjs')).benchSweep()
console.log(`\nTook ${Math.round(seconds())} s.`)
