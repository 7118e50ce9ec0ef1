import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { messageOf, OPTIONS, problemsIn, programs } from '../../support/compiler.ts'

const [compiles, refused, consumer] = ['compiles.ts', 'refused.ts', 'consumer.mts'].map(name =>
  fileURLToPath(new URL(name, import.meta.url)),
) as [string, string, string]
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

/** What the compiler says about a module of an application. */
function problems(code: string): string[] {
  const program = programOf([consumer], new Map([[consumer, code]]))
  return problemsIn(program, [program.getSourceFile(consumer)!]).map(messageOf)
}

const APPLICATION = `
import { SessionManager } from 'coatcheck'
import { expressSession } from 'coatcheck/express-session'
import { MemoryStore } from 'coatcheck/stores/memory'
import express from 'express'

const session = expressSession(new SessionManager({ store: new MemoryStore() }), {
  userOf: data => (data.userId === undefined ? null : { id: data.userId, name: data.name }),
})
const app = express()
app.use(session)
app.get('/', async (request, response) => {
  request.session.views = (request.session.views ?? 0) + 1
  request.session.save(error => response.json(error ?? request.session.views))
  const views: number | undefined = request.session.views
  const { maxAge } = request.session.cookie
  const user: bigint | undefined = (await session.visits.of(request, response).get())?.user?.id
  console.log(views, maxAge, user, request.sessionID)
})
`

describe('the types of req.session', () => {
  it('are those of express-session where an application has them, its SessionData included: nothing changes', () => {
    const theirs = `
import 'express-session'
declare module 'express-session' {
  interface SessionData { views: number }
}
`
    expect(problems(theirs + APPLICATION)).toEqual([])
    expect(problems(theirs + APPLICATION.replace('.views ??', '.view ??')).join()).toContain("'view'")
  }, 120_000)

  it('are what an application says, where it has not', () => {
    const ours = `
import type { RequestSession } from 'coatcheck/express-session'
declare global {
  namespace Express {
    interface Request { session: RequestSession<{ views: number }>; sessionID: string | undefined }
  }
}
`
    expect(problems(ours + APPLICATION)).toEqual([])
    expect(problems(ours + APPLICATION.replace('.views ??', '.view ??')).join()).toContain("'view'")
  }, 120_000)

  it('are not touched where an application says nothing', () => {
    expect(problems(APPLICATION).join()).toContain("Property 'session' does not exist")
  }, 120_000)
})
