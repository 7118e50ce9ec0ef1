import { redirect } from '@sveltejs/kit'
import type { RequestHandler } from './$types'

export const GET: RequestHandler = async ({ locals: { visit } }) => {
  await visit.requireUser()
  const csrf = await visit.csrfToken()
  const form = `<form method="post"><input type="hidden" name="csrf" value="${csrf}"><button>Close</button></form>`
  return new Response(form, { headers: { 'Content-Type': 'text/html' } })
}

export const POST: RequestHandler = async ({ request, locals: { visit } }) => {
  await visit.requireUser({ freshWithin: '15m' })
  await visit.checkCsrf((await request.formData()).get('csrf'))
  await visit.update({ hint: 'Saved.' })
  redirect(303, '/cart')
}
