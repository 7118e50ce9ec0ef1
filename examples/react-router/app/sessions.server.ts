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

/** A loader or an action with the visit of its request. React Router answers 500 to errors, but what is a Response stays. */
export const withVisit =
  <T>(handler: (visit: Visit, request: Request) => Promise<T>) =>
  ({ request, context }: LoaderFunctionArgs) =>
    handler(context.get(visitContext), request).catch((error): never => {
      if (!(error instanceof SessionError)) throw error
      if (error.status >= 500) console.error(error) // the details are for the log alone
      throw error.getResponse()
    })
