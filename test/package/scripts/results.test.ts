import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { leftOut } from '../../support/scripts/engines-reporter.ts'
import { counts } from '../../support/scripts/results.mjs'
import { root } from '../../support/scripts/vitest.mjs'

const folder = mkdtempSync(join(tmpdir(), 'coatcheck-results-'))
afterAll(() => rmSync(folder, { recursive: true }))

const report = (testResults: unknown[]) => {
  const path = join(folder, 'report.json')
  writeFileSync(path, JSON.stringify({ testResults }))
  return path
}
const assertion = (status: string, fullName: string) => ({ status, fullName, ancestorTitles: ['the group'] })

describe('the count that closes a CI run', () => {
  it('names every failed test and every group of skipped ones', () => {
    const sum = counts(
      report([
        {
          name: '/x/test/a.test.ts',
          status: 'failed',
          message: '',
          assertionResults: [assertion('passed', 'one'), assertion('failed', 'two'), assertion('pending', 'three')],
        },
      ]),
    )
    expect(sum).toMatchObject({ passed: 1, failed: 1, skipped: 1, failures: ['/x/test/a.test.ts: two'] })
    expect([...sum.skips]).toEqual([['test/a.test.ts: the group', 1]])
  })

  it('counts a file that could not be loaded as a failure', () => {
    expect(
      counts(report([{ name: '/x/test/b.test.ts', status: 'failed', message: 'boom', assertionResults: [] }])),
    ).toMatchObject({ failed: 1, failures: ['/x/test/b.test.ts could not be run'] })
  })

  it('counts a missing report as a failure', () => {
    expect(counts(join(folder, 'none.json'))).toMatchObject({ passed: 0, failed: 1 })
  })

  it('names what was thrown outside of any test, which fails a run in which all tests pass', () => {
    const results = mkdtempSync(join(tmpdir(), 'coatcheck-unhandled-'))
    const late = "it('passes', () => { setImmediate(() => { throw new Error('too late') }) })"
    const end = 'afterAll(() => new Promise(done => setImmediate(() => setImmediate(done))))'
    writeFileSync(join(results, 'late.test.js'), `${late}\n${end}\n`)
    const vitest = join(root, 'node_modules/vitest/vitest.mjs')
    const reporter = fileURLToPath(new URL('../../support/scripts/engines-reporter.ts', import.meta.url))
    const env = { ...process.env, COATCHECK_RESULTS: results }
    const args = [vitest, 'run', '--root', results, '--globals', `--reporter=${reporter}`]
    const run = spawnSync(process.execPath, args, { env })
    const said = spawnSync(process.execPath, [join(root, 'test/support/scripts/summary.mjs'), results], {
      encoding: 'utf8',
    })
    rmSync(results, { recursive: true })
    expect(run.status).toBe(1)
    expect(said.stdout).toMatch(/outside of any test: .*late\.test\.js.*Error: too late/)
  })
})

it('npm test names the libraries that it leaves to other commands', () => {
  const left = leftOut(false).map(([, what]) => what!)
  expect(left.join('\n')).toMatch(/^test\/libraries: .*better-auth.*fastify.*koa/m)
  expect(left).toContain('test/connect on other libraries than Express')
  expect(leftOut(true).flat()).not.toContain('test/connect on other libraries than Express')
})
