// @ts-check
// What the short examples share, so that they can be about sessions: endpoints to answers, errors to their status.
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { stringify } from 'coatcheck'

/** @typedef {Error & { status?: number }} StatusError */

/**
 * @param {number} status
 * @param {string} message
 * @returns {StatusError}
 */
export const failure = (status, message) => Object.assign(new Error(message), { status })

/**
 * A listener for node:http that answers with JSON.
 * @template V
 * @param {(request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => V} visitOf
 * @param {Record<string, (visit: V, body: any, request: import('node:http').IncomingMessage) => Promise<unknown>>} endpoints
 * @returns {import('node:http').RequestListener}
 */
export const listener = (visitOf, endpoints) => async (request, response) => {
  try {
    const name = `${request.method} ${request.url}`
    const endpoint = Object.hasOwn(endpoints, name) ? endpoints[name] : undefined
    if (!endpoint) throw failure(404, 'There is nothing here.')
    const { 'content-type': type, 'content-length': length } = request.headers
    const isJson = type?.startsWith('application/json')
    if (isJson && !(Number(length) <= 16_384))
      throw failure(413, 'The body may have 16 KiB, and needs a Content-Length.')
    const body = isJson ? await json(request).catch(() => null) : {}
    if (typeof body !== 'object' || body === null) throw failure(400, 'The body is no JSON object.')
    const answer = await endpoint(visitOf(request, response), body, request)
    response.setHeader('Content-Type', 'application/json').end(stringify(answer))
  } catch (error) {
    const { status = 500, message } = /** @type {StatusError} */ (error)
    // From 500 on the message may name tables and hosts: it is for the log alone.
    if (status >= 500) console.error(error)
    const shown = status < 500 ? message : 'Something went wrong.'
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(stringify({ error: shown }))
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
