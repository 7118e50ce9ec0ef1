// @ts-check
// What the short examples share, so that they can be about sessions: endpoints to answers, errors to their status.
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { stringify } from 'coatcheck'

/**
 * An error whose text the client may read.
 * @param {number} status
 * @param {string} message
 */
export const failure = (status, message) => Object.assign(new Error(message), { status, expose: true })

/**
 * A field of what a client sent: a text, and not a long one.
 * @param {any} body
 * @param {string} field
 */
export function text(body, field) {
  const value = body?.[field]
  if (typeof value !== 'string' || value.length > 200 || value.includes('\0'))
    throw failure(400, `"${field}" has to be a text.`)
  return value
}

/**
 * A listener for node:http that answers with JSON.
 * @template {{ checkOrigin(): void }} V
 * @param {(request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => V} visitOf
 * @param {Record<string, (visit: V, body: any, request: import('node:http').IncomingMessage) => Promise<unknown>>} endpoints
 * @returns {import('node:http').RequestListener}
 */
export const listener = (visitOf, endpoints) => async (request, response) => {
  try {
    const visit = visitOf(request, response)
    visit.checkOrigin() // what a page of another origin sends gets no further
    const name = `${request.method} ${request.url}`
    const endpoint = Object.hasOwn(endpoints, name) ? endpoints[name] : undefined
    if (!endpoint) throw failure(404, 'There is nothing here.')
    const { 'content-type': type, 'content-length': length } = request.headers
    const isJson = type?.startsWith('application/json')
    if (isJson && !(Number(length) <= 16_384))
      throw failure(413, 'The body may have 16 KiB, and needs a Content-Length.')
    const body = isJson ? await json(request).catch(() => null) : {}
    if (typeof body !== 'object' || body === null) throw failure(400, 'The body is no JSON object.')
    const answer = await endpoint(visit, body, request)
    response.setHeader('Content-Type', 'application/json').end(stringify(answer))
  } catch (error) {
    // Of others' errors nothing is shown, their status included: they may name tables, hosts and keys.
    const { expose, status, message } = /** @type {any} */ (error)
    const code = typeof expose === 'boolean' && Number.isInteger(status) ? status : 500
    if (code >= 500) console.error(error)
    const shown = expose === true ? message : 'Something went wrong.'
    response.writeHead(code, { 'Content-Type': 'application/json' }).end(stringify({ error: shown }))
  }
}

/**
 * Listens on loopback, at PORT, and prints the address.
 * @param {import('node:http').RequestListener} onRequest
 * @param {number} [port]
 */
export function serve(onRequest, port = Number(process.env.PORT ?? 3000)) {
  const server = createServer(onRequest).listen(port, '127.0.0.1', () => {
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
    console.log(`http://127.0.0.1:${port}`)
  })
  return server
}
