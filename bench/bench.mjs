// @ts-check
// npm run bench -- [memory] [redis] [sql] [--quick]
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
const usage =
  'Usage: npm run bench -- [memory] [redis] [sql] [--quick | --write], own [redis] [sql] [--write], growth [--quick | --write], failover [--write], or compare [--quick | --write]'

/** @param {string} problem @returns {never} */
function refuse(problem) {
  console.error(`${problem}\n${usage}`)
  process.exit(2)
}

function readArguments() {
  const flag = { type: /** @type {const} */ ('boolean'), default: false }
  try {
    return parseArgs({ allowPositionals: true, options: { quick: flag, write: flag } })
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error))
  }
}
const { positionals, values } = readArguments()
const { quick, write } = values
const part = positionals.find(name => ['own', 'growth', 'failover', 'compare'].includes(name)) ?? 'stores'
const named = positionals.filter(name => name !== part)
for (const name of named)
  if (!STORES[name] || !['own', 'stores'].includes(part)) refuse(`${name}: unknown, or not together with ${part}.`)
if (quick && write) refuse('a quick run lacks rows and rounds: it is not written.')
if (quick && ['own', 'failover'].includes(part)) refuse(`${part} takes no --quick.`)
if (write && part === 'stores' && named.length > 0) refuse('all stores are written, or none: the page is of one run.')

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
if (part === 'stores') {
  const stores = (named.length > 0 ? named : Object.keys(STORES)).flatMap(name => STORES[name] ?? [])
  const medians = await (await import('./tables.mjs')).benchTables(stores, quick)
  if (write) await (await import('./figures.mjs')).writePage(medians, heading)
} else if (part === 'own') await (await import('./own.mjs')).benchOwn(named, write, heading)
else if (part === 'growth') await (await import('./growth.mjs')).benchGrowth(quick, write, heading)
else if (part === 'failover') await (await import('./failover.mjs')).benchFailover(write, heading)
else await (await import('./compare/compare.mjs')).compareLibraries({ quick, write, heading: String(heading[0]) })
console.log(`\nTook ${Math.round((performance.now() - started) / 1000)} s.`)
// What the servers of the comparison keep open ends here.
process.exit()
