import { error, json } from '@sveltejs/kit'
import { readJson } from '$lib/server/json'
import type { RequestHandler } from './$types'

export const GET: RequestHandler = async ({ locals: { visit } }) => {
  const session = await visit.get()
  const hint = await visit.take('hint') // shown once
  return json({ cart: session?.data.cart ?? {}, hint: hint ?? '' })
}

export const POST: RequestHandler = async ({ request, locals: { visit } }) => {
  const { article } = await readJson(request)
  if (article !== 'coat' && article !== 'hat') error(400, 'unknown_article')
  const session = await visit.update(data => {
    data.cart[article] = (data.cart[article] ?? 0) + 1
  })
  return json(session?.data.cart ?? {})
}
