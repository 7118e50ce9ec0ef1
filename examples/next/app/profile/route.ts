import { stringify } from 'coatcheck'
import { route } from '../../lib/route'

export const GET = route(async visit => {
  const { user } = await visit.requireUser()
  return new Response(stringify(user), { headers: { 'Content-Type': 'application/json' } })
})
