// @ts-check
// A front end on another origin of the same site (app.example.com calling api.example.com; here two ports of
// localhost). The list is given twice: CORS says whose pages may read the answers, `trustedOrigins` whose may send.
import { SessionManager } from 'coatcheck'
import { cors, nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import { listener, serve } from './serve.mjs'

const { PORT = '3000', FRONT_PORT = '3001' } = process.env
const origins = [`http://localhost:${FRONT_PORT}`]

const sessions = new SessionManager({ store: new MemoryStore() })
const allow = cors({ origins })
// The site is the same, so SameSite=Lax lets the cookie through. A front end on another site needs
// `cookie: { sameSite: 'none', partitioned: true }`, and browsers that refuse third-party cookies still refuse it.
const visits = nodeVisits(sessions, { trustedOrigins: origins })

const answer = listener(visits.of, {
  async 'POST /login'(visit) {
    await visit.logIn({ user: { id: 42n, name: 'ada' } }) // after the password was verified: see login.mjs
    return 'Logged in.'
  },
  async 'GET /profile'(visit) {
    return (await visit.get())?.user ?? null
  },
})
serve((request, response) => allow(request, response) || answer(request, response), Number(PORT))

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
