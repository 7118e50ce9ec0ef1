// @ts-check
// The same five requests in all servers: POST /login?user=1, GET /profile, POST /write?value=2, POST /logout and
// POST /logout-everywhere. Here: by hand, and with coatcheck.
import { hash, randomBytes } from 'node:crypto'
import { coatcheck, idOf, pathOf, send, userOf } from './serve.mjs'

/** A session ID made by hand. */
export const newId = () => randomBytes(33).toString('base64url').slice(0, 43)

/** What a request that writes puts into the session. @param {string | undefined} url */
export const valueIn = url => Number(/value=(\d+)/.exec(url ?? '')?.[1])

/**
 * What somebody writes who needs no more than this: one read with the client for a request, no touch, no hash, no race
 * thought of.
 * @typedef {object} ByHand
 * @property {(id: string) => unknown} get the user
 * @property {(id: string, user: { id: number, name: string }) => unknown} create
 * @property {(id: string, value: number) => unknown} write
 * @property {(id: string) => unknown} end
 * @property {(id: string) => unknown} invalidateAll all sessions of the user of this one
 */

/**
 * @param {ByHand} service
 * @returns {import('./serve.mjs').Handler}
 */
export const byHand = service => async (request, response) => {
  const id = idOf(request)
  if (request.method === 'GET')
    return send(response, JSON.stringify((id === undefined ? null : await service.get(id)) ?? null))
  const path = pathOf(request.url)
  if (path === '/login') {
    const created = newId()
    await service.create(created, userOf(request.url))
    response.setHeader('Set-Cookie', `session_id=${created}; HttpOnly`)
  } else if (id !== undefined) {
    if (path === '/write') await service.write(id, valueIn(request.url))
    else {
      if (path === '/logout') await service.end(id)
      else await service.invalidateAll(id)
      response.setHeader('Set-Cookie', 'session_id=; Max-Age=0; HttpOnly')
    }
  }
  send(response, '"ok"')
}

/** What coatcheck sets, so that no cache keeps what one visitor is answered. */
export const HEADERS = /** @type {const} */ ([
  ['Vary', 'Cookie'],
  ['Cache-Control', 'no-store'],
])

/** @param {import('./serve.mjs').Handler} handler @returns {import('./serve.mjs').Handler} */
export const withHeaders = handler => (request, response) => {
  for (const [name, value] of HEADERS) response.setHeader(name, value)
  return handler(request, response)
}

const sha256 = (/** @type {string} */ id) => hash('sha256', id, 'base64url')
/** The same, which knows the SHA-256 of each ID in place of the ID. @param {ByHand} service @returns {ByHand} */
export const hashed = ({ get, create, write, end, invalidateAll }) => ({
  get: id => get(sha256(id)),
  create: (id, user) => create(sha256(id), user),
  write: (id, value) => write(sha256(id), value),
  end: id => end(sha256(id)),
  invalidateAll: id => invalidateAll(sha256(id)),
})

/** @param {unknown} store */
export async function coatcheckVisits(store) {
  const { SessionManager, stringify } = await coatcheck('index.js')
  const { nodeVisits } = await coatcheck('node.js')
  // On a busy machine a burst may wait longer than the usual 2 seconds; that would be an error, not a figure.
  const sessions = new SessionManager({ store, storeTimeout: '30s' })
  return { sessions, visits: nodeVisits(sessions), stringify }
}

/**
 * The few lines that a service of ours consists of. Without a visit, a GET asks the manager, and sets the headers by hand.
 * @param {unknown} store
 * @param {{ withoutVisit?: boolean }} [options]
 * @returns {Promise<import('./serve.mjs').Handler>}
 */
export async function coatcheckHandler(store, { withoutVisit = false } = {}) {
  const { sessions, visits, stringify } = await coatcheckVisits(store)
  return async (request, response) => {
    if (withoutVisit && request.method === 'GET') {
      for (const [name, value] of HEADERS) response.setHeader(name, value)
      const session = await sessions.get(idOf(request))
      return send(response, stringify(session?.user ?? null))
    }
    const visit = visits.of(request, response)
    if (request.method === 'GET') {
      const session = await visit.get()
      return send(response, stringify(session?.user ?? null))
    }
    const path = pathOf(request.url)
    if (path === '/login') await visit.logIn({ user: userOf(request.url) })
    else if (path === '/write') await visit.update({ value: valueIn(request.url) })
    else if (path === '/logout') await visit.logOut()
    else {
      const { user } = await visit.requireUser()
      await sessions.invalidateUser(user.id)
      await visit.logOut()
    }
    send(response, '"ok"')
  }
}
