// @ts-check
// `npm run mutants -- src/session stores/memory src/visits/cookie.ts`: seeds small mistakes into rooms or files, one at a
// time, runs the tests that reach each, and prints those that no test noticed. Of a large room some files by lot, so that
// it takes minutes. Without arguments: all rooms that need no engine. Exits with 1 where a room is below its aim.
import { randomInt } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { Stryker } from '@stryker-mutator/core'
import { table } from '../scripts/table.mjs'
import { root } from '../scripts/vitest.mjs'
import { listOf } from './equivalents.mjs'
import { draw } from './lot.mjs'
import { outcomeOf, sourceOf, UNNOTICED } from './reporter.mjs'
import { ROOMS } from './rooms.mjs'

/** Mistakes in so many lines are tried in minutes. */
const ENOUGH_LINES = 150

const USAGE = `usage: npm run mutants -- [--all] [--seed N] [--concurrency N] [--anew] [--tests PATH ...] [ROOM or FILE[:FROM-TO] ...]
  rooms: ${Object.keys(ROOMS).join(', ')}
  FROM-TO          these lines of the file alone, such as 10-25; a file may be named several times
  --all            all files of a room, which may take hours; else some by lot, of ${ENOUGH_LINES} lines or more together
  --seed N         draws the files that an earlier run with this seed drew
  --concurrency N  processes that run tests at once; all processors but one by default
  --anew           tries again what an earlier run has tried on the same sources and tests
  --tests PATH     asks only this folder or file of test/, for a room or file whose own tests are the quickest`

/** @param {string} fault @returns {never} */
function refuse(fault) {
  console.error(`${fault}\n${USAGE}`)
  process.exit(2)
}

/** @param {string} path @returns {string} the room of a path */
const roomOf = path => path.split('/').slice(0, 2).join('/')

/** @param {string} folder @returns {string[]} its sources */
const filesOf = folder =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.ts') && !file.endsWith('.d.ts'))
    .map(file => `${folder}/${file.replaceAll('\\', '/')}`)
    .sort()

/** @param {string} folder */
function someOf(folder) {
  const files = filesOf(folder)
  const linesOf = (/** @type {string} */ file) => readFileSync(join(root, file), 'utf8').split('\n').length - 1
  const drawn = values.all ? files : draw(files, linesOf, ENOUGH_LINES, seedOfLot)
  if (drawn.length < files.length)
    console.log(
      `${folder}: ${drawn.length} of ${files.length} files, by lot with --seed ${seedOfLot}; all of them with --all`,
    )
  return drawn
}

function readArguments() {
  const options = /** @type {const} */ ({
    all: { type: 'boolean', default: false },
    seed: { type: 'string' },
    concurrency: { type: 'string' },
    anew: { type: 'boolean', default: false },
    tests: { type: 'string', multiple: true },
  })
  try {
    return parseArgs({ options, allowPositionals: true })
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error))
  }
}

const { values, positionals } = readArguments()
const concurrency = Number(values.concurrency ?? Math.max(1, availableParallelism() - 1))
if (!Number.isInteger(concurrency) || concurrency < 1)
  refuse(`--concurrency: expected a whole number from 1, got "${values.concurrency}"`)
const seedOfLot = Number(values.seed ?? randomInt(1_000_000))
if (!Number.isInteger(seedOfLot)) refuse(`--seed: expected a whole number, got "${values.seed}"`)
for (const path of values.tests ?? [])
  if (!path.startsWith('test/') || !existsSync(join(root, path))) refuse(`--tests: there is no ${path} in test/`)

/** Files by room: those named, or all of a room. @type {Map<string, string[]>} */
const wanted = new Map()
const named = positionals.map(path => path.replace(/^\.\/|\/$/g, ''))
/** The pieces that were named, by file. @type {Map<string, string[]>} */
const lines = new Map()
for (const given of named.length > 0 ? named : Object.keys(ROOMS).filter(room => !ROOMS[room]?.needsEngines)) {
  const [, path = given, range] = /^(.*\.ts):(\d+-\d+)$/.exec(given) ?? []
  if (range !== undefined) lines.set(path, [...(lines.get(path) ?? []), range])
  const room = roomOf(path)
  if (!ROOMS[room]) refuse(`${path} is in no room`)
  if (!existsSync(join(root, path))) refuse(`there is no ${path}`)
  const files = path.endsWith('.ts') ? [path] : someOf(path)
  wanted.set(room, [...new Set([...(wanted.get(room) ?? []), ...files])])
}

const NOTICED = ['Killed', 'Timeout']

/**
 * @param {string} room
 * @param {readonly string[]} files
 */
