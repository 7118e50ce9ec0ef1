import { visits } from '@/lib/sessions'

export const GET = visits.route(async visit => {
  const { user } = await visit.requireUser() // or a 401
  return Response.json(user)
})
