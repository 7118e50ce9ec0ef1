// @ts-check
// The same five requests in all servers: POST /login?user=1, GET /profile, POST /write?value=2, POST /logout and
// POST /logout-everywhere. Here: by hand, and with coatcheck.
import { randomBytes } from 'node:crypto'
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

/** @param {unknown} store */
export async function coatcheckVisits(store) {
  const { SessionManager, stringify } = await coatcheck('index.js')
  const { nodeVisits } = await coatcheck('node.js')
  // On a busy machine a burst may wait longer than the usual 2 seconds; that would be an error, not a figure.
  const sessions = new SessionManager({ store, storeTimeout: '30s' })
  return { sessions, visits: nodeVisits(sessions), stringify }
}

/** The few lines that a service of ours consists of. @param {unknown} store @returns {Promise<import('./serve.mjs').Handler>} */
export async function coatcheckHandler(store) {
  const { sessions, visits, stringify } = await coatcheckVisits(store)
  return async (request, response) => {
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
