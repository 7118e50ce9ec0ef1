// A server on node:http2, without a cast: visits are the same as on node:http.
import { once } from 'node:events'
import http2, { type ClientHttp2Session, createSecureServer, type IncomingHttpHeaders } from 'node:http2'
import { SessionManager, stringify } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { portOf } from '../support/listening.ts'
import { type Certificate, makeCertificate } from '../support/services/tls.ts'

let certificate: Certificate
let client: ClientHttp2Session
let origin: string
const closing: (() => unknown)[] = []
beforeAll(async () => {
  certificate = makeCertificate(['localhost'])
  const sessions = new SessionManager({ store: new MemoryStore() })
  const visits = nodeVisits(sessions)
  const server = createSecureServer({ key: certificate.key, cert: certificate.cert }, async (request, response) => {
    try {
      const visit = visits.of(request, response)
      if (request.url === '/login') await visit.logIn({ user: { id: 2n ** 64n - 1n, name: 'ada' } })
      if (request.url === '/logout') await visit.logOut()
      if (request.headers['x-theme'] === 'explicit') response.writeHead(200, { 'set-cookie': 'theme=dark' })
      if (request.headers['x-theme'] === 'implicit') response.setHeader('set-cookie', 'theme=dark')
      response.end(stringify((await visit.get())?.user ?? null))
    } catch (error) {
      response.writeHead((error as { status?: number }).status ?? 500).end()
    }
  })
  origin = `https://localhost:${await portOf(server)}`
  client = http2.connect(origin, { ca: certificate.cert })
  closing.push(
    () => client.destroy(),
    () => server.close(),
    () => certificate.remove(),
  )
})
afterAll(() => {
  for (const close of closing) close()
})

async function ask(method: string, path: string, headers: Record<string, string> = {}) {
  const asked = client.request({ ':method': method, ':path': path, ...headers })
  asked.end()
  const [answered] = (await once(asked, 'response')) as [IncomingHttpHeaders]
  let body = ''
  for await (const chunk of asked) body += chunk
  return { status: answered[':status'], headers: answered, cookies: answered['set-cookie'] ?? [], body }
}

describe('a server on node:http2', () => {
  it('logs in, knows the user by the cookie, and logs out', async () => {
    const { cookies, headers } = await ask('POST', '/login')
    expect(headers['cache-control']).toBe('no-store')
    expect(cookies).toHaveLength(1)
    expect(cookies[0]).toMatch(/^session_id=[\w-]+; Max-Age=1800; Path=\/; HttpOnly; Secure; SameSite=Lax$/)
    const cookie = cookies[0]!.split(';')[0]!
    expect((await ask('GET', '/profile', { cookie })).body).toBe('{"id":18446744073709551615,"name":"ada"}')
    const loggedOut = await ask('POST', '/logout', { cookie })
    expect(loggedOut.cookies[0]).toContain('session_id=; Max-Age=0')
    expect((await ask('GET', '/profile', { cookie })).body).toBe('null')
  })

  it.each(['implicit', 'explicit'])(
    'keeps what the application sets beside our headers, by an %s head',
    async theme => {
      // A form of its own page: the host is that of `:authority`.
      const { headers, cookies } = await ask('POST', '/login', { 'x-theme': theme, origin })
      expect(cookies).toEqual(['theme=dark', expect.stringMatching(/^session_id=/)])
      expect([headers['cache-control'], headers.vary]).toEqual(['no-store', 'Cookie'])
    },
  )
})
