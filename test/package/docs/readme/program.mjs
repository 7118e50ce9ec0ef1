// @ts-nocheck: it stands around a block of the README, which has the names that are not declared here.
/* the block */
const ask = (path, init) => fetch(`http://localhost:3000${path}`, init)
const logIn = body => ask('/login', { method: 'POST', body, headers: { 'content-type': 'application/json' } })
assert.equal((await logIn('{"name":"ada","password":"byron"}')).status, 401)
assert.equal((await logIn('{')).status, 400)
const login = await logIn('{"name":"ada","password":"lovelace"}')
assert.equal(await login.text(), '"Logged in."')
const headers = { cookie: login.headers.getSetCookie()[0].split(';')[0] }
assert.equal(await (await ask('/profile', { headers })).text(), '{"id":"u_42","name":"ada"}')
assert.equal((await ask('/profile')).status, 401)
assert.equal(await (await ask('/logout', { method: 'POST', headers })).text(), '"Logged out."')
assert.equal((await ask('/profile', { headers })).status, 401)
