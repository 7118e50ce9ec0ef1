// @ts-nocheck: it stands around a block of docs/servers.md, which has the names that are not declared here.
/* the block */
const answer = await login({ method: 'POST', headers: { host: 'shop.example', 'x-forwarded-proto': 'https' } })
assert.match(
  `${answer.headers.get('set-cookie')}`,
  /^session_id=[\w-]{43}; Max-Age=1800; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
)
assert.equal(answer.headers.get('cache-control'), 'no-store')
