// What the response to a request does with our cookies, and with those of others beside them.

import { SessionManager, type Visit } from 'coatcheck'
import { fetchVisits } from 'coatcheck/fetch'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { FetchHead, writeRules } from '../../../src/visits/head.ts'
import type { Visit as AnyVisit } from '../../../src/visits/visit.ts'
import { jar } from '../../support/edge-service.ts'

const ADA = { user: { id: 42n, name: 'ada' } }

function made(edge: Parameters<typeof fetchVisits>[1] = {}) {
  const store = new MemoryStore()
  const manager = () => new SessionManager({ store, sweepInterval: false, rememberFor: '30d' })
  const sessions = manager()
  const service = fetchVisits(sessions, edge)
  const request = (cookie: string | null) =>
    new Request('https://shop.example/', { method: 'POST', headers: cookie === null ? {} : { cookie } })
  const visit = (cookie: string | null = null) => service.of(request(cookie))
  const handle = (cookie: string | null, handler: (visit: Visit) => Promise<Response>) =>
    service.handle(request(cookie), handler as never) as Promise<Response>
  const series = () => store.listUser('42', 'remember', { now: Date.now() })
  return { sessions, elsewhere: manager(), visit, handle, series }
}

/** The Set-Cookie lines of a response in which the application sets cookies too. */
function beside(visit: unknown, ...theirs: string[]): string[] {
  const headers = new Headers(theirs.map(line => ['Set-Cookie', line]))
  writeRules((visit as AnyVisit<any, any, any>).finalRules(), new FetchHead(headers))
  return headers.getSetCookie()
}
const namesOf = (lines: readonly string[]) => lines.map(line => line.split('=', 1)[0])

describe('a cookie of the application under a name of ours', () => {
  it('gives way where the response brings ours', async () => {
    const visit = made().visit()
    await visit.logIn({ ...ADA, remember: true })
    const lines = beside(visit, 'session_id=theirs', 'remember_token=theirs', 'theme=dark')
    expect(namesOf(lines)).toEqual(['theme', 'session_id', 'remember_token'])
    expect(lines.join()).not.toContain('theirs')
  })

  it('stays where the response leaves ours alone', async () => {
    const { visit } = made()
    const plain = visit()
    await plain.logIn(ADA)
    expect(beside(plain, 'remember_token=theirs')).toEqual(['remember_token=theirs', ...plain.headers.getSetCookie()])
    const looking = visit(`session_id=${'a'.repeat(43)}`)
    await looking.get()
    expect(beside(looking, 'session_id=theirs')).toEqual(['session_id=theirs'])
  })
})

describe('the headers of a response', () => {
  const namesIn = (headers: Headers) => [...headers.keys()]

  it('are those three at a login, and at a logout', async () => {
    const visit = made().visit()
    await visit.logIn(ADA)
    expect(namesIn(visit.headers)).toEqual(['cache-control', 'set-cookie', 'vary'])
    await visit.logOut()
    expect(namesIn(visit.headers)).toEqual(['cache-control', 'set-cookie', 'vary'])
  })

  it('bring no cookie of a session that another process has ended since', async () => {
    const { visit, elsewhere } = made()
    const visiting = visit()
    const session = await visiting.logIn(ADA)
    await elsewhere.destroy(session)
    expect(await visiting.update({ n: 1 })).toBeNull()
    expect(visiting.headers.getSetCookie()).toEqual([])
  })
})

describe('the remember token of a visit', () => {
  it('that is not sent yet ends with a second login, and with a logout', async () => {
    const { visit, series } = made()
    const visiting = visit()
    await visiting.logIn({ ...ADA, remember: true })
    const [, first] = visiting.cookies
    await visiting.logIn({ ...ADA, remember: true })
    expect(await series()).toHaveLength(1)
    expect(visiting.cookies[1]!.value).not.toBe(first!.value)
    await visiting.logOut()
    expect(await series()).toEqual([])
    expect(visiting.cookies.map(({ name, value }) => [name, value])).toEqual([
      ['session_id', ''],
      ['remember_token', ''],
    ])
  })

  it('goes at a login that is not to be remembered', async () => {
    const { visit, series } = made()
    const before = visit()
    await before.logIn({ ...ADA, remember: true })
    const visiting = visit(jar(before.headers.getSetCookie()))
    await visiting.logIn(ADA)
    expect(visiting.cookies.map(({ name, value }) => [name, value !== ''])).toEqual([
      ['session_id', true],
      ['remember_token', false],
    ])
    expect(await series()).toEqual([])
  })

  it('is not sent where its series has ended meanwhile, and so is the session', async () => {
    const { visit, sessions } = made()
    const visiting = visit()
    await visiting.logIn({ ...ADA, remember: true })
    await sessions.revokeRememberToken(visiting.cookies[1]!.value)
    expect(visiting.cookies.map(({ name }) => name)).not.toContain('remember_token')
  })
})
