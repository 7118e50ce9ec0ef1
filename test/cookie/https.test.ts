import { openVisit } from 'coatcheck/custom-server'
import { fetchVisits } from 'coatcheck/fetch'
import { describe, expect, it } from 'vitest'
import { jar, makeSessions, serve, threeEndpoints } from '../support/edge-service.ts'
import { onlyHost } from '../support/only-host.ts'

describe('without HTTPS', () => {
  const outside = { Host: 'app.example.com' }

  it('login is refused, and the refusal names the options', async () => {
    const { send, calls } = await serve(async (visit, _request, response) => {
      const error = await visit.logIn({ user: { id: 1, name: 'ada' } }).catch(error => error)
      response.end(`${error.status} ${error.code} ${error.message}`)
    })
    const { body, cookies } = await send('/login', { method: 'POST', headers: outside })
    expect(body).toMatch(/^403 ERR_SESSION_INSECURE .*trustedProxies.*isSecure.*secure: false/)
    expect([cookies, calls]).toEqual([[], []])
  })

  it('login is refused at each try where isSecure throws, and nothing begins', async () => {
    const { sessions, calls } = makeSessions()
    const request = new Request('http://app.example.com/', { method: 'POST' })
    const isSecure = () => {
      throw new Error('no such header')
    }
    const visit = fetchVisits(sessions, { isSecure }).of(request)
    await expect(visit.logIn({ user: { id: 1, name: 'ada' } })).rejects.toThrow('no such header')
    await expect(visit.logIn({ user: { id: 1, name: 'ada' } })).rejects.toThrow('no such header')
    expect([visit.headers.getSetCookie(), calls]).toEqual([[], []])
  })

  it('matters once, and only to a request that brings our cookie or begins a session', async () => {
    const { sessions, calls } = makeSessions()
    const { secret } = await sessions.create()
    calls.length = 0
    let asked = 0
    const open = (cookie: string | null) => {
      const visit = openVisit(sessions, {
        method: 'POST',
        cookie,
        header: onlyHost,
        get secure() {
          asked += 1
          return false
        },
      })
      asked = 0
      return visit
    }
    for (const cookie of [null, '', 'theme=dark', 'my_session_id2=1']) {
      const visit = open(cookie)
      expect(await visit.get()).toBeNull()
      expect([...visit.headers]).toEqual([['vary', 'Cookie']])
      expect(asked).toBe(0)
      await expect(visit.logIn({ user: { id: 1, name: 'ada' } })).rejects.toMatchObject({
        code: 'ERR_SESSION_INSECURE',
      })
      await expect(visit.create()).rejects.toMatchObject({ code: 'ERR_SESSION_INSECURE' })
      await expect(visit.update({ a: 1 } as never)).rejects.toMatchObject({ code: 'ERR_SESSION_INSECURE' })
      expect(asked).toBe(1)
    }
    for (const cookie of [`session_id=${secret}`, 'session_id=a; session_id=b', 'a=1; session_id=']) {
      const visit = open(cookie)
      expect(await visit.get()).toBeNull()
      expect(visit.headers.getSetCookie()).toEqual([])
      expect(asked).toBe(1)
    }
    expect(calls).toEqual([])
  })

  it('no refusal names an option that its visits do not have', async () => {
    const { sessions } = makeSessions()
    const ada = { user: { id: 1, name: 'ada' } }
    const fetched = fetchVisits(sessions)
      .of(new Request('http://app.example.com/', { method: 'POST' }))
      .logIn(ada)
    const opened = openVisit(sessions, { method: 'POST', secure: false, cookie: null, header: onlyHost })
    for (const [attempt, advice] of [
      [fetched, /set `isSecure` of fetchVisits, or /],
      [opened.logIn(ada), /if it did, set `secure: true` in the request given to openVisit, or /],
    ] as const) {
      const error = await attempt.catch(error => error)
      expect([error.code, error.message]).toEqual(['ERR_SESSION_INSECURE', expect.stringMatching(advice)])
      expect(error.message).not.toContain('trustedProxies')
    }
  })

  it('a cookie is not honoured, the store does not hear of it, and none is set or cleared', async () => {
    const { send, calls } = await serve(threeEndpoints)
    const cookie = jar((await send('/login', { method: 'POST' })).cookies)
    calls.length = 0
    const reply = await send('/profile', { headers: { ...outside, cookie } })
    expect([reply.status, reply.body, reply.cookies, calls]).toEqual([200, 'null', [], []])
    expect(reply.headers.vary).toBe('Cookie')
  })

  it('nothing begins: no anonymous session, no new ID', async () => {
    const { send, calls } = await serve(async (visit, request, response) => {
      if (request.url === '/create') await visit.create()
      if (request.url === '/update') await visit.update({ n: 1 })
      response.end(String(await visit.regenerate()))
    })
    for (const path of ['/create', '/update']) expect((await send(path, { headers: outside })).status).toBe(403)
    expect((await send('/', { headers: outside })).body).toBe('null')
    expect(calls).toEqual([])
  })

  it('logout ends the session all the same: its ID was seen in the clear', async () => {
    const { send, sessions } = await serve(threeEndpoints)
    const { secret } = await sessions.create({ user: { id: 42n, name: 'ada' } })
    const headers = { ...outside, cookie: `session_id=${secret}` }
    expect((await send('/logout', { method: 'POST', headers })).status).toBe(200)
    expect(await sessions.get(secret)).toBeNull()
  })

  it('spoofed forwarded headers change nothing', async () => {
    const { send } = await serve(threeEndpoints, { edge: { trustedProxies: ['10.0.0.0/8'] } })
    for (const headers of [
      { ...outside, 'X-Forwarded-Proto': 'https' },
      { ...outside, 'X-Forwarded-Proto': 'https', 'X-Forwarded-For': '10.0.0.1' },
      { ...outside, Forwarded: 'for=10.0.0.1;proto=https' },
      { Host: 'localhost', 'X-Forwarded-Proto': 'https' },
    ] as Record<string, string>[])
      expect((await send('/login', { method: 'POST', headers })).status).toBe(403)
  })

  it('a trusted proxy, isSecure, or giving up Secure lets login through', async () => {
    for (const [edge, headers] of [
      [{ trustedProxies: ['127.0.0.0/8'] }, { ...outside, 'X-Forwarded-Proto': 'https' }],
      [{ isSecure: () => true }, outside],
      [{ cookie: { secure: false } }, outside],
    ] as const) {
      const { send } = await serve(threeEndpoints, { edge })
      const reply = await send('/login', { method: 'POST', headers })
      expect([reply.status, reply.cookies.length]).toEqual([200, 1])
      expect(reply.cookies[0]!.includes('Secure')).toBe(!('cookie' in edge))
    }
  })
})
