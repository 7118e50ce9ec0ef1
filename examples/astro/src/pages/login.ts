import type { APIRoute } from 'astro'
import { stringify } from 'coatcheck'
import { readJson, refuse, text } from '../lib/body'
import { users } from '../lib/sessions'

export const POST: APIRoute = async ({ request, locals: { visit } }) => {
  const { username, password, remember } = await readJson(request)
  const user = await users.authenticate(text(username), text(password))
  if (!user) return refuse(401, 'wrong_credentials')
  const session = await visit.logIn({
    user,
    remember: remember === true,
    data: before => ({ cart: before.cart }),
  })
  return new Response(stringify(session.user), { headers: { 'Content-Type': 'application/json' } })
}
