import { SessionManager, stringify, type VisitOf } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import plugin from 'fastify-plugin'

const sessions = new SessionManager({
  store: new MemoryStore(),
  rememberFor: '30d',
  initial: () => ({ cart: {} as Record<string, number>, hint: '' }),
})
const ofNode = nodeVisits(sessions)

declare module 'fastify' {
  interface FastifyRequest {
    visit: VisitOf<typeof sessions>
  }
}

/** `request.visit` in every handler, typed. */
export const visits = plugin(async app => {
  app.decorateRequest('visit')
  app.addHook('onRequest', async (request, reply) => {
    request.visit = ofNode.of(request.raw, reply.raw)
  })
  app.setReplySerializer(stringify) // user IDs are bigint
  app.addHook('onClose', () => sessions.close())
})