async function seed(room, files) {
  const { tests: ofRoom, needsEngines } = /** @type {import('./rooms.mjs').Room} */ (ROOMS[room])
  const tests = values.tests ?? ofRoom
  const cache = join(root, 'node_modules/.cache/coatcheck-mutants', room.replace('/', '-'))
  mkdirSync(cache, { recursive: true })
  process.env.COATCHECK_MUTANTS_TESTS = tests.join(' ')
  if (needsEngines) process.env.COATCHECK_ALL_ENGINES = '1'
  for (const file of files) sourceOf(join(root, file))
  const results = await new Stryker({
    mutate: files.flatMap(file => lines.get(file)?.map(range => `${file}:${range}`) ?? file),
    testRunner: 'vitest',
    vitest: { configFile: 'test/mutants/vitest.config.ts', related: false },
    plugins: ['@stryker-mutator/vitest-runner', join(root, 'test/mutants/reporter.mjs')],
    coverageAnalysis: 'perTest',
    // A part of a room, or of its tests, is tried afresh: the results of the others would be lost.
    incremental: values.tests === undefined && lines.size === 0 && filesOf(room).every(file => files.includes(file)),
    incrementalFile: join(cache, 'incremental.json'),
    force: values.anew,
    concurrency,
    // Outside of the project, so that nothing that lists its files meets the copy.
    tempDirName: join(tmpdir(), 'coatcheck-mutants'),
    cleanTempDir: 'always',
    // vitest checks no types.
    disableTypeChecks: false,
    ignorePatterns: ['dist', 'docs', 'site', '.github', 'test/bench', 'test/package', 'test/.worker-*'],
    reporters: ['unnoticed'],
    allowConsoleColors: false,
    logLevel: /** @type {import('@stryker-mutator/api/core').LogLevel} */ ('warn'),
    dryRunTimeoutMinutes: 15,
  }).runMutationTest()

  return results.map(outcomeOf)
}

/** @typedef {Awaited<ReturnType<typeof seed>>[number]} Outcome */

/**
 * @param {string} name
 * @param {readonly Outcome[]} outcomes
 */
function sum(name, outcomes) {
  const count = (/** @type {string} */ status) =>
    outcomes.filter(each => each.status === status && !each.isEquivalent).length
  const equivalent = outcomes.filter(each => each.isEquivalent).length
  const noticed = NOTICED.reduce((all, status) => all + count(status), 0)
  const unnoticed = UNNOTICED.reduce((all, status) => all + count(status), 0)
  const share = noticed + unnoticed === 0 ? 100 : (100 * noticed) / (noticed + unnoticed)
  const counts = [count('Killed'), count('Timeout'), count('Survived'), count('NoCoverage'), equivalent]
  return {
    share,
    row: [name, String(noticed + unnoticed + equivalent), ...counts.map(String), `${share.toFixed(1)} %`],
  }
}

let isBelow = false
for (const [room, files] of wanted) {
  const start = performance.now()
  const outcomes = await seed(room, files)
  const unnoticed = outcomes.filter(each => UNNOTICED.includes(each.status) && !each.isEquivalent)
  const lists = join(root, 'node_modules/.cache/coatcheck-mutants', room.replace('/', '-'), 'unnoticed')
  rmSync(lists, { recursive: true, force: true })
  for (const file of files) {
    const ofFile = unnoticed.filter(({ change }) => change.file === file)
    if (ofFile.length === 0) continue
    const list = join(lists, listOf(file))
    mkdirSync(dirname(list), { recursive: true })
    const entries = ofFile.map(({ change: { file: _, ...change } }) => ({ ...change, reason: '' }))
    writeFileSync(list, `${JSON.stringify(entries, null, 2)}\n`)
  }
  const whole = sum(room, outcomes)
  const ofFiles = files.map(
    file =>
      sum(
        file,
        outcomes.filter(({ change }) => change.file === file),
      ).row,
  )
  const head = ['', 'mistakes', 'noticed', 'by time', 'unnoticed', 'not reached', 'equivalent', 'noticed of the rest']
  const rows = [head, ...ofFiles, ...(files.length > 1 ? [whole.row] : [])]
  const aim = ROOMS[room]?.aim ?? 100
  const minutes = ((performance.now() - start) / 60_000).toFixed(1)
  console.log(`\n${table(rows)}\n${room}: ${whole.share.toFixed(1)} % noticed, ${aim} % is the aim; ${minutes} minutes`)
  if (unnoticed.length > 0)
    console.log(`What was not noticed, as test/mutants/equivalent would list it: ${relative(process.cwd(), lists)}\n`)
  isBelow ||= whole.share < aim
}
process.exitCode = isBelow ? 1 : 0
