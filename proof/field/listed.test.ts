import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { read, root, table } from '../../test/support/pages.ts'

const FOLDER = 'proof/field'

/** Number and sentence of each test of this folder. */
const tests = readdirSync(join(root, FOLDER))
  .filter(file => file.endsWith('.test.ts'))
  .flatMap(file => [
    ...read(`${FOLDER}/${file}`).matchAll(/\bit\(\s*'((?:CVE-\d{4}-\d+|[\w/-]+ \d+)): ((?:[^'\\]|\\.)+)'/g),
  ])
  .map(([, number, sentence]) => ({ number: number!, sentence: sentence!.replaceAll("\\'", "'") }))

describe('the table of regressions in docs/security.md', () => {
  const rows = table('docs/security.md', 'Regressions of the field').map(([number, , sentence]) => ({
    number: number!,
    sentence: sentence!,
  }))

  it('has each test by its number and its sentence, and no other line', () => {
    const byNumber = (a: { number: string }, b: { number: string }) => a.number.localeCompare(b.number)
    expect(rows.toSorted(byNumber)).toEqual(tests.toSorted(byNumber))
    expect(new Set(rows.map(({ number }) => number)).size).toBe(rows.length)
    expect(rows.length).toBeGreaterThan(20)
  })
})
