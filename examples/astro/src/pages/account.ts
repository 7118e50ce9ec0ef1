import type { APIRoute } from 'astro'

export const GET: APIRoute = async ({ locals: { visit } }) => {
  await visit.requireUser()
  const csrf = await visit.csrfToken()
  const form = `<form method="post"><input type="hidden" name="csrf" value="${csrf}"><button>Close</button></form>`
  return new Response(form, { headers: { 'Content-Type': 'text/html' } })
}

export const POST: APIRoute = async ({ request, redirect, locals: { visit } }) => {
  await visit.requireUser({ freshWithin: '15m' })
  await visit.checkCsrf((await request.formData()).get('csrf'))
  await visit.update({ hint: 'Saved.' })
  return redirect('/cart', 303)
}
