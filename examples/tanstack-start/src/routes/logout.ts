import { createFileRoute } from '@tanstack/react-router'

export const Route = createFileRoute('/logout')({
  server: {
    handlers: {
      async POST({ context: { visit } }) {
        await visit.logOut()
        return Response.json('Logged out.')
      },
    },
  },
})
