import type { Plugin } from '@hapi/hapi'
import { type SessionError, SessionManager, stringify, type VisitOf } from 'coatcheck'
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
    server.ext('onPreResponse', ({ response }, h) => {
      if (!('isBoom' in response)) {
        // User IDs are bigint, which hapi cannot write.
        if (typeof response.source === 'object' && response.variety === 'plain')
          return h.response(stringify(response.source)).type('application/json').code(response.statusCode)
        return h.continue
      }
      const { output, message } = response
      const { status = output.statusCode, code = message } = response as Partial<SessionError>
      if (status >= 500) console.error(response) // the details are for the log alone
      return h.response({ error: status === 500 ? 'internal_error' : code }).code(status)
    })
    server.ext('onPostStop', () => sessions.close())
  },
}
