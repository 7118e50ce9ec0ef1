import { route } from '../../lib/route'

export const POST = route(async visit => {
  await visit.logOut()
  return Response.json('Logged out.')
})
