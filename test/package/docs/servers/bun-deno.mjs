// @ts-nocheck: it stands around a block of docs/servers/bun-deno.md, which has the names that are not declared here.
/* the block */
const login = await handler(new Request('https://shop.example/login', { method: 'POST' }))
const cookie = String(login.headers.getSetCookie()).split(';')[0] ?? ''
const profile = await handler(new Request('https://shop.example/', { headers: { cookie } }))
assert.equal(await profile.text(), '{"id":"u_42","name":"ada"}')
assert.equal((await handler(new Request('https://shop.example/'))).status, 401)
