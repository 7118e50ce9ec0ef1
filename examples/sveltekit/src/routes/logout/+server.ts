import { json } from '@sveltejs/kit'
import type { RequestHandler } from './$types'

export const POST: RequestHandler = async ({ locals: { visit } }) => {
  await visit.logOut()
  return json('Logged out.')
}
