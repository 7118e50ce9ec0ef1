import { stringify } from 'coatcheck'
import { readJson, refuse, text } from '../json.server'
import { users, withVisit } from '../sessions.server'

export const action = withVisit(async (visit, request) => {
  const { username, password, remember } = await readJson(request)
  const user = (await users.authenticate(text(username), text(password))) ?? refuse(401, 'wrong_credentials')
  const session = await visit.logIn({
    user,
    remember: remember === true,
    data: before => ({ cart: before.cart }),
  })
  return new Response(stringify(session.user), { headers: { 'Content-Type': 'application/json' } })
})
