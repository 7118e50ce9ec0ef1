import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const EXPECTED = /^\s*\/\/ @ts-expect-error (TS\d+)(?: (.+))?$/

/** What TypeScript says of one file of this folder, with our own tsconfig; `change` edits its text first. */
function diagnose(file: string, change = (text: string) => text) {
  const config = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config.config, ts.sys, root)
  const host = ts.createCompilerHost(options)
  const readFile = host.readFile.bind(host)
  host.readFile = path => {
    const text = readFile(path)
    return path === file && text !== undefined ? change(text) : text
  }
  const program = ts.createProgram([file], options, host)
  const source = program.getSourceFile(file)!
  return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map(diagnostic => ({
    line: source.getLineAndCharacterOfPosition(diagnostic.start ?? 0).line + 1,
    code: `TS${diagnostic.code}`,
    message: ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n'),
  }))
}

describe('the types of the API', () => {
  it('accept what users write, without a type argument', () => {
    expect(diagnose(here('compiles.ts'))).toEqual([])
  }, 180_000)

  it('refuse each mistake, for the reason that stands beside it', () => {
    const path = here('refused.ts')
    const lines = readFileSync(path, 'utf8').split('\n')
    const expected = lines.flatMap((line, index) => {
      const [, code, words = ''] = EXPECTED.exec(line) ?? []
      return code === undefined ? [] : [{ line: index + 2, code, words }]
    })
    expect(expected.length).toBeGreaterThan(35)
    // Without the comments every one of them has to be reported where it stands, and nothing else.
    const found = diagnose(path, text => text.replaceAll('@ts-expect-error', 'refused:'))
    const show = ({ line, code }: { line: number; code: string }) => `${line} ${code} ${lines[line - 1]?.trim()}`
    expect(found.map(show)).toEqual(expected.map(show))
    for (const [index, { words }] of expected.entries()) expect(found[index]?.message).toContain(words)
  }, 180_000)
})
