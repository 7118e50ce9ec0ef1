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

describe('the importer of one copy, the visits of another and the manager of a third', () => {
  it('import a session, and log it out', async () => {
    expect(one.SessionManager).not.toBe(two.SessionManager)
    const sessions = new one.SessionManager({ store: new one.MemoryStore(), sweepInterval: false })
    const old = new OldStoreStub()
    old.put('an-old-id', { user: { id: 42, name: 'ada' } })
    const importer = two.sessionImporter(sessions, {
      from: two.fromExpressSession<{ user: { id: number; name: string } }>({ secret: SECRET, store: old }),
      toLogin: ({ user }) => ({ user }),
    })
    const visits = three.fetchVisits(sessions)
    const ask = (method: string) =>
      importer.import(connectSid('an-old-id'), header =>
        visits.of(new Request('https://example.com/', { method, headers: { cookie: header } })),
      )
    const { visit } = await ask('GET')
    expect((await visit.get())?.user?.name).toBe('ada')
    const { headers } = visit.respond(new Response('hello'))
    expect(headers.getSetCookie().map(line => line.split('=')[0])).toEqual(['session_id'])
    const leaving = await ask('POST')
    await leaving.visit.logOut()
    const late = await ask('GET')
    expect([await late.visit.get(), old.records.size]).toEqual([null, 0])
  })
})
