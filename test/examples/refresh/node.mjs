// @ts-check
// A node of a service that calls another one with its users' access tokens. STORE_URL, PROVIDER; AHEAD: its clock, in ms.
import { createServer } from 'node:http'
import { SessionManager } from 'coatcheck'
import { leases, once } from '../../../examples/once.mjs'
import { openStore } from '../../../examples/server/store.mjs'

const { store } = await openStore(process.env.STORE_URL ?? '')
const ahead = Number(process.env.AHEAD ?? 0)
const sessions = new SessionManager({
  store,
  now: () => Date.now() + ahead,
  storeTimeout: '30s',
  initial: () => ({ ...leases(), access: '', refresh: '', isStale: true }),
})

/** @type {import('../../../examples/once.mjs').Work<any>} */
const refreshing = {
  due: data => data.isStale,
  async work({ refresh }, signal) {
    const client = { client_id: 'shop', client_secret: 'secret' }
    const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refresh, ...client })
    const response = await fetch(process.env.PROVIDER ?? '', { method: 'POST', body, signal })
    if (!response.ok) throw Object.assign(new Error('no token'), { status: 502 })
    const token = /** @type {any} */ (await response.json())
    return { access: token.access_token, refresh: token.refresh_token, isStale: false }
  },
}

/** @type {Awaited<ReturnType<typeof sessions.get>>} */
let early = null

/** @type {Record<string, (secret: any, headers: any) => Promise<unknown>>} */
const endpoints = {
  '/login': async (_, { 'x-refresh': refresh }) =>
    (await sessions.create({ user: { id: 42n, name: 'ada' }, data: { refresh } })).secret,
  '/logout': secret => sessions.destroy(secret),
  // As a request that has read its session and comes to its token later.
  async '/read'(secret) {
    early = await sessions.get(secret)
  },
  async '/access'(secret, { 'x-lease': lease }) {
    const session = early?.secret === secret ? early : await sessions.get(secret)
    const live =
      session && (await once(sessions, session, 'refresh', { ...refreshing, ...(lease && { lease: Number(lease) }) }))
    if (live === null) throw Object.assign(new Error('log in'), { status: 401 })
    return live.data.access
  },
}

const server = createServer(async (request, response) => {
  const { url = '', headers } = request
  try {
    response.end(`${await endpoints[url]?.(headers.authorization, headers)}`)
  } catch (error) {
    const { status = 500, message } = /** @type {any} */ (error)
    response.writeHead(status).end(`${message}`)
  }
}).listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  console.log(`http://127.0.0.1:${port}`)
})
