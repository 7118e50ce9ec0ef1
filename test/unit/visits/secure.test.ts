import type { IncomingMessage } from 'node:http'
import { fetchVisits } from 'coatcheck/fetch'
import { nodeVisits } from 'coatcheck/node'
import { describe, expect, it } from 'vitest'
import { isLocalHost, proxyTest, secureTest } from '../../../src/visits/secure.ts'
import { makeSessions } from '../../support/edge-service.ts'

interface Wire {
  peer?: string
  headers?: Record<string, string>
  encrypted?: boolean
  httpVersion?: string
}
const message = ({ peer, headers = {}, encrypted, httpVersion = '1.1' }: Wire) =>
  ({ socket: { remoteAddress: peer, encrypted }, headers, httpVersion }) as unknown as IncomingMessage

describe('what counts as HTTPS', () => {
  const trusting = secureTest({ trustedProxies: ['10.0.0.0/8', '::1', '127.0.0.1'] })
  const trustsNobody = secureTest({})
  const https = { 'x-forwarded-proto': 'https', host: 'app.example.com' }

  it('is a TLS socket', () => {
    expect(trustsNobody(message({ peer: '203.0.113.9', encrypted: true }))).toBe(true)
    expect(trustsNobody(message({ peer: '203.0.113.9', headers: { host: 'app.example.com' } }))).toBe(false)
  })

  it('is not what has no socket, as a request of a test', () => {
    for (const headers of [{}, https, { host: 'localhost' }]) {
      const request = { headers, httpVersion: '1.1' } as unknown as IncomingMessage
      expect([trusting(request), trustsNobody(request)]).toEqual([false, false])
    }
  })

  it('is what a trusted proxy says, and no other peer', () => {
    expect(trusting(message({ peer: '10.1.2.3', headers: https }))).toBe(true)
    expect(trusting(message({ peer: '::ffff:10.1.2.3', headers: https }))).toBe(true)
    for (const peer of ['11.0.0.1', '203.0.113.9', '::ffff:203.0.113.9', 'fd00::1', '', undefined])
      expect(trusting(message({ headers: https, ...(peer === undefined ? {} : { peer }) }))).toBe(false)
    for (const peer of ['10.1.2.3', '127.0.0.1', '::1'])
      expect(trustsNobody(message({ peer, headers: https }))).toBe(false)
  })

  it('is every hop that the header names', () => {
    const proto = (value: string) =>
      trusting(message({ peer: '10.1.2.3', headers: { ...https, 'x-forwarded-proto': value } }))
    for (const value of ['https', 'HTTPS', ' https ', 'https, https', 'wss', 'WSS', 'https,wss'])
      expect([value, proto(value)]).toEqual([value, true])
    for (const value of ['http', 'https, http', 'http,https', '', 'httpsx', 'ws', 'wss,ws', 'wsss', '"https"'])
      expect([value, proto(value)]).toEqual([value, false])
  })

  it('is not what other forwarded headers claim', () => {
    const headers = {
      forwarded: 'proto=https',
      'x-forwarded-ssl': 'on',
      'front-end-https': 'on',
      'x-url-scheme': 'https',
    }
    expect(trusting(message({ peer: '10.1.2.3', headers }))).toBe(false)
  })

  it('is decided by isSecure alone where it is given', () => {
    const decided = (answer: unknown) => secureTest({ isSecure: () => answer as boolean })(message({ encrypted: true }))
    expect(decided(true)).toBe(true)
    expect(decided(false)).toBe(false)
    expect(decided('yes')).toBe(false)
  })
})

