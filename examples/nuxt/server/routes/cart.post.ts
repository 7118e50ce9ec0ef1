export default withVisit(async (visit, event) => {
  const { article } = await fields(event)
  if (article !== 'coat' && article !== 'hat') throw createError({ statusCode: 400, message: 'unknown_article' })
  const session = await visit.update(data => {
    data.cart[article] = (data.cart[article] ?? 0) + 1
  })
  return session?.data.cart ?? {}
})
