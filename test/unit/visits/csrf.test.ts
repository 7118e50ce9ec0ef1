import { inspect } from 'node:util'
import { SessionManager } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { hmac } from '../../../src/session/id.ts'
import { isToken, maskToken } from '../../../src/visits/cross-origin.ts'
import { BarrierStore } from '../../support/barrier-store.ts'
import { jar, serve } from '../../support/edge-service.ts'
import { leaked } from '../../support/scan.ts'

const TOKEN = 'abcdefghijklmnopqrstuvwxyz-_0123456789ABCDE'

describe('a masked CSRF token', () => {
  it('looks different each time and is accepted each time', () => {
    const masked = Array.from({ length: 200 }, () => maskToken(TOKEN))
    expect(new Set(masked).size).toBe(200)
    for (const each of masked) {
      expect(each).toMatch(/^[A-Za-z0-9_-]+$/)
      expect(each).not.toContain(TOKEN.slice(0, 6))
      expect(isToken(TOKEN, each)).toBe(true)
    }
  })

  it('is accepted unmasked too', () => {
    expect(isToken(TOKEN, TOKEN)).toBe(true)
  })

  it('is refused with one character changed, cut, doubled or of another session', () => {
    const masked = maskToken(TOKEN)
    const other = maskToken(TOKEN.replace('a', 'b'))
    const flip = (text: string, at: number) => text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1)
    const wrong = [other, `${masked}${masked}`, masked.slice(1), masked.slice(0, -1), `${masked} `, ` ${masked}`]
    for (let at = 0; at < TOKEN.length; at++) wrong.push(flip(TOKEN, at))
    // The last character of the masked form carries unused bits only.
    for (let at = 0; at < masked.length - 1; at++) wrong.push(flip(masked, at))
    for (const each of wrong) expect(isToken(TOKEN, each)).toBe(false)
  })

  it('is refused where it is as long as one, and has characters that no token has', () => {
    const masked = maskToken(TOKEN)
    for (const odd of ['!', ' ', '=', '.', '%', 'é', '\0'])
      for (const at of [0, 1, 57, masked.length - 2]) {
        const each = masked.slice(0, at) + odd + masked.slice(at + 1)
        expect(each).toHaveLength(masked.length)
        expect(isToken(TOKEN, each)).toBe(false)
      }
  })

  it('is refused where it is no text', () => {
    const odd: unknown[] = [
      undefined,
      null,
      '',
      0,
      1n,
      true,
      {},
      [TOKEN],
      new String(TOKEN),
      'ā'.repeat(43),
      'x'.repeat(1e6),
    ]
    for (const each of odd) expect(isToken(TOKEN, each)).toBe(false)
  })
})

describe('the token of a visit', () => {
  const service = () =>
    serve(async (visit, request, response) => {
      if (request.url === '/begin') await visit.create()
      if (request.url === '/login') await visit.logIn({ user: { id: 1, name: 'ada' } })
      if (request.url === '/login-with-data')
        await visit.logIn({ user: { id: 1, name: 'ada' }, data: before => before })
      if (request.url === '/rotate') await visit.regenerate({ grace: '1m' })
      if (request.url === '/regenerate') await visit.regenerate()
      if (request.url === '/update') await visit.update({ n: 1 })
      if (request.url === '/take') await visit.take('n')
      if (request.url === '/logout') await visit.logOut()
      if (request.url === '/check') await visit.checkCsrf(request.headers['x-csrf-token'])
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
      hmac(text, 'csrf'),
      hmac(text.slice(0, 43), 'csrf'),
    ])
    expect(derived).not.toContain(csrfToken)
    expect(hmac(session.secret, 'csrf')).not.toBe(csrfToken)
    expect(leaked(store.calls, [csrfToken, session.secret])).toBeNull()
  })

  it('does not exist without a session, and begins none', async () => {
    const { send, calls } = await service()
    const page = await send('/')
    expect([page.body, page.cookies]).toEqual(['null', []])
    expect((await send('/check', check('', 'null'))).status).toBe(403)
    expect(calls).toEqual([])
  })
})
