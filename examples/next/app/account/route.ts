import { route } from '../../lib/route'

export const GET = route(async visit => {
  await visit.requireUser()
  const csrf = await visit.csrfToken()
  const form = `<form method="post"><input type="hidden" name="csrf" value="${csrf}"><button>Close</button></form>`
  return new Response(form, { headers: { 'Content-Type': 'text/html' } })
})

export const POST = route(async (visit, request) => {
  await visit.requireUser({ freshWithin: '15m' })
  await visit.checkCsrf((await request.formData()).get('csrf'))
  await visit.update({ hint: 'Saved.' })
  return new Response(null, { status: 303, headers: { Location: '/cart' } })
})
