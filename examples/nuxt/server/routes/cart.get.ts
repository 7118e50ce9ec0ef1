export default withVisit(async visit => {
  const session = await visit.get()
  const hint = await visit.take('hint') // shown once
  return { cart: session?.data.cart ?? {}, hint: hint ?? '' }
})
