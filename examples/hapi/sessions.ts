import type { Plugin } from '@hapi/hapi'
import { SessionError, SessionManager, stringify, type VisitOf } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'

const sessions = new SessionManager({
  store: new MemoryStore(),
  rememberFor: '30d',
  initial: () => ({ cart: {} as Record<string, number>, hint: '' }),
})
const ofNode = nodeVisits(sessions)

declare module '@hapi/hapi' {
  interface Request {
    visit: VisitOf<typeof sessions>
  }
}

/** `request.visit` in every handler, typed, and our errors with their status. */
export const visits: Plugin<undefined> = {
  name: 'visits',
  register(server) {
    server.decorate('request', 'visit', ({ raw }) => ofNode.of(raw.req, raw.res), { apply: true })
    server.ext('onRequest', ({ visit }, h) => {
      visit.checkOrigin() // what a page of another origin sends gets no further
      return h.continue
    })
    // An answer is changed in place, so that it keeps its headers, cookies and status.
    server.ext('onPreResponse', ({ response }, h) => {
      if (!('isBoom' in response)) {
        // User IDs are bigint, which hapi cannot write.
        if (response.variety === 'plain' && typeof response.source === 'object' && response.source !== null)
          Object.assign(response, { source: stringify(response.source) })
        return h.continue
      }
      // What is neither ours nor made for a client has 500 by now, and a message for the log alone.
      const { output, message } = response
      if (response instanceof SessionError) output.statusCode = response.status
      const text = output.statusCode < 500 ? message : 'internal_error'
      if (output.statusCode >= 500) console.error(response)
      Object.assign(output, { payload: { error: response instanceof SessionError ? response.code : text } })
      return h.continue
    })
    server.ext('onPostStop', () => sessions.close())
  },
}
