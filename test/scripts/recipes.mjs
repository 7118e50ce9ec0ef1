// @ts-check
// `npm run test:recipes [-- express koa]`: installs and builds the recipes of examples/ and walks through each.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from './build.mjs'
import { counts } from './results.mjs'
import { table } from './table.mjs'
import { root, vitest } from './vitest.mjs'

const examples = join(root, 'examples')
const recipes = readdirSync(examples).filter(name => existsSync(join(examples, name, 'package.json')))
const wanted = process.argv.slice(2)
const unknown = wanted.filter(name => !recipes.includes(name))
if (unknown.length > 0) {
  console.error(`There is no recipe ${unknown.join(', ')}: there are ${recipes.join(', ')}.`)
  process.exit(2)
}

// Frameworks ask for the network otherwise.
const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1' }

/** @param {string} name @param {string[]} args @returns {boolean} whether it succeeded */
const npm = (name, args) =>
  spawnSync('npm', args, {
    cwd: join(examples, name),
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
    shell: process.platform === 'win32',
  }).status === 0

/** Restarting it covers a registry that was unreachable for a moment, nothing else. @param {string} name */
function install(name) {
  const args = ['install', '--ignore-scripts', '--no-package-lock', '--no-audit', '--no-fund', '--prefer-offline']
  return npm(name, args) || npm(name, args)
}

/** @param {string} name */
function compile(name) {
  const { scripts } = JSON.parse(readFileSync(join(examples, name, 'package.json'), 'utf8'))
  return scripts.build === undefined || npm(name, ['run', 'build'])
}

/** @param {number} since */
const seconds = since => `${((Date.now() - since) / 1000).toFixed(1)} s`

await build()
const results = process.env.COATCHECK_RESULTS ?? mkdtempSync(join(tmpdir(), 'coatcheck-recipes-'))
const rows = [['recipe', 'passed', 'failed', 'install', 'build', 'walk', 'verdict']]
let failed = false
for (const name of wanted.length > 0 ? wanted : recipes) {
  console.log(`\nRecipe ${name}`)
  const begun = Date.now()
  const isInstalled = install(name)
  const installed = seconds(begun)
  if (!isInstalled) {
    rows.push([name, '-', '-', installed, '-', '-', 'could not be installed'])
    failed = true
    continue
  }
  const compiling = Date.now()
  const isCompiled = compile(name)
  const compiled = seconds(compiling)
  if (!isCompiled) {
    rows.push([name, '-', '-', installed, compiled, '-', 'could not be built'])
    failed = true
    continue
  }
  const report = join(results, `recipe-${name}.json`)
  const walked = Date.now()
  const test = `test/recipes/${name}.test.ts`
  const args = [test, '--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  const status = vitest(args, { env: { ...env, COATCHECK_RECIPES: '1' } })
  const sum = counts(report)
  const ok = status === 0 && sum.failed === 0 && sum.skipped === 0 && sum.passed > 0
  failed ||= !ok
  rows.push([name, `${sum.passed}`, `${sum.failed}`, installed, compiled, seconds(walked), ok ? 'ok' : 'FAILED'])
}
if (process.env.COATCHECK_RESULTS === undefined) rmSync(results, { recursive: true })
console.log(`\n${table(rows)}\n`)
process.exitCode = failed ? 1 : 0
