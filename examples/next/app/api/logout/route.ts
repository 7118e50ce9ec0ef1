import { visits } from '@/lib/sessions'

export const POST = visits.route(async visit => {
  await visit.logOut()
  return Response.json('Logged out.')
})
