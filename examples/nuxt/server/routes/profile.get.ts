export default withVisit(async visit => (await visit.requireUser()).user)
