// @ts-check
import { createServer } from 'node:http'

/** @typedef {{ request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse }} Exchange */

/** @type {Promise<Exchange> | undefined} */
let pair

/**
 * A request that waits for its answer, and the response to it: one per process, because one block of code runs there.
 * @returns {Promise<Exchange>}
 */
export function exchange() {
  pair ??= new Promise(resolve => {
    const server = createServer((request, response) => resolve({ request, response }))
    server.listen(0, '127.0.0.1', () => {
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
      fetch(`http://127.0.0.1:${port}/`, { method: 'POST' }).catch(() => {})
    })
  })
  return pair
}
