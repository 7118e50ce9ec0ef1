import { SessionError, SessionManager, stringify, type VisitOf } from 'coatcheck'
import { nodeVisits } from 'coatcheck/node'
import { MemoryStore } from 'coatcheck/stores/memory'
import type { H3Event } from 'h3'

const sessions = new SessionManager({
  store: new MemoryStore(),
  rememberFor: '30d',
  initial: () => ({ cart: {} as Record<string, number>, hint: '' }),
})
export const visits = nodeVisits(sessions)

type Visit = VisitOf<typeof sessions>
declare module 'h3' {
  interface H3EventContext {
    visit: Visit
  }
}

/** A handler with the visit of its request. Nuxt answers errors with HTML or text; here they are JSON, ours with their status. */
export const withVisit = (handler: (visit: Visit, event: H3Event) => Promise<unknown>) =>
  defineEventHandler(async event => {
    try {
      event.context.visit.checkOrigin() // what a page of another origin sends gets no further
      const answer = await handler(event.context.visit, event)
      return typeof answer === 'object' ? json(event, answer) : answer
    } catch (error) {
      // Ours, and those of createError; others' may name hosts and keys.
      const isOurs = error instanceof SessionError
      const status = isOurs || isError(error) ? error.statusCode : 500
      if (status >= 500) console.error(error) // the details are for the log alone
      setResponseStatus(event, status)
      return json(event, { error: isOurs ? error.code : status < 500 ? (error as Error).message : 'internal_error' })
    }
  })

/** User IDs are bigint, which h3 cannot write. */
function json(event: H3Event, value: unknown) {
  setResponseHeader(event, 'Content-Type', 'application/json')
  return stringify(value)
}
