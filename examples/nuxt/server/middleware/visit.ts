/** The visit of each request, and none for an answer that a cache keeps for everybody: it would show one user's page to the next. */
export default defineEventHandler(event => {
  const visit = visits.of(event.node.req, event.node.res)
  Object.defineProperty(event.context, 'visit', {
    get() {
      if (event.context.cache)
        throw new Error('no visit in a cached handler, nor under routeRules with swr, isr or cache')
      return visit
    },
  })
})
