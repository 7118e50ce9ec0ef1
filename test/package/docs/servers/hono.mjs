// @ts-nocheck: it stands around a block of docs/servers/hono.md, which has the names that are not declared here.
/* the block */
const login = await server.fetch(new Request('https://shop.example/login', { method: 'POST' }))
const cookie = String(login.headers.getSetCookie()).split(';')[0] ?? ''
const profile = await server.fetch(new Request('https://shop.example/profile', { headers: { cookie } }))
assert.equal(await profile.text(), '{"id":"u_42","name":"ada"}')
assert.equal((await server.fetch(new Request('https://shop.example/profile'))).status, 401)
