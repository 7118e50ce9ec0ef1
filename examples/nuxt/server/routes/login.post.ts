export default withVisit(async (visit, event) => {
  const { username, password, remember } = await fields(event)
  const user = await users.authenticate(text(username), text(password))
  if (!user) throw createError({ statusCode: 401, message: 'wrong_credentials' })
  const session = await visit.logIn({
    user,
    remember: remember === true,
    data: before => ({ cart: before.cart }),
  })
  return session.user
})
