// @ts-check
/**
 * Resolves when the server was told to stop (SIGTERM, SIGINT) and has answered what it had received.
 * @param {import('node:http').Server} server
 * @returns {Promise<void>}
 */
export function untilStopped(server) {
  const stop = () => {
    server.close()
    // Requests that are being answered may finish; connections that are idle after that do not keep us.
    setInterval(() => server.closeIdleConnections(), 50).unref()
    setTimeout(() => server.closeAllConnections(), 5000).unref()
  }
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
  return new Promise((resolve, reject) => {
    server.once('close', () => resolve())
    server.once('error', reject)
  })
}
