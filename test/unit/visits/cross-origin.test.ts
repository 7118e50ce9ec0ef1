import { describe, expect, it } from 'vitest'
import { isCrossOrigin } from '../../../src/visits/cross-origin.ts'

const HOST = 'app.example.com'
/** By the column of the table below. */
const ORIGINS = {
  same: [`https://${HOST}`, `http://${HOST}`],
  absent: [undefined, ''],
  listed: ['https://front.example.net'],
  else: [
    ...['https://evil.example', `https://${HOST}:8443`, 'https://blog.example.com', 'null', `https://${HOST}/`],
    ...[`https://${HOST}@evil.example`, `https://${HOST}.evil.example`, `https://evil.${HOST}`],
  ],
}
const UNSAFE = ['POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'CONNECT', 'QUERY', 'post', 'get', '']

/**
 * The reference: which unsafe requests Go 1.25's CrossOriginProtection lets through, written down as a table. Rows:
 * Sec-Fetch-Site; columns: whether Origin is listed, is the same host, is absent, or anything else.
 */
const ALLOWED: Record<string, Record<keyof typeof ORIGINS, boolean>> = {
  'same-origin': { listed: true, same: true, absent: true, else: true },
  none: { listed: true, same: true, absent: true, else: true },
  'same-site': { listed: true, same: false, absent: false, else: false },
  'cross-site': { listed: true, same: false, absent: false, else: false },
  junk: { listed: true, same: false, absent: false, else: false },
  'same-origin, cross-site': { listed: true, same: false, absent: false, else: false },
  '': { listed: true, same: true, absent: true, else: false },
}

describe('the cross-origin guard', () => {
  const listed = new Set(ORIGINS.listed)
  const check = (method: string, site: string | undefined, origin: string | undefined, upgrade = false) =>
    isCrossOrigin({ method, upgrade, header: name => ({ host: HOST, origin, 'sec-fetch-site': site })[name] }, listed)

  it.each([undefined, ...Object.keys(ALLOWED)])('decides by the table for Sec-Fetch-Site %o', site => {
    for (const [column, isAllowed] of Object.entries(ALLOWED[site ?? '']!))
      for (const origin of ORIGINS[column as keyof typeof ORIGINS]) {
        for (const method of UNSAFE)
          expect([origin, method, check(method, site, origin)]).toEqual([origin, method, !isAllowed])
        for (const method of ['GET', 'HEAD', 'OPTIONS']) {
          expect([origin, method, check(method, site, origin)]).toEqual([origin, method, false])
          // An upgrade is as unsafe as a POST, whatever its method.
          expect([origin, method, check(method, site, origin, true)]).toEqual([origin, method, !isAllowed])
        }
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
      ['shop.example', 'ftp://shop.example'],
    ] as const)
      expect([name, origin, host(name, origin)]).toEqual([name, origin, true])
  })
})
