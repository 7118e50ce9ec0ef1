export default withVisit(async visit => {
  await visit.requireUser()
  const csrf = await visit.csrfToken()
  return `<form method="post"><input type="hidden" name="csrf" value="${csrf}"><button>Save</button></form>`
})
