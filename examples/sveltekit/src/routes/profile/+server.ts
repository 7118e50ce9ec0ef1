import { stringify } from 'coatcheck'
import type { RequestHandler } from './$types'

export const GET: RequestHandler = async ({ locals: { visit } }) => {
  const { user } = await visit.requireUser()
  return new Response(stringify(user), { headers: { 'Content-Type': 'application/json' } })
}
