import { SessionError, SessionManager, type VisitOf } from 'coatcheck'
import { fetchVisits } from 'coatcheck/fetch'
import { MemoryStore } from 'coatcheck/stores/memory'
import { createContext, type LoaderFunctionArgs } from 'react-router'
import { openUsers } from '../../server/users.mjs' // in place of your user table

export const users = await openUsers()
export const sessions = new SessionManager({
  store: new MemoryStore(),
  rememberFor: '30d',
  initial: () => ({ cart: {} as Record<string, number>, hint: '' }),
})
export const visits = fetchVisits(sessions)

type Visit = VisitOf<typeof sessions>
export const visitContext = createContext<Visit>()

/** A loader or an action with the visit of its request. A Response stays as it is; what else was thrown is for the log. */
export const withVisit =
  <T>(handler: (visit: Visit, request: Request) => Promise<T>) =>
  ({ request, context }: LoaderFunctionArgs) =>
    handler(context.get(visitContext), request).catch((error): never => {
      if (error instanceof Response) throw error
      const isOurs = error instanceof SessionError
      if (!isOurs || error.status >= 500) console.error(error) // the details are for the log alone
      throw isOurs ? error.getResponse() : Response.json({ error: 'internal_error' }, { status: 500 })
    })
