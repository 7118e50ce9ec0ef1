import type { APIRoute } from 'astro'

export const POST: APIRoute = async ({ locals: { visit } }) => {
  await visit.logOut()
  return Response.json('Logged out.')
}
