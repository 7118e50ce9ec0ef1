// @ts-check
// The example service, `npm start`: login, profile, logout, password change and devices, with a page at `/`.
// PORT (3000), HOST (127.0.0.1), STORE_URL (memory:) and COOKIE_SECURE (on) come from the environment.
import { createServer } from 'node:http'
import { SessionManager } from 'coatcheck'
import { createApp } from './server/app.mjs'
import { CLIENTS, withHint } from './server/hint.mjs'
import { untilStopped } from './server/stop.mjs'
import { ConfigurationError, openStore } from './server/store.mjs'
import { openUsers } from './server/users.mjs'

const { PORT = '3000', HOST = '127.0.0.1', STORE_URL = 'memory:', COOKIE_SECURE = 'on' } = process.env

/**
 * What an operator wants to hear. Events have keys, which are safe to log, never session IDs.
 * @param {import('coatcheck').SessionEvent<'bigint'>} event
 */
function report(event) {
  if (event.type === 'store-error') console.error('store:', event.error)
  else if (event.type === 'remember-theft') console.error(`a remember token was used twice: series ${event.key} ended`)
  else if (event.type === 'corrupt-record') console.error(`record ${event.key} was corrupt: ${event.cause}`)
}

async function main() {
  const port = Number(PORT)
  if (!/^\d{1,5}$/.test(PORT) || port > 65_535)
    throw new ConfigurationError(`PORT: expected a number from 0 to 65535, got "${PORT}"`)
  if (COOKIE_SECURE !== 'on' && COOKIE_SECURE !== 'off')
    throw new ConfigurationError(`COOKIE_SECURE: expected on or off, got "${COOKIE_SECURE}"`)
  const secure = COOKIE_SECURE === 'on'
  if (!secure && !/^(?:127(?:\.\d{1,3}){3}|::1|localhost)$/.test(HOST))
    throw new ConfigurationError(`COOKIE_SECURE=off is for this machine alone, not for HOST=${HOST}`)
  const { store, name, close } = await openStore(STORE_URL)
  const sessions = new SessionManager({ store, initial: () => ({ label: '' }), rememberFor: '30d', onEvent: report })
  const app = createApp({ sessions, users: await openUsers(), cookie: { secure } })
  // A body that does not arrive within this time is answered with 408 by node:http.
  const server = createServer({ requestTimeout: 30_000 }, secure ? withHint(app) : app)

  const stopped = untilStopped(server)
  server.listen(port, HOST, () => {
    const address = server.address()
    if (typeof address !== 'object' || address === null) return
    const host = address.family === 'IPv6' ? `[${address.address}]` : address.address
    console.log(`http://${host}:${address.port} (sessions: ${name})`)
    console.log(secure ? CLIENTS : 'COOKIE_SECURE=off: for trials on this machine')
  })
  try {
    await stopped
  } finally {
    await sessions.close()
    await close()
  }
}

try {
  await main()
} catch (error) {
  const { code, syscall, message } = /** @type {NodeJS.ErrnoException} */ (error)
  if (code === 'EADDRINUSE') console.error(`Port ${PORT} is taken: choose another one, for example PORT=3001`)
  else console.error(error instanceof ConfigurationError || syscall ? message : error)
  process.exitCode = 1
}
