import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { root } from '../../support/scripts/vitest.mjs'

/** Runs a file of tests with this configuration of vitest; answers what was printed, and the folder. */
function run(tests: string, config: object) {
  const folder = mkdtempSync(join(tmpdir(), 'coatcheck-stuck-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'stuck.test.js'), tests)
  const test = { globals: true, ...config }
  writeFileSync(join(folder, 'vitest.config.js'), `export default ${JSON.stringify({ test })}\n`)
  const args = [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--root', folder]
  return { folder, printed: spawnSync(process.execPath, args, { encoding: 'utf8' }).stdout }
}

function resultsOf(tests: string) {
  const setupFiles = [join(root, 'test/support/stuck-files.ts')]
  const { folder } = run(tests, { setupFiles, reporters: ['json'], outputFile: 'report.json' })
  const { testResults } = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8'))
  const results = testResults[0].assertionResults as { title: string; status: string; failureMessages: string[] }[]
  return results.map(({ title, status, failureMessages }) =>
    /^Error: not run: 3 tests before it/.test(failureMessages.join()) ? `${title} not run` : `${title} ${status}`,
  )
}

it('gives a file up whose tests run into their time limits one after the other, and says so', () => {
  const stuck = (name: string) => `it('${name}', () => new Promise(() => {}), 50)\n`
  const passes = (name: string) => `it('${name}', () => {})\n`
  const fails = (name: string) => `it('${name}', () => { throw new Error('at once') })\n`
  const begin = [stuck('a'), stuck('b'), passes('c'), stuck('d'), stuck('e'), fails('f')]
  const end = [stuck('g'), stuck('h'), stuck('i'), passes('j'), stuck('k')]
  expect(resultsOf([...begin, ...end].join(''))).toEqual([
    ...['a failed', 'b failed', 'c passed', 'd failed', 'e failed', 'f failed'],
    ...['g failed', 'h failed', 'i failed', 'j not run', 'k not run'],
  ])
})

it('names what has been running for long', () => {
  const reporter = join(root, 'test/support/scripts/engines-reporter.ts')
  const slow = "it('waits', () => new Promise(done => setTimeout(done, 600)))"
  const { printed } = run(slow, { reporters: [[reporter, { long: 100 }]] })
  expect(printed).toMatch(/^running for \d s: stuck\.test\.js: waits$/m)
})
