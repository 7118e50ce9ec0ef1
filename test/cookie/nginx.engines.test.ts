// Behind a real reverse proxy that ends TLS, on loopback: with its forwarded headers, and without them.
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { text } from 'node:stream/consumers'
import { SessionManager } from 'coatcheck'
import { type NodeVisitsOptions, nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ada, answerError, jar, sender, threeEndpoints } from '../support/edge-service.ts'
import { type Listening, listening } from '../support/listening.ts'
import { describeEngine } from '../support/services/engines.ts'
import { startNginx } from '../support/services/nginx.ts'
import { type Certificate, makeCertificate } from '../support/services/tls.ts'

const NAME = 'app.example.test'
const FORWARDED =
  'proxy_set_header Host $host; proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;'
const HOST_ALONE = 'proxy_set_header Host $host;'
const HTTP_1_1 = 'proxy_http_version 1.1;'

describeEngine('nginx', 'behind nginx', () => {
  let certificate: Certificate
  let nginx: Awaited<ReturnType<typeof startNginx>>
  const servers: Listening[] = []
  const sessions = new SessionManager({ store: new MemoryStore() })
  /** Ports of nginx by name. */
  let port: Record<'trusting' | 'trustingPlain' | 'naive' | 'naivePlain' | 'bare' | 'barePlain' | 'host', number>

  async function backend(options: NodeVisitsOptions): Promise<number> {
    const visits = nodeVisits(sessions, options)
    const server = await listening((request, response) => {
      Promise.resolve(threeEndpoints(visits.of(request, response) as never, request, response)).catch(error =>
        answerError(response, error),
      )
    })
    servers.push(server)
    return server.port
  }

  beforeAll(async () => {
    certificate = makeCertificate([NAME])
    const trusting = await backend({ trustedProxies: ['127.0.0.0/8'] })
    const naive = await backend({})
    const fronts = {
      trusting: { tls: true, directives: FORWARDED, backend: trusting },
      trustingPlain: { tls: false, directives: FORWARDED, backend: trusting },
      naive: { tls: true, directives: FORWARDED, backend: naive },
      naivePlain: { tls: false, directives: FORWARDED, backend: naive },
      // As nginx comes: HTTP/1.0, and Host is the backend's address.
      bare: { tls: true, directives: '', backend: naive },
      barePlain: { tls: false, directives: '', backend: naive },
      host: { tls: true, directives: HOST_ALONE + HTTP_1_1, backend: trusting },
    }
    nginx = await startNginx(certificate, Object.values(fronts))
    port = Object.fromEntries(Object.keys(fronts).map((name, at) => [name, nginx.ports[at]!])) as typeof port
  })
  afterAll(async () => {
    await nginx?.stop()
    for (const server of servers) await server.close()
    certificate?.remove()
    await sessions.close()
  })

  const overTls = async (to: number, path: string, headers: Record<string, string> = {}, method = 'POST') => {
    const at = { host: '127.0.0.1', port: to, path, method, ca: certificate.cert, servername: NAME, agent: false }
    const asking = request({ ...at, headers: { Host: NAME, ...headers } }).end()
    const [response] = (await once(asking, 'response')) as [IncomingMessage]
    const { statusCode: status = 0, headers: answered } = response
    return { status, headers: answered, cookies: answered['set-cookie'] ?? [], body: await text(response) }
  }
  const overHttp = (to: number, path: string, headers: Record<string, string> = {}, method = 'POST') =>
    sender(to)(path, { method, headers: { Host: NAME, ...headers } })

  it('that is trusted, HTTPS logs in, finds the session and logs out', async () => {
    const login = await overTls(port.trusting, '/login', { Origin: `https://${NAME}` })
    expect([login.status, login.cookies]).toEqual([200, [expect.stringMatching(/; HttpOnly; Secure; SameSite=Lax$/)]])
    expect(login.headers).toMatchObject({ 'cache-control': 'no-store', vary: 'Cookie' })
    const cookie = jar(login.cookies)
    expect((await overTls(port.trusting, '/', { cookie }, 'GET')).body).toBe('ada')
    expect((await overTls(port.trusting, '/logout', { cookie })).body).toBe('null')
    expect((await overTls(port.trusting, '/', { cookie }, 'GET')).body).toBe('null')
  })

  it('that is trusted, plain HTTP is refused and its cookies are not honoured, whatever it claims', async () => {
    const { secret } = await sessions.create(ada)
    for (const headers of [{}, { 'X-Forwarded-Proto': 'https' }, { Forwarded: 'proto=https' }] as Record<
      string,
      string
    >[]) {
      const login = await overHttp(port.trustingPlain, '/login', headers)
      expect([login.status, login.body, login.cookies]).toEqual([403, 'ERR_SESSION_INSECURE', []])
      const cookie = `session_id=${secret}`
      expect((await overHttp(port.trustingPlain, '/', { ...headers, cookie }, 'GET')).body).toBe('null')
    }
  })

  it.each(['naive', 'naivePlain', 'bare', 'barePlain', 'host'] as const)(
    'that is not trusted, or says nothing, is noticed and not believed, also with HTTPS: its requests are not of this machine: %s',
    async front => {
      const send = front.endsWith('Plain') ? overHttp : overTls
      const login = await send(port[front], '/login')
      expect([login.status, login.body, login.cookies]).toEqual([403, 'ERR_SESSION_INSECURE', []])
    },
  )

  it('a page of another origin is refused, and the own one is not, by Origin alone', async () => {
    expect((await overTls(port.trusting, '/login', { Origin: 'https://evil.example.test' })).body).toBe(
      'ERR_SESSION_CROSS_ORIGIN',
    )
    expect((await overTls(port.trusting, '/login', { Origin: `https://${NAME}` })).status).toBe(200)
  })
})
