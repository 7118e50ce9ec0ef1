import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { counts } from '../../support/scripts/results.mjs'

it('the count that closes a CI run names every failed test, every file that could not be run, and what was skipped', () => {
  const folder = mkdtempSync(join(tmpdir(), 'coatcheck-results-'))
  const path = join(folder, 'report.json')
  const assertion = (status: string, fullName: string) => ({ status, fullName, ancestorTitles: ['the group'] })
  const testResults = [
    {
      name: '/x/test/a.test.ts',
      status: 'failed',
      message: '',
      assertionResults: [assertion('passed', 'one'), assertion('failed', 'two'), assertion('pending', 'three')],
    },
    { name: '/x/test/b.test.ts', status: 'failed', message: 'boom', assertionResults: [] },
  ]
  writeFileSync(path, JSON.stringify({ testResults }))
  const sum = counts(path)
  expect(sum).toMatchObject({ passed: 1, failed: 2, skipped: 1 })
  expect(sum.failures).toEqual(['/x/test/a.test.ts: two', '/x/test/b.test.ts could not be run'])
  expect([...sum.skips]).toEqual([['test/a.test.ts: the group', 1]])
  rmSync(folder, { recursive: true })
  expect(counts(path), 'a missing report').toMatchObject({ passed: 0, failed: 1 })
})
