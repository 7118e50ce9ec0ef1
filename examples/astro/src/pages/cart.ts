import type { APIRoute } from 'astro'
import { readJson, refuse } from '../lib/body'

export const GET: APIRoute = async ({ locals: { visit } }) => {
  const session = await visit.get()
  const hint = await visit.take('hint') // shown once
  return Response.json({ cart: session?.data.cart ?? {}, hint: hint ?? '' })
}

export const POST: APIRoute = async ({ request, locals: { visit } }) => {
  const { article } = await readJson(request)
  if (article !== 'coat' && article !== 'hat') return refuse(400, 'unknown_article')
  const session = await visit.update(data => {
    data.cart[article] = (data.cart[article] ?? 0) + 1
  })
  return Response.json(session?.data.cart ?? {})
}
