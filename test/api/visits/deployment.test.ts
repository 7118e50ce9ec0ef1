// What docs/deployment.md says of proxies, containers and development servers, as their requests arrive here.
// Behind a real nginx: nginx.test.ts.
import { type IncomingMessage, ServerResponse } from 'node:http'
import { type NodeVisitsOptions, nodeVisits } from 'coatcheck/node'
import { describe, expect, it } from 'vitest'
import { ada, makeSessions, serve } from '../../support/edge-service.ts'

/** Whether a login by a request from that address is taken for one over HTTPS, or from this machine. */
async function isSafe(peer: string, headers: Record<string, string>, options: NodeVisitsOptions) {
  const request = { method: 'POST', socket: { remoteAddress: peer }, headers, httpVersion: '1.1' } as never
  const visit = nodeVisits(makeSessions().sessions, options).of(request, new ServerResponse(request))
  const code = await visit.logIn(ada).then(
    () => null,
    error => error.code,
  )
  expect([null, 'ERR_SESSION_INSECURE']).toContain(code)
  return code === null
}

describe('a request that arrives', () => {
  const app = 'app.example.com'
  const isSecure = (request: IncomingMessage) => request.headers['x-forwarded-proto'] === 'https'
  it.each<[string, string, Record<string, string>, NodeVisitsOptions, boolean]>([
    ['from nginx, which is not named', '127.0.0.1', { host: app, 'x-forwarded-proto': 'https' }, {}, false],
    [
      'from nginx, which is named',
      '127.0.0.1',
      { host: app, 'x-forwarded-proto': 'https', 'x-forwarded-for': '203.0.113.9' },
      { trustedProxies: ['127.0.0.1', '::1'] },
      true,
    ],
    ['from a router, with isSecure', '10.1.52.7', { host: app, 'x-forwarded-proto': 'https' }, { isSecure }, true],
    ['from a router, asked by HTTP', '10.1.52.7', { host: app, 'x-forwarded-proto': 'http' }, { isSecure }, false],
    ['on this machine, with isSecure', '127.0.0.1', { host: 'localhost:3000' }, { isSecure }, false],
    [
      'by way of Cloudflare "Flexible" and a proxy',
      '127.0.0.1',
      { host: app, 'x-forwarded-proto': 'http', 'cf-connecting-ip': '203.0.113.9' },
      { trustedProxies: ['127.0.0.1'] },
      false,
    ],
    [
      'from cloudflared on this machine, which is not named',
      '127.0.0.1',
      { host: 'localhost:3000', 'cf-connecting-ip': '203.0.113.9', 'x-forwarded-proto': 'https' },
      {},
      false,
    ],
    [
      'from cloudflared on this machine, which is named',
      '127.0.0.1',
      { host: app, 'cf-connecting-ip': '203.0.113.9', 'x-forwarded-proto': 'https' },
      { trustedProxies: ['127.0.0.1', '::1'] },
      true,
    ],
    [
      'from an ingress of the range',
      '10.0.7.3',
      { 'x-forwarded-proto': 'https' },
      { trustedProxies: ['10.0.0.0/16'] },
      true,
    ],
    ['from beside the range', '10.1.7.3', { 'x-forwarded-proto': 'https' }, { trustedProxies: ['10.0.0.0/16'] }, false],
    ['at a port that Docker published', '172.17.0.1', { host: 'localhost:3000' }, {}, false],
    ['from a phone in the same network', '192.168.1.9', { host: '192.168.1.7:3000' }, {}, false],
    ["from Vite's proxy, short form", '127.0.0.1', { host: 'localhost:3000' }, {}, true],
    [
      "from Vite's proxy with xfwd",
      '::1',
      {
        host: 'localhost:5173',
        'x-forwarded-for': '::1',
        'x-forwarded-host': 'localhost:5173',
        'x-forwarded-proto': 'http',
      },
      {},
      true,
    ],
  ])('%s', async (_, peer, headers, options, expected) => {
    expect(await isSafe(peer, headers, options)).toBe(expected)
  })
})

const logIn = async (headers: Record<string, string>, edge: NodeVisitsOptions = {}) => {
  const { send } = await serve(
    async (visit, _request, response) => {
      await visit.logIn(ada)
      response.end('logged in')
    },
    { edge },
  )
  return send('/login', { method: 'POST', headers })
}

describe("a login by way of Vite's proxy", () => {
  const front = { Origin: 'http://localhost:5173' }

  it('works where the proxy leaves Host alone', async () => {
    expect((await logIn({ ...front, Host: 'localhost:5173' })).body).toBe('logged in')
  })

  it('works where the proxy changes Host and the browser sends Sec-Fetch-Site', async () => {
    const headers = { ...front, Host: 'localhost:3000', 'Sec-Fetch-Site': 'same-origin' }
    expect((await logIn(headers)).body).toBe('logged in')
  })

  it('is refused where the proxy changes Host and the browser sends Origin alone', async () => {
    expect((await logIn({ ...front, Host: 'localhost:3000' })).body).toBe('ERR_SESSION_CROSS_ORIGIN')
  })
})

describe('a login without HTTPS from another machine', () => {
  // Host says that the request was not made for this machine, as from a phone.
  const headers = { Host: '192.168.1.7:3000' }

  it('is refused', async () => {
    const { status, body, cookies } = await logIn(headers)
    expect([status, body, cookies]).toEqual([403, 'ERR_SESSION_INSECURE', []])
  })

  it('works where the cookie gives HTTPS up, and the cookie is not Secure', async () => {
    const { status, cookies } = await logIn(headers, { cookie: { secure: false } })
    expect([status, cookies]).toEqual([200, [expect.not.stringContaining('Secure')]])
  })
})
