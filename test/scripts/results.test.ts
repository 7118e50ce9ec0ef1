import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { counts } from './results.mjs'
import { table } from './table.mjs'

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

  it('lines columns up', () => {
    expect(
      table([
        ['a', 'b'],
        ['long', ''],
      ]),
    ).toBe('  a     b\n  ----  -\n  long')
  })
})
