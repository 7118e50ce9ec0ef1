import { nodeVisits } from 'coatcheck/node'
import { describe, expect, it } from 'vitest'
import { isCrossOrigin } from '../../../src/visits/cross-origin.ts'
import { makeSessions, serve, threeEndpoints } from '../../support/edge-service.ts'

const HOST = 'app.example.com'
const SITES = [
  'same-origin',
  'same-site',
  'cross-site',
  'none',
  undefined,
  '',
  'junk',
  'same-origin, cross-site',
] as const
const ORIGINS = {
  same: `https://${HOST}`,
  'same over http': `http://${HOST}`,
  other: 'https://evil.example',
  'other port': `https://${HOST}:8443`,
  sibling: 'https://blog.example.com',
  null: 'null',
  absent: undefined,
  empty: '',
  junk: `https://${HOST}@evil.example`,
  suffix: `https://${HOST}.evil.example`,
  path: `https://${HOST}/`,
  listed: 'https://front.example.net',
} as const
const METHODS = [
  'GET',
  'HEAD',
  'OPTIONS',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'TRACE',
  'CONNECT',
  'QUERY',
  'post',
  'get',
  '',
]

/**
 * The reference: which unsafe requests Go 1.25's CrossOriginProtection lets through, written down as a table. Rows:
 * Sec-Fetch-Site; columns: whether Origin is listed, is the same host, is absent, or anything else.
 */
const ALLOWED: Record<string, Record<'listed' | 'same' | 'absent' | 'else', boolean>> = {
  'same-origin': { listed: true, same: true, absent: true, else: true },
  none: { listed: true, same: true, absent: true, else: true },
  'same-site': { listed: true, same: false, absent: false, else: false },
  'cross-site': { listed: true, same: false, absent: false, else: false },
  junk: { listed: true, same: false, absent: false, else: false },
  'same-origin, cross-site': { listed: true, same: false, absent: false, else: false },
  '': { listed: true, same: true, absent: true, else: false },
}
const column = (origin: keyof typeof ORIGINS) =>
  origin === 'listed'
    ? 'listed'
    : origin === 'same' || origin === 'same over http'
      ? 'same'
      : origin === 'absent' || origin === 'empty'
        ? 'absent'
        : 'else'

describe('the cross-origin guard', () => {
  const listed = new Set([ORIGINS.listed])
  const check = (method: string, site: string | undefined, origin: string | undefined, upgrade = false) =>
    isCrossOrigin({ method, upgrade, header: name => ({ host: HOST, origin, 'sec-fetch-site': site })[name] }, listed)

  for (const site of SITES)
    for (const [name, origin] of Object.entries(ORIGINS))
      it(`decides by the table for Sec-Fetch-Site ${site ?? '(absent)'} and Origin ${name}`, () => {
        const allowed = ALLOWED[site ?? '']![column(name as keyof typeof ORIGINS)]
        for (const method of METHODS) {
          const isSafe = method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
          expect([method, check(method, site, origin)]).toEqual([method, !isSafe && !allowed])
          // An upgrade is as unsafe as a POST, whatever its method.
          expect([method, check(method, site, origin, true)]).toEqual([method, !allowed])
        }
      })

  it('compares Origin with Host as URLs: a proxy may write the default port of the scheme, or capitals', () => {
    const host = (host: string | undefined, origin: string) =>
      isCrossOrigin(
        { method: 'POST', header: name => ({ host, origin, 'sec-fetch-site': undefined })[name] },
        new Set(),
      )
    expect(host('localhost:3000', 'http://localhost:3000')).toBe(false)
    expect(host('localhost:3000', 'http://localhost:3001')).toBe(true)
    expect(host('localhost', 'http://localhost:3000')).toBe(true)
    expect(host('[::1]:3000', 'http://[::1]:3000')).toBe(false)
    expect(host(undefined, 'http://localhost:3000')).toBe(true)
    expect(host('', 'http://')).toBe(true)
    expect(host('abcdef', 'chrome-extension://abcdef')).toBe(true)
    for (const [name, origin] of [
      ['shop.example:443', 'https://shop.example'],
      ['shop.example:80', 'http://shop.example'],
      ['SHOP.example', 'https://shop.example'],
      ['shop.example', 'https://shop.example:443'],
      ['[::1]:443', 'https://[::1]'],
    ] as const)
      expect([name, origin, host(name, origin)]).toEqual([name, origin, false])
    for (const [name, origin] of [
      ['shop.example:80', 'https://shop.example'],
      ['shop.example:443', 'http://shop.example'],
      ['shop.example:8443', 'https://shop.example'],
      ['shop.example:443', 'https://shop.example:8443'],
      ['shop.example:443', 'https://evil.example'],
      [':443', 'https://'],
      ['evil.example/@shop.example', 'https://shop.example'],
      ['null', 'null'],
    ] as const)
      expect([name, origin, host(name, origin)]).toEqual([name, origin, true])
  })
})

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

  it('shows a page of another origin what it may navigate to', async () => {
    const { send } = await serve(threeEndpoints)
    expect((await send('/profile', { headers: other })).status).toBe(200)
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
