// @ts-check
// `npm run defects -- [NAME]`: puts defects that this library once had back, one at a time, into a copy of the project, and
// runs the test that was written for each. Exits with 1 where one of them passes nevertheless. A NAME chooses those whose
// name begins with it. Defects that an order of requests shows are in test/proof/orders/bugs.ts.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { installEngines } from '../scripts/install-engines.mjs'
import { table } from '../scripts/table.mjs'
import { root } from '../scripts/vitest.mjs'
import { DEFECTS, patched } from './defects.mjs'

/** @typedef {import('./defects.mjs').Defect} Defect */
/** @typedef {{ passed: number, failed: number, isSound: boolean, printed: string }} Result */

const chosen = DEFECTS.filter(({ name }) => name.startsWith(process.argv[2] ?? ''))
if (chosen.length === 0) {
  console.error(
    `defects: no name begins with "${process.argv[2]}"; there are: ${DEFECTS.map(({ name }) => name).join('; ')}`,
  )
  process.exit(2)
}

installEngines([...new Set(chosen.flatMap(({ engines = [] }) => engines))])
const folder = mkdtempSync(join(tmpdir(), 'coatcheck-defects-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
const LINKED = ['node_modules', 'test/drivers/node_modules', 'test/drivers/.bin']
const LEFT_OUT = new Set([...LINKED, '.git', 'site'].map(path => join(root, path)))
cpSync(root, folder, { recursive: true, filter: path => !LEFT_OUT.has(path) })
for (const path of LINKED) symlinkSync(join(root, path), join(folder, path))
// Tests of the repository ask git for its files.
spawnSync('git', ['init', '--quiet', folder])

/** @param {Pick<Defect, 'test' | 'only' | 'isBuilt'>} defect @returns {Result} */
function run({ test, only, isBuilt }) {
  /** @param {string} command @param {readonly string[]} args */
  const call = (command, args) =>
    spawnSync(command, args, {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
      env: { ...process.env, COATCHECK_ALL_ENGINES: '1', NO_COLOR: '1' },
    })
  if (isBuilt) {
    const { status, stderr } = call('npm', ['run', '--silent', 'build'])
    if (status !== 0) throw new Error(`it does not build:\n${stderr}`)
  }
  const result = join(folder, 'result.json')
  rmSync(result, { force: true })
  const filter = only === undefined ? [] : ['-t', only]
  const { status, stdout, stderr } = call(process.execPath, [
    'node_modules/vitest/vitest.mjs',
    'run',
    test,
    ...filter,
    '--reporter=json',
    `--outputFile=${result}`,
  ])
  const printed = `${stdout}\n${stderr}`
  const { numPassedTests, numFailedTests, success } = JSON.parse(readFileSync(result, 'utf8'))
  // An error that nothing handles fails the run, and no test.
  return { passed: numPassedTests, failed: numFailedTests, isSound: success === true && status === 0, printed }
}

/** What the tests say of the project as it is. @type {Map<string, Result>} */
const before = new Map()
const rows = [['defect', 'test', '']]
let isMissed = false
for (const defect of chosen) {
  const { name, file, test, only } = defect
  const asked = `${test} ${only ?? ''}`
  const sound = before.get(asked) ?? run(defect)
  before.set(asked, sound)
  const source = readFileSync(join(folder, file), 'utf8')
  let answer = 'found'
  if (!sound.isSound || sound.passed === 0) {
    answer = `NOT ASKED: without it ${sound.failed} tests fail, ${sound.passed} pass`
    console.log(sound.printed)
  } else {
    try {
      writeFileSync(join(folder, file), patched(defect, source))
      // A change that cannot be loaded fails no test, and passes none.
      const { failed, passed, isSound } = run(defect)
      if (failed + passed === 0) answer = 'NOT ASKED: no test ran with it'
      else if (isSound) answer = 'NOT FOUND'
    } catch (error) {
      answer = `NOT ASKED: ${error instanceof Error ? error.message : error}`
    } finally {
      writeFileSync(join(folder, file), source)
    }
  }
  isMissed ||= answer !== 'found'
  console.log(`${answer}: ${name}`)
  rows.push([name, asked, answer])
}
console.log(`\n${table(rows)}\n${rows.filter(row => row[2] === 'found').length} of ${chosen.length} found`)
process.exitCode = isMissed ? 1 : 0
