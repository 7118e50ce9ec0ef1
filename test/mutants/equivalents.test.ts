import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { describeMutant, equivalents, staleness } from './equivalents.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const SOURCE = 'const limit =\n  count > 0\n    ? count\n    : 1\n'

it('lists a change that nothing can notice with its reason, and only while the sources have that text', () => {
  for (const entry of equivalents())
    expect(staleness(entry, readFileSync(root + entry.file, 'utf8')), `${entry.file}: ${entry.line}`).toBeNull()
})

it('lists each change once', () => {
  const changes = equivalents().map(({ file, mutator, line, from, to }) => [file, mutator, line, from, to].join('\n'))
  expect(changes.filter((change, index) => changes.indexOf(change) !== index)).toEqual([])
})

it('tells an entry whose text is gone, and one without a reason', () => {
  const entry = {
    file: 'a.ts',
    mutator: 'm',
    line: 'count > 0',
    from: 'count > 0 ? count : 1',
    to: '1',
    reason: 'same',
  }
  expect(staleness(entry, SOURCE)).toBeNull()
  expect(staleness({ ...entry, line: 'count < 0' }, SOURCE)).toBe('no such line: count < 0')
  expect(staleness({ ...entry, from: 'count > 1' }, SOURCE)).toBe('no such text: count > 1')
  expect(staleness({ ...entry, reason: '' }, SOURCE)).toBe('it has no reason')
})

it('describes a change by its line, and by what it replaces, also over several lines', () => {
  const change = (start: object, end: object, replacement: string) =>
    describeMutant({ fileName: '', mutatorName: 'm', location: { start, end } as any, replacement }, 'a.ts', SOURCE)
  expect(change({ line: 2, column: 3 }, { line: 2, column: 12 }, 'count >= 0')).toEqual({
    file: 'a.ts',
    mutator: 'm',
    line: 'count > 0',
    from: 'count > 0',
    to: 'count >= 0',
  })
  expect(change({ line: 2, column: 3 }, { line: 4, column: 8 }, '1')).toMatchObject({ from: 'count > 0 ? count : 1' })
})
