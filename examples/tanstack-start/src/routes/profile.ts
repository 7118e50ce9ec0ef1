import { createFileRoute } from '@tanstack/react-router'
import { stringify } from 'coatcheck'

export const Route = createFileRoute('/profile')({
  server: {
    handlers: {
      async GET({ context: { visit } }) {
        const { user } = await visit.requireUser()
        return new Response(stringify(user), { headers: { 'Content-Type': 'application/json' } })
      },
    },
  },
})
