import { error } from '@sveltejs/kit'
import { stringify } from 'coatcheck'
import { readJson, text } from '$lib/server/json'
import { users } from '$lib/server/sessions'
import type { RequestHandler } from './$types'

export const POST: RequestHandler = async ({ request, locals: { visit } }) => {
  const { username, password, remember } = await readJson(request)
  const user = await users.authenticate(text(username), text(password))
  if (!user) error(401, 'wrong_credentials')
  const session = await visit.logIn({
    user,
    remember: remember === true,
    data: before => ({ cart: before.cart }),
  })
  return new Response(stringify(session.user), { headers: { 'Content-Type': 'application/json' } })
}
