// @ts-check
// HTTPS without a proxy: plain HTTP is redirected, browsers are told to come by HTTPS alone, and the cookie has the
// `__Host-` prefix, with which no other host and no page without TLS can plant one. Without a certificate it prints the
// line that makes one for development.
// Behind a proxy that ends TLS the proxy redirects, and sends Strict-Transport-Security. Keep `createServer` of node:http
// there, and name the proxy: nodeVisits(sessions, { trustedProxies: ['10.0.0.0/8'] }).
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { SessionManager } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { listener, serve } from './serve.mjs'

const { PORT = '3443', HTTP_PORT = '3000', KEY = 'key.pem', CERT = 'cert.pem' } = process.env

if (!existsSync(KEY) || !existsSync(CERT)) {
  console.error(`There is no certificate yet. Make one for development, then start this again:
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost -keyout ${KEY} -out ${CERT}`)
  process.exit(1)
}

const sessions = new SessionManager({ store: new MemoryStore() })
const visits = nodeVisits(sessions, { cookie: { hostPrefix: true } })

const answer = listener(visits.of, {
  async 'POST /login'(visit) {
    await visit.logIn({ user: { id: 42n, name: 'ada' } }) // after the password was verified: see login.mjs
    return 'Logged in.'
  },
  async 'GET /profile'(visit) {
    return (await visit.get())?.user ?? null
  },
})

const secure = createServer({ key: readFileSync(KEY), cert: readFileSync(CERT) }, (request, response) => {
  // Over TLS alone: browsers ignore it elsewhere. Begin with a short time, since it cannot be taken back.
  response.setHeader('Strict-Transport-Security', `max-age=${365 * 24 * 60 * 60}`)
  answer(request, response)
})
secure.listen(Number(PORT), '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (secure.address())
  console.log(`https://localhost:${port}`)

  serve((request, response) => {
    const { method, url = '' } = request
    // A fixed host, since anybody can send any Host. What has a body has sent it in the clear, and is refused.
    const isRedirected = (method === 'GET' || method === 'HEAD') && url.startsWith('/')
    if (isRedirected) response.writeHead(308, { Location: `https://localhost:${port}${url}` }).end()
    else response.writeHead(403).end('This service answers over HTTPS only.')
  }, Number(HTTP_PORT))
})
