export default defineEventHandler(event => {
  event.context.visit = visits.of(event.node.req, event.node.res)
})
