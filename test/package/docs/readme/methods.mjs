// @ts-nocheck: it stands around a block of the README, which has the names that are not declared here.
/* the block */
assert.equal(session, null)
assert.equal(await visit.get(), null)
assert.deepEqual(await sessions.list(42n), [])
