import { describe, expect, it, vi } from 'vitest'
import { connectSid, OldStoreStub, SECRET } from '../support/old-sessions.ts'

/** Copies of the package in one process: its ESM and CommonJS build, or one in each bundle of a framework. */
async function loadCopy() {
  vi.resetModules()
  const core = await import('coatcheck')
  const { sessionImporter, fromExpressSession } = await import('coatcheck/import')
  const { fetchVisits } = await import('coatcheck/fetch')
  const { MemoryStore } = await import('coatcheck/stores/memory')
  return { ...core, sessionImporter, fromExpressSession, fetchVisits, MemoryStore }
}
const [one, two, three] = [await loadCopy(), await loadCopy(), await loadCopy()]

describe('adopt of one copy, the edge of another and the manager of a third', () => {
  it('take a session over, and log it out', async () => {
    expect(one.SessionManager).not.toBe(two.SessionManager)
    const sessions = new one.SessionManager({ store: new one.MemoryStore(), sweepInterval: false })
    const old = new OldStoreStub()
    old.put('an-old-id', { user: { id: 42, name: 'ada' } })
    const adopting = two.sessionImporter(sessions, {
      from: two.fromExpressSession<{ user: { id: number; name: string } }>({ secret: SECRET, store: old }),
      toLogin: ({ user }) => ({ user }),
    })
    const visits = three.fetchVisits(sessions)
    const cookie = connectSid('an-old-id')
    const ask = (method: string) => visits.of(new Request('https://example.com/', { method, headers: { cookie } }))
    const visit = ask('GET')
    expect(await adopting(visit)).toBe(true)
    expect((await visit.get())?.user?.name).toBe('ada')
    const { headers } = visit.respond(new Response('hello'))
    expect(headers.getSetCookie().map(line => line.split('=')[0])).toEqual(['session_id', 'connect.sid'])
    const leaving = ask('POST')
    await adopting(leaving)
    await leaving.logOut()
    expect(await adopting(ask('GET'))).toBe(false)
  })

  it('leave a cross-origin request to the verbs of its visit', async () => {
    const sessions = new one.SessionManager({ store: new one.MemoryStore(), sweepInterval: false })
    const adopting = two.sessionImporter(sessions, {
      from: two.fromExpressSession({ secret: SECRET, store: new OldStoreStub() }),
      toLogin: () => null,
    })
    const headers = { cookie: connectSid('an-old-id'), 'sec-fetch-site': 'cross-site' }
    expect(
      await adopting(three.fetchVisits(sessions).of(new Request('https://example.com/', { method: 'POST', headers }))),
    ).toBe(false)
  })
})
