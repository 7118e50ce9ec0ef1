import type { APIRoute } from 'astro'
import { stringify } from 'coatcheck'

export const GET: APIRoute = async ({ locals: { visit } }) => {
  const { user } = await visit.requireUser()
  return new Response(stringify(user), { headers: { 'Content-Type': 'application/json' } })
}
