import { stringify } from 'coatcheck'
import { visits } from '../../lib/sessions'

export const GET = visits.route(async visit => {
  const { user } = await visit.requireUser()
  return new Response(stringify(user), { headers: { 'Content-Type': 'application/json' } })
})
