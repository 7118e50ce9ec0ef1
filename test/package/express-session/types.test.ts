// What TypeScript makes of req.session, with the types of express-session and without them.
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { messageOf, OPTIONS, problemsIn, programs } from '../../support/compiler.ts'

const file = fileURLToPath(new URL('consumer.mts', import.meta.url))
const programOf = programs(OPTIONS)

/** What the compiler says about a module of an application. */
function problems(code: string): string[] {
  const program = programOf([file], new Map([[file, code]]))
  return problemsIn(program, [program.getSourceFile(file)!]).map(messageOf)
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
