// @ts-check
// HTTPS without a proxy: plain HTTP is redirected, browsers are told to come by HTTPS alone, and the cookie has the
// `__Host-` prefix, with which no other host and no page without TLS can plant one. A certificate for development:
//   openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost -keyout key.pem -out cert.pem
// Behind a proxy that ends TLS keep `createServer` of node:http and name the proxy in both places:
//   nodeVisits(sessions, { trustedProxies: ['10.0.0.0/8'] }), requireHttps({ trustedProxies: ['10.0.0.0/8'] })
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { SessionManager } from 'coatcheck'
import { nodeVisits, requireHttps } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { listener, serve } from './serve.mjs'

const { PORT = '3443', HTTP_PORT = '3000', KEY = 'key.pem', CERT = 'cert.pem' } = process.env

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

const secure = createServer({ key: readFileSync(KEY), cert: readFileSync(CERT) })
secure.listen(Number(PORT), '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (secure.address())
  console.log(`https://localhost:${port}`)

  const https = requireHttps({
    insecure: 'redirect',
    host: `localhost:${port}`,
    hsts: { maxAge: '365d' },
    isSecure: request => 'encrypted' in request.socket, // here loopback has to come by HTTPS too
  })
  secure.on('request', (request, response) => https(request, response) || answer(request, response))
  serve((request, response) => https(request, response) || answer(request, response), Number(HTTP_PORT))
})
