import { createFileRoute } from '@tanstack/react-router'
import { readJson, refuse } from '../body.server'

export const Route = createFileRoute('/cart')({
  server: {
    handlers: {
      async GET({ context: { visit } }) {
        const session = await visit.get()
        const hint = await visit.take('hint') // shown once
        return Response.json({ cart: session?.data.cart ?? {}, hint: hint ?? '' })
      },
      async POST({ request, context: { visit } }) {
        const { article } = await readJson(request)
        if (article !== 'coat' && article !== 'hat') return refuse(400, 'unknown_article')
        const session = await visit.update(data => {
          data.cart[article] = (data.cart[article] ?? 0) + 1
        })
        return Response.json(session?.data.cart ?? {})
      },
    },
  },
})
