// @ts-check
// Log in, read the profile, log out: three endpoints on node:http alone.
//   curl -i -c jar -H 'Content-Type: application/json' -d '{"username":"ada","password":"lovelace"}' localhost:3000/login
//   curl -i -b jar localhost:3000/profile
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { SessionManager, stringify } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'

const visits = nodeVisits(new SessionManager({ store: new MemoryStore() }))

// In place of your user table and its password hashes, which server/users.mjs shows.
const users = [{ id: 42n, name: 'ada', password: 'lovelace' }]
/** @type {(status: number, message: string) => Error} */
const failure = (status, message) => Object.assign(new Error(message), { status, expose: true })

/** @type {Record<string, (visit: ReturnType<typeof visits.of>, body: any) => Promise<unknown>>} */
const endpoints = {
  async 'POST /login'(visit, body) {
    const user = users.find(({ name, password }) => name === body?.username && password === body.password)
    if (!user) throw failure(401, 'wrong name or password')
    await visit.logIn({ user }) // a new ID; whatever the client had is dead
    return 'Logged in.'
  },
  'GET /profile': async visit => (await visit.get())?.user ?? null,
  'POST /logout': async visit => visit.logOut().then(() => 'Logged out.'),
}

const server = createServer(async (request, response) => {
  try {
    visits.of(request, response).checkOrigin() // what a page of another origin sends gets no further
    const endpoint = endpoints[`${request.method} ${request.url}`]
    if (!endpoint) throw failure(404, 'nothing here')
    const isJson = request.headers['content-type']?.startsWith('application/json')
    if (isJson && !(Number(request.headers['content-length']) <= 16_384)) throw failure(413, 'over 16 KiB or no length')
    const answer = await endpoint(visits.of(request, response), isJson && (await json(request)))
    response.setHeader('Content-Type', 'application/json').end(stringify(answer))
  } catch (error) {
    // The library's errors carry the status that fits: 401, 403, 503. Others have no `expose`: details are for the log alone.
    const known = error instanceof SyntaxError ? failure(400, 'no JSON') : error
    const { expose, status, message } = /** @type {any} */ (known)
    const code = typeof expose === 'boolean' && Number.isInteger(status) ? status : 500
    if (code >= 500) console.error(error)
    response.writeHead(code).end(stringify({ error: expose === true ? message : 'something went wrong' }))
  }
})
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => console.log('listening', server.address()))
