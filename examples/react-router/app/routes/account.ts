import { redirect } from 'react-router'
import { withVisit } from '../sessions.server'

export const loader = withVisit(async visit => {
  await visit.requireUser()
  const csrf = await visit.csrfToken()
  const form = `<form method="post"><input type="hidden" name="csrf" value="${csrf}"><button>Close</button></form>`
  return new Response(form, { headers: { 'Content-Type': 'text/html' } })
})

export const action = withVisit(async (visit, request) => {
  await visit.requireUser({ freshWithin: '15m' })
  await visit.checkCsrf((await request.formData()).get('csrf'))
  await visit.update({ hint: 'Saved.' })
  return redirect('/cart', 303)
})
