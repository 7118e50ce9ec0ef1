// @ts-check
// Log in, read the profile, choose a theme, log out; what happens meanwhile is at http://127.0.0.1:9464/metrics.
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { SessionManager, stringify } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { register } from 'prom-client'
import { openStore } from '../server/store.mjs' // in place of your store
import { openUsers } from '../server/users.mjs' // in place of your user table
import { gaugeLive, measured, requests } from './metrics.mjs'

const users = await openUsers()
const { store, close } = await openStore(process.env.STORE_URL ?? 'memory:')
const sessions = new SessionManager({ store: measured(store), rememberFor: '30d', initial: () => ({ theme: 'light' }) })
const visits = nodeVisits(sessions)
gaugeLive(() => sessions.count())

/** @type {(status: number, code: string) => Error} */
const failure = (status, code) => Object.assign(new Error(code), { status, code, expose: true })
/** @param {unknown} field what a client sent: a text, and not a long one */
function text(field) {
  if (typeof field !== 'string' || field.length > 200 || field.includes('\0')) throw failure(400, 'malformed_field')
  return field
}

/** @type {Record<string, (visit: import('coatcheck').Visit, body: () => Promise<any>) => Promise<unknown>>} */
const endpoints = {
  async 'POST /login'(visit, body) {
    const { username, password, remember } = await body()
    const user = await users.authenticate(text(username), text(password))
    if (!user) throw failure(401, 'wrong_credentials')
    return (await visit.logIn({ user, remember: remember === true })).user
  },
  'GET /profile': async visit => (await visit.requireUser()).user,
  async 'PUT /theme'(visit, body) {
    await visit.requireUser() // before the body: a stranger's is not read
    const { theme } = await body()
    if (theme !== 'light' && theme !== 'dark') throw failure(400, 'unknown_theme')
    return (await visit.update({ theme }))?.data.theme
  },
  'POST /logout': async visit => visit.logOut().then(() => 'Logged out.'),
}

const app = createServer(async (request, response) => {
  const name = `${request.method} ${request.url}`
  const endpoint = Object.hasOwn(endpoints, name) ? endpoints[name] : undefined
  // What is not there gets one name: scanners ask for any number of paths.
  const stop = requests.startTimer({ endpoint: endpoint ? name : 'none' })
  response.once('close', () => stop({ status: response.statusCode }))
  try {
    if (!endpoint) throw failure(404, 'not_found')
    const visit = visits.of(request, response)
    visit.checkOrigin() // what a page of another origin sends gets no further
    const answer = await endpoint(visit, async () => {
      if (!(Number(request.headers['content-length']) <= 16_384)) throw failure(413, 'too_large')
      return (await json(request)) ?? {}
    })
    response.setHeader('Content-Type', 'application/json').end(stringify(answer))
  } catch (caught) {
    // The errors of the library have the status that fits: 401, 403, 409 or 503. Others have no `expose`.
    const error = caught instanceof SyntaxError ? failure(400, 'malformed_json') : /** @type {any} */ (caught)
    const { expose, status, code } = error
    const isMeant = typeof expose === 'boolean' && Number.isInteger(status)
    if (expose !== true) console.error(caught) // the details are for the log alone
    response.writeHead(isMeant ? status : 500, { 'Content-Type': 'application/json' })
    response.end(stringify({ error: isMeant ? code : 'internal_error' }))
  }
})

// A port of its own, which the load balancer does not know: how many users log in is not for the public.
const metrics = createServer(async (_, response) => {
  try {
    response.setHeader('Content-Type', register.contentType).end(await register.metrics())
  } catch (error) {
    console.error(error)
    response.writeHead(500).end()
  }
})

app.listen(Number(process.env.PORT ?? 3000), () => console.log('listening', app.address()))
metrics.listen(Number(process.env.METRICS_PORT ?? 9464), '127.0.0.1')

process.once('SIGTERM', () => {
  metrics.close()
  app.close(async () => {
    await sessions.close()
    await close()
  })
})
