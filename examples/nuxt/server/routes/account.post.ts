export default withVisit(async (visit, event) => {
  await visit.requireUser({ freshWithin: '15m' })
  await visit.checkCsrf((await fields(event)).csrf)
  await visit.update({ hint: 'Saved.' })
  return sendRedirect(event, '/cart', 303)
})
