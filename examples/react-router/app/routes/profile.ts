import { stringify } from 'coatcheck'
import { withVisit } from '../sessions.server'

export const loader = withVisit(async visit => {
  const { user } = await visit.requireUser()
  return new Response(stringify(user), { headers: { 'Content-Type': 'application/json' } })
})
