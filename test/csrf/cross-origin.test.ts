// What a page of another origin may send, and which origins may be listed.
import { nodeVisits } from 'coatcheck/node'
import { describe, expect, it } from 'vitest'
import { makeSessions, serve, threeEndpoints } from '../support/edge-service.ts'

describe('over HTTP', () => {
  const other = { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' }

  it('refuses login, logout and every other verb to a page of another origin, before the store hears of it', async () => {
    const { send, calls } = await serve(threeEndpoints)
    for (const path of ['/login', '/logout', '/profile'])
      for (const headers of [other, { Origin: 'https://evil.example' }, { 'Sec-Fetch-Site': 'same-site' }]) {
        const reply = await send(path, { method: 'POST', headers })
        expect([reply.status, reply.body, reply.cookies]).toEqual([403, 'ERR_SESSION_CROSS_ORIGIN', []])
      }
    expect(calls).toEqual([])
  })

  it('lets the service’s own pages, listed origins and programs log in', async () => {
    const { send, port } = await serve(threeEndpoints, { edge: { trustedOrigins: ['https://front.example.net'] } })
    for (const headers of [
      {},
      { Origin: `http://127.0.0.1:${port}` },
      { Origin: `http://127.0.0.1:${port}`, 'Sec-Fetch-Site': 'same-origin' },
      { 'Sec-Fetch-Site': 'none' },
      { Origin: 'https://front.example.net', 'Sec-Fetch-Site': 'cross-site' },
    ] as Record<string, string>[])
      expect([headers, (await send('/login', { method: 'POST', headers })).status]).toEqual([headers, 200])
  })

  it('refuses a header that arrives twice', async () => {
    const { send } = await serve(threeEndpoints)
    const headers = { 'Sec-Fetch-Site': ['same-origin', 'cross-site'] }
    expect((await send('/login', { method: 'POST', headers })).status).toBe(403)
  })
})

describe('origins of other pages', () => {
  const { sessions } = makeSessions()
  it.each([
    'https://app.example.com/',
    'https://app.example.com/path',
    'https://*.example.com',
    '*',
    'null',
    'app.example.com',
    'https://app.example.com:443',
    'HTTPS://app.example.com',
    'https://App.example.com',
    'https://',
    'https:///x',
    '',
    'chrome-extension://*',
    'capacitor://localhost/x',
  ])('%j is a TypeError that quotes it', origin => {
    expect(() => nodeVisits(sessions, { trustedOrigins: [origin] })).toThrow(TypeError)
    expect(() => nodeVisits(sessions, { trustedOrigins: [origin] })).toThrow(JSON.stringify(origin))
  })

  it.each(['https://user:pw@app.example.com', 'https://app.example.com?pw'])(
    'with more than a host are not',
    origin => {
      expect(() => nodeVisits(sessions, { trustedOrigins: [origin] })).toThrow(
        /^trustedOrigins: .* got a URL \(not shown/,
      )
    },
  )

  it('may be https, http with a port, an address, an extension or a WebView', () => {
    const origins = [
      'https://app.example.com',
      'http://localhost:5173',
      'http://[::1]:3000',
      'https://xn--bcher-kva.example',
      'chrome-extension://abcdefghijklmnop',
      'capacitor://localhost',
    ]
    expect(() => nodeVisits(sessions, { trustedOrigins: origins })).not.toThrow()
  })

  it('are a list', () => {
    expect(() => nodeVisits(sessions, { trustedOrigins: 'https://app.example.com' as unknown as string[] })).toThrow(
      TypeError,
    )
    expect(() => nodeVisits(sessions, { trustedOrigins: [null as unknown as string] })).toThrow(TypeError)
  })
})
