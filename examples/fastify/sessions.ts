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
    request.visit.checkOrigin() // what a page of another origin sends gets no further
  })
  app.setReplySerializer(stringify) // user IDs are bigint
  app.setErrorHandler((error: { code?: string; expose?: boolean; statusCode?: number }, _request, reply) => {
    // Our errors have `expose`, Fastify's own a code of theirs; others' may name hosts and keys.
    const { code = '', expose, statusCode: status = 500 } = error
    const isMeant =
      typeof expose === 'boolean' || /^FST_/.test(code) || (error instanceof SyntaxError && status === 400)
    if (!isMeant || status >= 500) console.error(error) // the details are for the log alone
    return reply.code(isMeant ? status : 500).send({ error: isMeant ? code || 'malformed_body' : 'internal_error' })
  })
  app.addHook('onClose', () => sessions.close())
})
