// The token that a session's own forms bring along, against requests that another page makes its browser send.
import { createHmac } from 'node:crypto'
import { inspect } from 'node:util'
import { SessionManager } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { BarrierStore } from '../support/barrier-store.ts'
import { type AnyVisit, jar, serve } from '../support/edge-service.ts'
import { leaked } from '../support/scan.ts'

const keyed = (key: string, text: string) => createHmac('sha256', key).update(text).digest('base64url')

describe('the token of a visit', () => {
  const ada = { user: { id: 42n, name: 'ada' } }
  const verbs: Record<string, (visit: AnyVisit, token: unknown) => Promise<unknown>> = {
    '/begin': visit => visit.create(),
    '/login': visit => visit.logIn(ada),
    '/login-with-data': visit => visit.logIn({ ...ada, data: before => before }),
    '/rotate': visit => visit.regenerate({ grace: '1m' }),
    '/regenerate': visit => visit.regenerate(),
    '/update': visit => visit.update({ n: 1 }),
    '/take': visit => visit.take('n'),
    '/logout': visit => visit.logOut(),
    '/check': (visit, token) => visit.checkCsrf(token),
  }
  const service = () =>
    serve(async (visit, { url, headers }, response) => {
      await verbs[url!]?.(visit, headers['x-csrf-token'])
      response.end(String(await visit.csrfToken()))
    })
  const check = (cookie: string, token?: string) => ({
    method: 'POST',
    headers: { cookie, ...(token === undefined ? {} : { 'x-csrf-token': token }) },
  })

  it('lets the session’s own form through, and nothing else', async () => {
    const { send } = await service()
    const first = await send('/login', { method: 'POST' })
    const second = await send('/login', { method: 'POST' })
    const cookie = jar(first.cookies)
    expect((await send('/check', check(cookie, first.body))).status).toBe(200)
    const page = await send('/', { headers: { cookie } })
    expect(page.body).not.toBe(first.body)
    expect((await send('/check', check(cookie, page.body))).status).toBe(200)
    for (const token of [undefined, '', second.body, 'null', cookie.split('=')[1]!]) {
      const reply = await send('/check', check(cookie, token))
      expect([reply.status, reply.body]).toEqual([403, 'ERR_SESSION_CSRF'])
    }
  })

  it('dies at a login, whatever data goes along, and at the logout', async () => {
    for (const path of ['/login', '/login-with-data']) {
      const { send } = await service()
      const before = await send('/begin', { method: 'POST' })
      const first = await send(path, { method: 'POST', headers: { cookie: jar(before.cookies) } })
      expect((await send('/check', check(jar(first.cookies), before.body))).status).toBe(403)
      const rotated = await send('/regenerate', { method: 'POST', headers: { cookie: jar(first.cookies) } })
      const again = await send(path, { method: 'POST', headers: { cookie: jar(rotated.cookies) } })
      for (const { body } of [before, first, rotated])
        expect((await send('/check', check(jar(again.cookies), body))).status).toBe(403)
      expect((await send('/check', check(jar(again.cookies), again.body))).status).toBe(200)
      await send('/logout', { method: 'POST', headers: { cookie: jar(again.cookies) } })
      expect((await send('/check', check(jar(again.cookies), again.body))).status).toBe(403)
      const next = await send(path, { method: 'POST' })
      expect((await send('/check', check(jar(next.cookies), again.body))).status).toBe(403)
    }
  })

  it('survives a new ID of the same session, under the old one too as long as it leads on', async () => {
    const { send } = await service()
    const login = await send('/login', { method: 'POST' })
    const old = jar(login.cookies)
    let cookie = old
    // Each form of the chain, in each state of it.
    const forms = [login.body]
    for (const path of ['/rotate', '/update', '/rotate', '/regenerate', '/take', '/rotate']) {
      const reply = await send(path, { method: 'POST', headers: { cookie } })
      if (reply.cookies.length > 0) cookie = jar(reply.cookies)
      forms.push(reply.body)
      for (const form of forms) expect((await send('/check', check(cookie, form))).status).toBe(200)
      if (path === '/rotate' && forms.length < 4)
        for (const form of forms) expect((await send('/check', check(old, form))).status).toBe(200)
    }
    expect(cookie).not.toBe(old)
  })

  it('is the same in every process, and of each session another', async () => {
    const store = new MemoryStore()
    const nodes = [0, 1].map(() => new SessionManager<Record<string, unknown>>({ store, sweepInterval: false }))
    const [here, there] = nodes as [SessionManager<Record<string, unknown>>, SessionManager<Record<string, unknown>>]
    const user = { id: 1, name: 'ada' }
    const first = await here.create({ user, verifiedAt: Date.now() - 10_000_000 })
    const { csrfToken } = first
    const rotated = (await there.regenerate(first.secret, { grace: '1m' }))!
    expect(rotated.csrfToken).toBe(csrfToken)
    expect((await here.get(first.secret))?.csrfToken).toBe(csrfToken)
    expect((await here.regenerate(first.secret, { grace: '1m' }))?.csrfToken).toBe(csrfToken)
    const saved = (await here.update(rotated, { a: 1 }))!
    expect([saved.csrfToken, { ...saved.data }]).toEqual([csrfToken, { a: 1 }])
    const again = (await there.regenerate(saved.secret))!
    expect((await here.get(again.secret))?.csrfToken).toBe(csrfToken)
    expect(here.isFresh(again, '1h')).toBe(false)
    expect((await here.create({ user })).csrfToken).not.toBe(csrfToken)
  })

  it('cannot be told by who reads the store, though it goes along there', async () => {
    const store = BarrierStore.over(new MemoryStore())
    const sessions = new SessionManager<Record<string, unknown>>({ store, sweepInterval: false })
    let session = (await sessions.create())!
    const { csrfToken } = session
    const seen = new Set<string>()
    for (let turn = 0; turn < 5; turn += 1) {
      session = (await sessions.regenerate(session, { grace: '1m' }))!
      const { data } = store.calls.at(-1)!.args[2]
      const [kept] = data.match(/[A-Za-z0-9_-]{43}/)!
      seen.add(kept)
      expect(store.counts()).toEqual({ create: 1, replace: turn + 1 })
    }
    // Another mask each time: two of them together tell no more than one.
    expect(seen.size).toBe(5)
    const bytes = [...seen].map(each => Buffer.from(each, 'base64url'))
    const pairs = bytes.flatMap(a =>
      bytes.map(b => Buffer.from(a.map((byte, at) => byte ^ b[at]!)).toString('base64url')),
    )
    const keys = store.calls.flatMap(({ args }) => inspect(args, { depth: 5 }).match(/[A-Za-z0-9_-]{16,}/g) ?? [])
    const derived = [...seen, ...pairs, ...keys].flatMap(text => [
      text,
      keyed(text, 'csrf'),
      keyed(text.slice(0, 43), 'csrf'),
    ])
    expect(derived).not.toContain(csrfToken)
    expect(keyed(session.secret, 'csrf')).not.toBe(csrfToken)
    expect(leaked(store.calls, [csrfToken, session.secret])).toBeNull()
  })
})