describe('loopback without TLS', () => {
  const reach = secureTest({})
  it('is let through where peer and Host are this machine and no proxy is in between', () => {
    for (const peer of ['127.0.0.1', '127.8.9.1', '::1', '::ffff:127.0.0.1'])
      for (const host of ['localhost:3000', 'app.localhost:3000', '127.100.20.3:3000', '[::1]:3000', 'LOCALHOST'])
        expect([peer, host, reach(message({ peer, headers: { host } }))]).toEqual([peer, host, true])
  })

  it('is not, as soon as any of the three is missing', () => {
    const local = { host: 'localhost:3000' }
    expect(reach(message({ peer: '192.168.1.7', headers: local }))).toBe(false)
    expect(reach(message({ headers: local }))).toBe(false)
    for (const peer of ['::ffff:10.127.0.1', '::ffff:12.7.0.0', 'fd00::1', '::11', '::127.0.0.1', '10.127.0.1'])
      expect([peer, reach(message({ peer, headers: local }))]).toEqual([peer, false])
    for (const host of ['localhost.example.com', '127.0.0.1.example.com', 'notlocalhost', '', '128.0.0.1'])
      expect([host, reach(message({ peer: '127.0.0.1', headers: { host } }))]).toEqual([host, false])
    for (const name of ['x-forwarded-for', 'x-forwarded-proto', 'forwarded', 'x-real-ip', 'x-forwarded-host', 'via'])
      expect([name, reach(message({ peer: '127.0.0.1', headers: { ...local, [name]: '' } }))]).toEqual([name, false])
    // nginx without any configured header: HTTP/1.0, and Host is the upstream's.
    expect(reach(message({ peer: '127.0.0.1', headers: local, httpVersion: '1.0' }))).toBe(false)
  })

  // What Next.js adds to each request, and a development proxy (http-proxy with xfwd) to what it passes on.
  const added = {
    'x-forwarded-for': '::1',
    'x-forwarded-host': 'localhost:3000',
    'x-forwarded-port': '3000',
    'x-forwarded-proto': 'http',
  }
  const isLoopback = (headers: Record<string, string>) =>
    reach(message({ peer: '127.0.0.1', headers: { host: 'localhost:3000', ...headers } }))
  describe('behind what adds forwarded headers', () => {
    it('is let through where all of them are of this machine', () => {
      for (const headers of [
        {},
        { 'x-forwarded-for': '::ffff:127.0.0.1, ::1,127.0.0.1', 'x-forwarded-proto': 'http,http' },
        { 'x-forwarded-host': 'app.localhost:5173, localhost:3000' },
        { 'x-real-ip': '127.0.0.1' },
        // What http-proxy writes for a WebSocket.
        { 'x-forwarded-proto': 'ws' },
      ])
        expect([headers, isLoopback({ ...added, ...headers })]).toEqual([headers, true])
    })

    it('is let through where only the addresses are told, with or without one of the others', () => {
      const { 'x-forwarded-for': addresses, ...others } = added
      for (const [name, value] of [['x-real-ip', '::1'], ...Object.entries(others)] as [string, string][]) {
        expect(isLoopback({ 'x-forwarded-for': addresses, [name]: value })).toBe(true)
        expect(isLoopback({ 'x-real-ip': '127.0.0.1', [name]: value })).toBe(false)
      }
      expect(isLoopback({ 'x-forwarded-for': addresses })).toBe(true)
    })

    it('is not, as soon as one of them is not', () => {
      for (const headers of [
        // A real proxy on this machine: its clients are elsewhere.
        { 'x-forwarded-for': '203.0.113.9' },
        { 'x-forwarded-for': '127.0.0.1, 203.0.113.9' },
        { 'x-forwarded-for': '' },
        { 'x-forwarded-for': '127.0.0.1,' },
        { 'x-forwarded-for': '127.evil.example' },
        { 'x-forwarded-for': '::1%eth0' },
        { 'x-forwarded-for': '10.127.0.0.1' },
        { 'x-real-ip': '203.0.113.9' },
        { 'x-forwarded-host': 'app.example.com, localhost:3000' },
        { 'x-forwarded-host': '' },
        { 'x-forwarded-proto': 'http, https' },
        { 'x-forwarded-proto': '' },
        { forwarded: 'for=127.0.0.1;proto=http' },
        { via: '1.1 proxy' },
        { 'x-forwarded-server': 'localhost' },
        { 'cf-connecting-ip': '127.0.0.1' },
        // DNS rebinding: a page of another name whose address has become 127.0.0.1 forges what it can.
        { host: 'evil.example:3000' },
        { host: 'evil.example:3000', 'x-forwarded-host': 'evil.example:3000' },
      ] as Record<string, string>[])
        expect([headers, isLoopback({ ...added, ...headers })]).toEqual([headers, false])
    })

    it('is not where a proxy forwards the scheme or the host alone, and keeps its clients to itself', () => {
      for (const name of ['x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port'] as const)
        expect([name, isLoopback({ [name]: added[name] })]).toEqual([name, false])
    })
  })

  it('is at fetchVisits what Host and the URL say: the URL may name the address that the server listens on', async () => {
    const { sessions } = makeSessions()
    const { secret } = await sessions.create({ user: { id: 42, name: 'ada' } })
    const isTaken = async ({ url = 'http://localhost:3000/', ...headers }: Record<string, string>) => {
      // Next.js writes its own name into the URL, whatever Host says.
      const cookie = `session_id=${secret}`
      const request = new Request(url, { headers: { host: 'localhost:3000', cookie, ...added, ...headers } })
      return (await fetchVisits(sessions).of(request).get()) !== null
    }
    for (const url of ['http://localhost:3000/', 'http://0.0.0.0:3000/', 'http://[::]:3000/', 'http://0.0.0.0/'])
      expect([url, await isTaken({ url })]).toEqual([url, true])
    for (const host of ['app.example.com', '0.0.0.0.example.com', '10.0.0.0', '192.168.1.7:3000'])
      expect([host, await isTaken({ url: `http://${host}/` })]).toEqual([host, false])
    for (const headers of [{ 'x-forwarded-for': '203.0.113.9' }, { via: '1.1 proxy' }, { host: 'evil.example' }])
      expect([headers, await isTaken(headers as Record<string, string>)]).toEqual([headers, false])
  })

  it('knows its own names', () => {
    for (const host of [null, undefined, 'localhost:', 'localhost:123456', '127.1', '[::2]', '::1', 'localhost/x'])
      expect([host, isLocalHost(host)]).toEqual([host, false])
  })
})

