import { createFileRoute } from '@tanstack/react-router'
import { stringify } from 'coatcheck'
import { readJson, refuse, text } from '../body.server'
import { users } from '../sessions.server'

export const Route = createFileRoute('/login')({
  server: {
    handlers: {
      async POST({ request, context: { visit } }) {
        const { username, password, remember } = await readJson(request)
        const user = await users.authenticate(text(username), text(password))
        if (!user) return refuse(401, 'wrong_credentials')
        const session = await visit.logIn({
          user,
          remember: remember === true,
          data: before => ({ cart: before.cart }),
        })
        return new Response(stringify(session.user), { headers: { 'Content-Type': 'application/json' } })
      },
    },
  },
})
