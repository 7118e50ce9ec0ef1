// @ts-check
// A front end on another origin of the same site (app.example.com calling api.example.com; here two ports of
// localhost). The list is given twice: CORS says whose pages may read the answers, `trustedOrigins` whose may send.
import { SessionManager } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { listener, serve } from './serve.mjs'

const { PORT = '3000', FRONT_PORT = '3001' } = process.env
const origins = [`http://localhost:${FRONT_PORT}`]

const sessions = new SessionManager({ store: new MemoryStore() })
// The site is the same, so SameSite=Lax lets the cookie through. A front end on another site needs
// `cookie: { sameSite: 'none', partitioned: true }`, and browsers that refuse third-party cookies still refuse it.
const visits = nodeVisits(sessions, { trustedOrigins: origins })

/**
 * Says whose pages may read the answer, and answers a preflight without a look at the session: `true` if it did.
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 */
function cors(request, response) {
  const { origin } = request.headers
  // Exact origins: with credentials '*' is a name like any other, and allows nothing.
  const isAllowed = origin !== undefined && origins.includes(origin)
  // On every response, also to those without Origin: a cache must not give one origin's answer to another.
  response.setHeader('Vary', 'Origin')
  if (isAllowed) {
    response.setHeader('Access-Control-Allow-Origin', origin)
    response.setHeader('Access-Control-Allow-Credentials', 'true')
  }
  const isPreflight =
    request.method === 'OPTIONS' &&
    origin !== undefined &&
    request.headers['access-control-request-method'] !== undefined
  if (!isPreflight) return false
  if (isAllowed) {
    response.setHeader('Access-Control-Allow-Methods', 'PUT, PATCH, DELETE') // GET, HEAD and POST need no permission
    response.setHeader('Access-Control-Allow-Headers', 'Content-Type')
    response.setHeader('Access-Control-Max-Age', 600)
  }
  response.writeHead(isAllowed ? 204 : 403).end()
  return true
}

const answer = listener(visits.of, {
  async 'POST /login'(visit) {
    await visit.logIn({ user: { id: 42n, name: 'ada' } }) // after the password was verified: see login.mjs
    return 'Logged in.'
  },
  async 'GET /profile'(visit) {
    return (await visit.get())?.user ?? null
  },
})
serve((request, response) => cors(request, response) || answer(request, response), Number(PORT))

// The front end: a page of its own that asks the other origin.
serve((_request, response) => {
  response.setHeader('Content-Type', 'text/html; charset=utf-8').end(`<!doctype html>
<title>Front end</title>
<button>Log in</button> <output></output>
<script>
  document.querySelector('button').onclick = async () => {
    // Without 'include' the browser neither sends cookies to another origin nor keeps them.
    const call = (path, options) => fetch('http://localhost:${PORT}' + path, { credentials: 'include', ...options })
    await call('/login', { method: 'POST' })
    document.querySelector('output').textContent = await (await call('/profile')).text()
  }
</script>
`)
}, Number(FRONT_PORT))
