// @ts-check
// Log in, read the profile, choose a theme, log out: a trace of each request, and metrics of all.
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { SessionManager, stringify } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { openStore } from '../server/store.mjs' // in place of your store
import { openUsers } from '../server/users.mjs' // in place of your user table
import { gaugeLive, requests, stopTelemetry, traced } from './telemetry.mjs'

const users = await openUsers()
const url = process.env.STORE_URL ?? 'memory:'
const { store, close } = await openStore(url)
const sessions = new SessionManager({
  store: traced(store, url.split(':', 1)[0] ?? ''), // 'redis', 'postgresql', …
  rememberFor: '30d',
  initial: () => ({ theme: 'light' }),
})
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

/** @param {import('node:http').IncomingMessage} request @param {import('node:http').ServerResponse} response */
async function answer(request, response) {
  try {
    const name = `${request.method} ${request.url}`
    const endpoint = Object.hasOwn(endpoints, name) ? endpoints[name] : undefined
    if (!endpoint) throw failure(404, 'not_found')
    const visit = visits.of(request, response)
    visit.checkOrigin() // what a page of another origin sends gets no further
    const found = await endpoint(visit, async () => {
      if (!(Number(request.headers['content-length']) <= 16_384)) throw failure(413, 'too_large')
      return (await json(request)) ?? {}
    })
    response.setHeader('Content-Type', 'application/json').end(stringify(found))
  } catch (caught) {
    // The errors of the library have the status that fits: 401, 403, 409 or 503. Others have no `expose`.
    const error = caught instanceof SyntaxError ? failure(400, 'malformed_json') : /** @type {any} */ (caught)
    const { expose, status, code } = error
    const isMeant = typeof expose === 'boolean' && Number.isInteger(status)
    if (expose !== true) console.error(caught) // the details are for the log alone
    response.writeHead(isMeant ? status : 500, { 'Content-Type': 'application/json' })
    response.end(stringify({ error: isMeant ? code : 'internal_error' }))
  }
}

const tracer = trace.getTracer('app')
const server = createServer((request, response) => {
  const begun = performance.now()
  const { method = '', url = '' } = request
  const isKnown = Object.hasOwn(endpoints, `${method} ${url}`)
  // What is not there has no route: scanners ask for any number of paths.
  const attributes = {
    'http.request.method': isKnown ? method : '_OTHER',
    'url.scheme': 'http',
    ...(isKnown && { 'http.route': url }),
  }
  const caller = propagation.extract(context.active(), request.headers)
  const name = isKnown ? `${method} ${url}` : 'HTTP'
  tracer.startActiveSpan(name, { kind: SpanKind.SERVER, attributes }, caller, span => {
    response.once('close', () => {
      const { statusCode } = response
      const status = {
        'http.response.status_code': statusCode,
        ...(statusCode >= 500 && { 'error.type': `${statusCode}` }),
      }
      requests.record((performance.now() - begun) / 1000, { ...attributes, ...status })
      span.setAttributes(status)
      if (statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
      span.end()
    })
    void answer(request, response)
  })
})
server.listen(Number(process.env.PORT ?? 3000), () => console.log('listening', server.address()))

process.once('SIGTERM', () => {
  server.close(async () => {
    await stopTelemetry() // asks the store once more how many sessions are live
    await sessions.close()
    await close()
  })
})
