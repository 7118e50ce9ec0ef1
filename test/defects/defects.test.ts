import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { DEFECTS, patched } from './defects.mjs'

const read = (file: string) => readFileSync(fileURLToPath(new URL(`../../${file}`, import.meta.url)), 'utf8')

it('each defect has a name of its own, can be put into the sources as they are, and names a test that is there', () => {
  expect(new Set(DEFECTS.map(({ name }) => name)).size).toBe(DEFECTS.length)
  for (const defect of DEFECTS) {
    const source = read(defect.file)
    expect(patched(defect, source), defect.name).not.toBe(source)
    expect(read(defect.test).length, defect.name).toBeGreaterThan(0)
  }
})

it('a change whose line is gone is told', () => {
  const defect = { file: 'a.ts', from: 'one', to: 'two' }
  expect(patched(defect, 'one line')).toBe('two line')
  expect(() => patched(defect, 'no line')).toThrow('a.ts: expected once: one')
  expect(() => patched(defect, 'one, one')).toThrow('a.ts: expected once: one')
})
