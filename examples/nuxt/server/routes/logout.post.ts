export default withVisit(async visit => {
  await visit.logOut()
  return { message: 'Logged out.' }
})
