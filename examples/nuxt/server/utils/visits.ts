import { type SessionError, SessionManager, stringify, type VisitOf } from 'coatcheck'
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
      const answer = await handler(event.context.visit, event)
      return typeof answer === 'object' ? json(event, answer) : answer
    } catch (error) {
      const {
        status,
        statusCode = status ?? 500,
        code,
        message,
      } = error as Partial<SessionError & { statusCode: number }>
      if (statusCode >= 500) console.error(error) // the details are for the log alone
      setResponseStatus(event, statusCode)
      return json(event, { error: statusCode === 500 ? 'internal_error' : (code ?? message) })
    }
  })

/** User IDs are bigint, which h3 cannot write. */
function json(event: H3Event, value: unknown) {
  setResponseHeader(event, 'Content-Type', 'application/json')
  return stringify(value)
}
