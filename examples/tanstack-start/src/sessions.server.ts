import { SessionManager, type VisitOf } from 'coatcheck'
import { fetchVisits } from 'coatcheck/fetch'
import { MemoryStore } from 'coatcheck/stores/memory'
import { openUsers } from '../../server/users.mjs' // in place of your user table

export const users = await openUsers()
export const sessions = new SessionManager({
  store: new MemoryStore(),
  rememberFor: '30d',
  initial: () => ({ cart: {} as Record<string, number>, hint: '' }),
})
export const visits = fetchVisits(sessions)

declare module '@tanstack/react-start' {
  interface Register {
    server: { requestContext: { visit: VisitOf<typeof sessions> } }
  }
}