describe('trusted proxies', () => {
  it.each([
    'localhost',
    '10.0.0.0/33',
    '10.0.0.0/100',
    'fd00::/1000',
    '10.0.0.0/-1',
    '10.0.0.0/08',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '10.0.0',
    '10.0.0.*',
    '::1/129',
    'fe80::1%eth0',
    '10.0.0.1:80',
    '',
    ' 10.0.0.1',
  ])('%j is a TypeError that quotes it', entry => {
    const { sessions } = makeSessions()
    expect(() => nodeVisits(sessions, { trustedProxies: [entry] })).toThrow(TypeError)
    expect(() => nodeVisits(sessions, { trustedProxies: [entry] })).toThrow(JSON.stringify(entry))
  })

  it('are addresses, and ranges of any length, of both families', () => {
    for (const [range, inside, outside] of [
      ['192.0.2.1', '192.0.2.1', '192.0.2.2'],
      ['0.0.0.0/0', '203.0.113.9', '2001:db8::1'],
      ['10.9.8.7/8', '10.255.0.1', '11.0.0.1'],
      ['10.0.0.0/8', '::ffff:10.0.0.1', '::ffff:11.0.0.1'],
      ['172.16.0.0/12', '172.31.255.255', '172.32.0.0'],
      ['10.1.2.3/32', '10.1.2.3', '10.1.2.2'],
      ['10.1.2.2/31', '10.1.2.3', '10.1.2.4'],
      ['2001:db8::/32', '2001:db8:1::5', '2001:db9::1'],
      ['fd00:1::/33', 'fd00:1::1', 'fd00:1:8000::1'],
      ['fd00::/100', 'fd00::fff:ffff', 'fd00::1000:0'],
      ['fd00::1/128', 'fd00::1', 'fd00::2'],
    ] as const) {
      const isTrusted = proxyTest(['198.51.100.7', range])
      expect([range, isTrusted(inside), isTrusted(outside)]).toEqual([range, true, false])
      for (const none of ['junk', '', undefined]) expect(isTrusted(none)).toBe(false)
    }
  })

  it('are a list', () => {
    for (const wrong of [new Set(['10.0.0.0/8']), 7, null])
      expect(() => proxyTest(wrong)).toThrow(/^trustedProxies: expected an array of addresses and ranges/)
    expect(() => secureTest({ trustedProxies: '10.0.0.0/8' as never })).toThrow(
      /^trustedProxies: expected an array of addresses and ranges, got "10\.0\.0\.0\/8"$/,
    )
    expect(() => proxyTest([true])).toThrow(/true/)
  })
})
