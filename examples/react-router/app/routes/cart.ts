import { readJson, refuse } from '../json.server'
import { withVisit } from '../sessions.server'

export const loader = withVisit(async visit => {
  const session = await visit.get()
  const hint = await visit.take('hint') // shown once
  return Response.json({ cart: session?.data.cart ?? {}, hint: hint ?? '' })
})

export const action = withVisit(async (visit, request) => {
  const { article } = await readJson(request)
  if (article !== 'coat' && article !== 'hat') return refuse(400, 'unknown_article')
  const session = await visit.update(data => {
    data.cart[article] = (data.cart[article] ?? 0) + 1
  })
  return Response.json(session?.data.cart ?? {})
})
