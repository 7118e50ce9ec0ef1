import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { read, root, table } from '../../support/pages.ts'

const FOLDER = 'test/proof/field'

/** The number of each test of this folder. */
const tests = readdirSync(join(root, FOLDER))
  .filter(file => file.endsWith('.test.ts'))
  .flatMap(file => [...read(`${FOLDER}/${file}`).matchAll(/\bit\(\s*'((?:CVE-\d{4}-\d+|[\w/-]+ \d+)): \w/g)])
  .map(([, number]) => number!)

it('the table of regressions has each test by its number, and no other line; docs/security.md says how many', () => {
  const rows = table(`${FOLDER}/README.md`, 'Regressions of the field').map(([number]) => number!)
  expect(rows.toSorted()).toEqual(tests.toSorted())
  expect(new Set(rows).size).toBe(rows.length)
  expect(rows.length).toBeGreaterThan(20)
  expect(read('docs/security.md')).toContain(` ${rows.length} defects `)
})
