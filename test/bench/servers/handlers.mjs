// @ts-check
import { randomBytes } from 'node:crypto'
import { coatcheck, send, userOf } from './serve.mjs'

/** A session ID made by hand. */
export const newId = () => randomBytes(33).toString('base64url').slice(0, 43)

/** @param {unknown} store */
export async function coatcheckEdge(store) {
  const { SessionManager, stringify } = await coatcheck('index.js')
  const { httpEdge } = await coatcheck('http.js')
  // On a busy machine a burst may wait longer than the usual 2 seconds; that would be an error, not a figure.
  return { visitOf: httpEdge(new SessionManager({ store, storeTimeout: '30s' })), stringify }
}

/**
 * The three lines that a service of ours consists of.
 * @param {unknown} store
 * @returns {Promise<import('./serve.mjs').Handler>}
 */
export async function coatcheckHandler(store) {
  const { visitOf, stringify } = await coatcheckEdge(store)
  return async (request, response) => {
    const visit = visitOf(request, response)
    if (request.method === 'POST') {
      await visit.logIn({ user: userOf(request.url) })
      return send(response, '"ok"')
    }
    const session = await visit.get()
    send(response, stringify(session?.user ?? null))
  }
}
