// @ts-check
// npm run bench -- [memory] [redis] [sql] [sweep] [all] [--long]
// Installs what it compares with (once, in this folder), then prints tables of ratios from this run.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { arch, cpus, platform } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url))
const GROUPS = ['memory', 'redis', 'sql', 'sweep']

const { positionals, values } = parseArgs({ allowPositionals: true, options: { long: { type: 'boolean' } } })
const unknown = positionals.filter(name => name !== 'all' && !GROUPS.includes(name))
if (unknown.length > 0) {
  console.error(`unknown: ${unknown.join(', ')}. Usage: npm run bench -- [memory] [redis] [sql] [sweep] [all] [--long]`)
  process.exit(2)
}
const isWanted = (/** @type {string} */ group) =>
  positionals.includes('all') || positionals.includes(group) || (positionals.length === 0 && group === 'memory')
// A million rows take their time: only where it is named, or with --long beside sql.
const isSweepWanted = positionals.includes('sweep') || (values.long === true && isWanted('sql'))

if (!existsSync(here('../../dist/index.js')) && !process.env.COATCHECK_DIST) {
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
const versions = Object.keys(dependencies).map(name => `${name} ${installed(name)}`)
console.log(`Node ${process.versions.node}, ${platform()} ${arch()}, ${cpus().length} CPUs. ${versions.join(', ')}.`)
console.log('Processor time (user and system) of the server process per request, as a ratio of the same round;')
console.log('medians of interleaved rounds. Below 1.00 and 0.05 more or less is noise.')

const started = performance.now()
if (isWanted('memory')) await (await import('./memory.mjs')).benchMemory()
if (isWanted('redis')) await (await import('./redis.mjs')).benchRedis()
if (isWanted('sql')) await (await import('./sql.mjs')).benchSql()
if (isSweepWanted) await (await import('./sweep.mjs')).benchSweep()
console.log(`\nTook ${Math.round((performance.now() - started) / 1000)} s.`)
