// @ts-check
import { storeOver } from '../clients.mjs'
import { expressByHand, ironSessionServer, koaSessionServer, serversOn } from './frameworks.mjs'
import { byHand, newId } from './handlers.mjs'
import { idOf, send, serve } from './serve.mjs'

/** Two Maps: sessions, and who has which. */
function mapsByHand() {
  /** @type {Map<string, { user: { id: number, name: string }, value?: number }>} */
  const sessions = new Map()
  /** @type {Map<number, Set<string>>} */
  const idsOf = new Map()
  /** @satisfies {import('./handlers.mjs').ByHand} */
  const service = {
    get: (/** @type {string} */ id) => sessions.get(id)?.user,
    create(/** @type {string} */ id, /** @type {{ id: number, name: string }} */ user) {
      sessions.set(id, { user })
      idsOf.set(user.id, (idsOf.get(user.id) ?? new Set()).add(id))
    },
    write(/** @type {string} */ id, /** @type {number} */ value) {
      const session = sessions.get(id)
      if (session) session.value = value
    },
    end(/** @type {string} */ id) {
      const session = sessions.get(id)
      if (!session) return
      sessions.delete(id)
      idsOf.get(session.user.id)?.delete(id)
    },
    invalidateAll(/** @type {string} */ id) {
      const session = sessions.get(id)
      if (!session) return
      for (const each of idsOf.get(session.user.id) ?? []) sessions.delete(each)
      idsOf.delete(session.user.id)
    },
  }
  return service
}

/** @returns {import('./serve.mjs').Handler} */
function floor() {
  const service = mapsByHand()
  const others = byHand(service)
  return (request, response) => {
    // A Map needs no promise.
    if (request.method !== 'GET') return others(request, response)
    const id = idOf(request)
    send(response, JSON.stringify((id === undefined ? null : service.get(id)) ?? null))
  }
}

await serve({
  ...serversOn({
    byHand: floor,
    store: () => storeOver('Memory', undefined),
    peerStore: async () => undefined,
  }),
  'Express alone': () => expressByHand(mapsByHand(), newId),
  'koa-session'() {
    const stored = new Map()
    return koaSessionServer({
      get: async key => stored.get(key),
      set: async (key, value) => void stored.set(key, value),
      destroy: async key => void stored.delete(key),
    })
  },
  'iron-session': ironSessionServer,
})
