import { createFileRoute } from '@tanstack/react-router'

export const Route = createFileRoute('/account')({
  server: {
    handlers: {
      async GET({ context: { visit } }) {
        await visit.requireUser()
        const csrf = await visit.csrfToken()
        const form = `<form method="post"><input type="hidden" name="csrf" value="${csrf}"><button>Save</button></form>`
        return new Response(form, { headers: { 'Content-Type': 'text/html' } })
      },
      async POST({ request, context: { visit } }) {
        await visit.requireUser({ freshWithin: '15m' })
        await visit.checkCsrf((await request.formData()).get('csrf'))
        await visit.update({ hint: 'Saved.' })
        return new Response(null, { status: 303, headers: { Location: '/cart' } })
      },
    },
  },
})
