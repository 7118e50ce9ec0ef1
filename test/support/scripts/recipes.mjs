// @ts-check
// `npm run test:recipes [-- express koa]`: installs the recipes of examples/, builds those that have to be, and walks
// through each. `-- --install` stops before the walks; with COATCHECK_RESULTS the next call goes on from there.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from './build.mjs'
import { table } from './table.mjs'
import { root, vitest } from './vitest.mjs'

const examples = join(root, 'examples')
const recipes = readdirSync(examples).filter(name => existsSync(join(examples, name, 'package.json')))
const INSTALL = '--install'
const named = process.argv.slice(2).filter(name => name !== INSTALL)
const unknown = named.filter(name => !recipes.includes(name))
if (unknown.length > 0) {
  console.error(`There is no recipe ${unknown.join(', ')}: there are ${recipes.join(', ')}.`)
  process.exit(2)
}
const wanted = named.length > 0 ? named : recipes
const results = process.env.COATCHECK_RESULTS ?? mkdtempSync(join(tmpdir(), 'coatcheck-recipes-'))
if (process.env.COATCHECK_RESULTS === undefined) process.once('exit', () => rmSync(results, { recursive: true }))

// Frameworks ask for the network otherwise.
const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1' }

/** @param {string} name @param {string[]} args @returns {Promise<boolean>} whether it succeeded */
const npm = (name, args) =>
  new Promise(resolve => {
    const cwd = join(examples, name)
    const running = spawn('npm', args, {
      cwd,
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
      shell: process.platform === 'win32',
    })
    running.once('error', () => resolve(false))
    running.once('exit', code => resolve(code === 0))
  })

/** Restarting the install covers a registry that was unreachable for a moment, nothing else. @param {string} name */
async function install(name) {
  const begun = Date.now()
  const args = ['install', '--ignore-scripts', '--no-package-lock', '--no-audit', '--no-fund', '--prefer-offline']
  let verdict = (await npm(name, args)) || (await npm(name, args)) ? '' : 'could not be installed'
  const { scripts } = JSON.parse(readFileSync(join(examples, name, 'package.json'), 'utf8'))
  if (verdict === '' && scripts.build && !(await npm(name, ['run', '--silent', 'build'])))
    verdict = 'could not be built'
  return { verdict, seconds: `${((Date.now() - begun) / 1000).toFixed(1)} s` }
}

/** @returns {Promise<[name: string, told: Awaited<ReturnType<typeof install>>][]>} */
async function installAll() {
  await build()
  /** @type {[string, Awaited<ReturnType<typeof install>>][]} */
  const installed = []
  const waiting = [...wanted]
  // Three at a time: one waits for the registry while others unpack.
  await Promise.all(
    Array.from({ length: 3 }, async () => {
      for (let name = waiting.shift(); name !== undefined; name = waiting.shift())
        installed.push([name, await install(name)])
    }),
  )
  return installed
}

const before = join(results, 'recipes.installed')
if (process.argv.includes(INSTALL)) {
  writeFileSync(before, JSON.stringify(await installAll()))
  process.exit()
}
/** @type {Map<string, Awaited<ReturnType<typeof install>>>} */
const installed = new Map(existsSync(before) ? JSON.parse(readFileSync(before, 'utf8')) : await installAll())

const report = join(results, 'recipes.json')
const tests = wanted.filter(name => installed.get(name)?.verdict === '').map(name => `test/recipes/${name}.test.ts`)
const args = [...tests, '--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
const status = tests.length > 0 ? vitest(args, { env }) : 1

/** @type {import('./results.mjs').File[]} */
const files = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')).testResults : []
const rows = [['recipe', 'passed', 'failed', 'install, build', 'walk', 'verdict']]
for (const name of wanted) {
  const { verdict = 'not installed', seconds = '-' } = installed.get(name) ?? {}
  const file = files.find(one => one.name.endsWith(`/test/recipes/${name}.test.ts`))
  const all = file?.assertionResults ?? []
  const passed = all.filter(test => test.status === 'passed').length
  const walk = file ? `${((file.endTime - file.startTime) / 1000).toFixed(1)} s` : '-'
  const isOk = passed > 0 && passed === all.length && file?.status === 'passed'
  rows.push([name, `${passed}`, `${all.length - passed}`, seconds, walk, verdict || (isOk ? 'ok' : 'FAILED')])
}
console.log(`\n${table(rows)}\n`)
process.exitCode = status === 0 && rows.slice(1).every(row => row.at(-1) === 'ok') ? 0 : 1
