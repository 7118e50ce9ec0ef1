import { readJson, refusal } from '@/lib/body'
import { visits } from '@/lib/sessions'

export const GET = visits.route(async visit => {
  const session = await visit.get()
  const hint = await visit.take('hint') // shown once
  return Response.json({ cart: session?.data.cart ?? {}, hint: hint ?? '' })
})

export const POST = visits.route(async (visit, request) => {
  const body = await readJson(request)
  if (body instanceof Response) return body
  const { article } = body
  if (article !== 'coat' && article !== 'hat') return refusal(400, 'unknown_article')
  const session = await visit.update(data => {
    data.cart[article] = (data.cart[article] ?? 0) + 1
  })
  return Response.json(session?.data.cart ?? {})
})
