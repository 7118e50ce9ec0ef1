import { withVisit } from '../sessions.server'

export const action = withVisit(async visit => {
  await visit.logOut()
  return Response.json('Logged out.')
})
