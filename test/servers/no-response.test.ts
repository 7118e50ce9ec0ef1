// A request whose answer can carry no cookie: a handshake, a stream, a head that went out meanwhile.
import { setTimeout as pause } from 'node:timers/promises'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { type AnyVisit, ada, loggedIn, makeSessions, setCookies, visitOf } from '../support/edge-service.ts'

const BEGINS: Record<string, (visit: AnyVisit) => Promise<unknown>> = {
  create: visit => visit.create(),
  update: visit => visit.update({ n: 1 }),
  logIn: visit => visit.logIn(ada),
  'logIn to be remembered': visit => visit.logIn({ ...ada, remember: true }),
}
const headersSent = {
  code: 'ERR_SESSION_HEADERS_SENT',
  status: 500,
  message: expect.stringMatching(/^cannot set the session cookie: the response headers were already sent/),
}

describe('where no cookie can be sent', () => {
  it.each(Object.entries(BEGINS))('%s begins nothing, and the store does not hear of it', async (_, begin) => {
    const made = makeSessions({ rememberFor: '30d' })
    await expect(begin(visitOf(made.sessions, null, { canSend: () => false }))).rejects.toMatchObject(headersSent)
    expect(made.calls).toEqual([])
  })

  it('a session is found, keeps its ID, is written to, and can end', async () => {
    const made = makeSessions()
    const { cookie, session } = await loggedIn(made)
    const visit = visitOf(made.sessions, cookie, { canSend: () => false })
    expect((await visit.get())?.key).toBe(session.key)
    expect((await visit.update({ n: 1 }))?.data).toEqual({ n: 1 })
    await expect(visit.regenerate()).rejects.toMatchObject(headersSent)
    expect(await made.sessions.get(session.secret)).not.toBeNull()
    await visit.logOut()
    expect(await made.sessions.get(session.secret)).toBeNull()
  })

  it('a visitor without a session hears that there is none to get a new ID', async () => {
    const visit = visitOf(makeSessions().sessions, null, { canSend: () => false })
    expect([await visit.regenerate(), await visit.regenerate({ grace: '1m' })]).toEqual([null, null])
  })
})

describe('where the head goes out meanwhile', () => {
  it('a session that got a new ID goes on under the old one, as long as its grace lasts', async () => {
    const store = new MemoryStore()
    let canSend = true
    const replace = store.replace.bind(store)
    store.replace = async (...args) => {
      canSend = false
      return replace(...args)
    }
    const made = makeSessions({ store })
    const { cookie } = await loggedIn(made)
    const visit = visitOf(made.sessions, cookie, { canSend: () => canSend })
    await expect(visit.regenerate({ grace: '30s' })).rejects.toMatchObject(headersSent)
    expect((await visit.get())?.user?.name).toBe('ada')
    const next = visitOf(made.sessions, cookie)
    expect((await next.get())?.user?.name).toBe('ada')
    expect(setCookies(next), 'the browser gets the new ID now').toHaveLength(1)
    expect(made.events).not.toContain('destroyed')
  })

  it.each(Object.entries(BEGINS))('what %s began ends again', async (_, begin) => {
    const store = new MemoryStore()
    let canSend = true
    const create = store.create.bind(store)
    store.create = async (...args) => {
      await pause(1)
      canSend = false
      return create(...args)
    }
    const made = makeSessions({ store, rememberFor: '30d' })
    const visit = visitOf(made.sessions, null, { canSend: () => canSend })
    await expect(begin(visit)).rejects.toMatchObject(headersSent)
    expect([await made.sessions.list(42n), await visit.get(), setCookies(visit)]).toEqual([[], null, []])
    const count = (type: string) => made.events.filter(each => each === type).length
    expect(count('created')).toBe(count('destroyed'))
  })

  it('a login stores nothing, if that was while the session before it was looked for', async () => {
    const store = new MemoryStore()
    let canSend = true
    const made = makeSessions({ store })
    const { cookie } = await loggedIn(made)
    const read = store.read.bind(store)
    store.read = (...args) => {
      canSend = false
      return read(...args)
    }
    const cookies = [cookie, `session_id=${'a'.repeat(43)}`]
    await expect(visitOf(made.sessions, cookies, { canSend: () => canSend }).logIn(ada)).rejects.toMatchObject(
      headersSent,
    )
    expect(made.calls).toEqual(['read', 'read'])
  })
})
