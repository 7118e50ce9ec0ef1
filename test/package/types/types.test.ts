import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { messageOf, OPTIONS, problemsIn, programs } from '../../support/compiler.ts'

const [compiles, refused] = ['compiles.ts', 'refused.ts'].map(name =>
  fileURLToPath(new URL(name, import.meta.url)),
) as [string, string]
const EXPECTED = /^\s*\/\/ @ts-expect-error (TS\d+)(?: (.+))?$/
const lines = readFileSync(refused, 'utf8').split('\n')
// Without the comments every mistake has to be reported where it stands, and nothing else.
const uncommented = lines.join('\n').replaceAll('@ts-expect-error', 'refused:')
const programOf = programs(OPTIONS)
const program = programOf([compiles, refused], new Map([[refused, uncommented]]))

/** What TypeScript says of one file of this folder, with our own tsconfig. */
function diagnose(path: string) {
  const source = program.getSourceFile(path)!
  return problemsIn(program, [source]).map(diagnostic => ({
    line: source.getLineAndCharacterOfPosition(diagnostic.start ?? 0).line + 1,
    code: `TS${diagnostic.code}`,
    message: messageOf(diagnostic),
  }))
}

describe('the types of the API', () => {
  it('accept what users write, without a type argument', () => {
    expect(diagnose(compiles)).toEqual([])
  }, 180_000)

  it('refuse each mistake, for the reason that stands beside it', () => {
    const expected = lines.flatMap((line, index) => {
      const [, code, words = ''] = EXPECTED.exec(line) ?? []
      return code === undefined ? [] : [{ line: index + 2, code, words }]
    })
    expect(expected.length).toBeGreaterThan(35)
    const found = diagnose(refused)
    const show = ({ line, code }: { line: number; code: string }) => `${line} ${code} ${lines[line - 1]?.trim()}`
    expect(found.map(show)).toEqual(expected.map(show))
    for (const [index, { words }] of expected.entries()) expect(found[index]?.message).toContain(words)
  }, 180_000)
})
