import { readJson, refusal } from '@/lib/body'
import { visits } from '@/lib/sessions'
import { text } from '@/lib/text'
import { users } from '@/lib/users'

export const POST = visits.route(async (visit, request) => {
  const body = await readJson(request)
  if (body instanceof Response) return body
  const user = await users.authenticate(text(body.username), text(body.password))
  if (!user) return refusal(401, 'wrong_credentials')
  const session = await visit.logIn({
    user,
    remember: body.remember === true,
    data: before => ({ cart: before.cart }),
  })
  return Response.json(session.user)
})
