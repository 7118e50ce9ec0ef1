import { visits } from '@/lib/sessions'

export const GET = visits.route(async visit => {
  await visit.requireUser()
  const csrf = await visit.csrfToken()
  const form = `<form method="post"><input type="hidden" name="csrf" value="${csrf}"><button>Close</button></form>`
  return new Response(form, { headers: { 'Content-Type': 'text/html' } })
})

export const POST = visits.route(async (visit, request) => {
  await visit.requireUser({ freshWithin: '15m' })
  await visit.checkCsrf((await request.formData()).get('csrf'))
  await visit.update({ hint: 'Saved.' })
  return new Response(null, { status: 303, headers: { Location: '/api/cart' } })
})
