// @ts-nocheck: it stands around a block of docs/index.md, which has the names that are not declared here.
// biome-ignore-all lint/correctness/noUnusedVariables: the block uses them
async function checkPassword(/** @type {any} */ body) {
  if (body?.password !== 'lovelace')
    throw Object.assign(new Error('wrong'), { status: 401, statusCode: 401, expose: true })
  return { id: 'u_42', name: 'ada' }
}
/* the block */
const asJson = { 'content-type': 'application/json' }
const ask = (path, init) => fetch(`http://localhost:3000${path}`, init)
assert.equal((await ask('/login', { method: 'POST', body: '{"password":"byron"}', headers: asJson })).status, 401)
const login = await ask('/login', { method: 'POST', body: '{"password":"lovelace"}', headers: asJson })
assert.equal(login.status, 200)
const headers = { cookie: login.headers.getSetCookie()[0].split(';')[0] }
assert.equal(await (await ask('/profile', { headers })).text(), '{"id":"u_42","name":"ada"}')
assert.equal((await ask('/profile')).status, 401)
assert.equal((await ask('/logout', { method: 'POST', headers })).status, 200)
assert.equal((await ask('/profile', { headers })).status, 401)
