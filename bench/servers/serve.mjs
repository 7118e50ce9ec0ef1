// @ts-check
// What all servers of the benchmarks share: they listen, tell their port, and report their processor time.
import { createServer } from 'node:http'

const dist = process.env.COATCHECK_DIST ?? new URL('../../dist/', import.meta.url).href
/** A part of the library as it was built. @param {string} path @returns {Promise<any>} */
export const coatcheck = path => import(new URL(path, dist).href)

/** @param {string | undefined} url */
export const userOf = url => {
  const id = Number(/user=(\d+)/.exec(url ?? '')?.[1])
  return { id, name: `user ${id}` }
}

/**
 * @param {import('node:http').ServerResponse} response
 * @param {string} body
 */
export function send(response, body) {
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) })
  response.end(body)
}

/** @param {import('node:http').IncomingMessage} request */
export const idOf = request => /(?:^|; )session_id=([\w-]{43})(?:;|$)/.exec(request.headers.cookie ?? '')?.[1]

/** The path without its query. @param {string | undefined} url */
export const pathOf = url => /^[^?]*/.exec(url ?? '')?.[0] ?? ''

/** @typedef {(request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => unknown} Handler */

/**
 * Serves the entry that the command line names. A package that is missing is told to the process that asked.
 * @param {Record<string, () => Handler | Promise<Handler>>} handlers
 */
export async function serve(handlers) {
  const make = handlers[process.argv[2] ?? '']
  if (!make) throw new Error(`no such server: ${process.argv[2]}`)
  process.on('message', question => {
    if (question === 'cpu') process.send?.(process.cpuUsage())
    else process.exit()
  })
  process.on('disconnect', () => process.exit())
  try {
    const server = createServer(/** @type {any} */ (await make()))
    // Connections are idle while the others have their turn.
    server.keepAliveTimeout = 0
    server.headersTimeout = 0
    server.requestTimeout = 0
    server.listen(0, '127.0.0.1', () => process.send?.(/** @type {any} */ (server.address()).port))
  } catch (error) {
    process.send?.({ error: error instanceof Error ? error.message.split('\n')[0] : String(error) })
  }
}
