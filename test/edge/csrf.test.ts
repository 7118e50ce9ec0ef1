import { describe, expect, it } from 'vitest'
import { isToken, maskToken } from '../../src/edge/csrf.ts'
import { jar, serve } from './service.ts'

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
      if (request.url === '/login') await visit.regenerate({ user: { id: 1, name: 'ada' } })
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

  it('dies when the session gets a new ID', async () => {
    const { send } = await service()
    const first = await send('/login', { method: 'POST' })
    const again = await send('/login', { method: 'POST', headers: { cookie: jar(first.cookies) } })
    expect((await send('/check', check(jar(again.cookies), first.body))).status).toBe(403)
    expect((await send('/check', check(jar(again.cookies), again.body))).status).toBe(200)
  })

  it('does not exist without a session, and begins none', async () => {
    const { send, calls } = await service()
    const page = await send('/')
    expect([page.body, page.cookies]).toEqual(['null', []])
    expect((await send('/check', check('', 'null'))).status).toBe(403)
    expect(calls).toEqual([])
  })
})
