// @ts-nocheck: it stands around a block of docs/moving.md, which has the names that are not declared here.
/* the block */
const moved = await answer(new Request('https://example.com/', { headers: { cookie: 'token=a-long-random-token' } }))
if ((await moved.text()) !== 'ada') throw new Error('the old session was not imported')
