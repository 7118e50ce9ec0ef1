// @ts-check
// Sessions of native apps and command-line tools, without cookies: the app sends `Authorization: Bearer TOKEN` and keeps
// what comes in `Session-Token`; an empty one means that it forgets its token.
//   curl -i -H 'Content-Type: application/json' -d '{"username":"ada","password":"lovelace"}' localhost:3000/login
//   curl -i -H 'Authorization: Bearer …' localhost:3000/profile
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { SessionManager, sessionId, stringify } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'

const sessions = new SessionManager({ store: new MemoryStore() })

// In place of your user table and its password hashes, which server/users.mjs shows.
const users = [{ id: 42n, name: 'ada', password: 'lovelace' }]

/** @type {(status: number, message: string) => Error} */
const failure = (status, message) => Object.assign(new Error(message), { status, expose: true })

/** @param {import('node:http').IncomingMessage} request */
function visitOf({ method = '', headers, socket }) {
  const [, text] = /^Bearer +([^ ]+)$/i.exec(headers.authorization ?? '') ?? []
  const token = sessionId(text) // whatever else stands there is no token
  return openVisit(sessions, {
    method,
    // Never the request's own Cookie header: a browser sends cookies for pages of other sites too, an Authorization
    // header it does not. That is why no origin has to be looked at here, and only the host is told.
    cookie: token && `session_id=${token}`,
    header: name => (name === 'host' ? (headers.host ?? 'localhost') : null),
    // Over TLS, or on this machine. Behind a proxy of yours: what it says in X-Forwarded-Proto.
    secure: 'encrypted' in socket || /^(::ffff:)?127\.|^::1$/.test(socket.remoteAddress ?? ''),
  })
}

/** @type {Record<string, (visit: import('coatcheck').Visit, body: any) => Promise<unknown>>} */
const endpoints = {
  async 'POST /login'(visit, body) {
    const user = users.find(({ name, password }) => name === body?.username && password === body.password)
    if (!user) throw failure(401, 'wrong name or password')
    await visit.logIn({ user })
    return 'Logged in.'
  },
  'GET /profile': async visit => (await visit.get())?.user ?? null,
  'POST /rotate': async visit => ((await visit.regenerate({ grace: '30s' })) ? 'A new token.' : null),
  'POST /logout': async visit => visit.logOut().then(() => 'Logged out.'),
}

const server = createServer(async (request, response) => {
  try {
    const endpoint = endpoints[`${request.method} ${request.url}`]
    if (!endpoint) throw failure(404, 'nothing here')
    const isJson = request.headers['content-type']?.startsWith('application/json')
    if (isJson && !(Number(request.headers['content-length']) <= 16_384)) throw failure(413, 'over 16 KiB or no length')
    const visit = visitOf(request)
    const answer = await endpoint(visit, isJson && (await json(request)))
    for (const { value } of visit.finish().cookies) response.setHeader('Session-Token', value)
    response.setHeader('Cache-Control', 'no-store').setHeader('Content-Type', 'application/json').end(stringify(answer))
  } catch (error) {
    // The library's errors carry the status that fits. At 503 the app keeps its token. Of others' nothing is shown.
    const { expose, status, message } =
      error instanceof SyntaxError ? failure(400, 'no JSON') : /** @type {any} */ (error)
    const code = typeof expose === 'boolean' && Number.isInteger(status) ? status : 500
    if (code >= 500) console.error(error)
    response.writeHead(code).end(stringify({ error: expose === true ? message : 'something went wrong' }))
  }
})
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => console.log('listening', server.address()))
