// @ts-nocheck: it stands around a block of the README, which has the names that are not declared here.
// biome-ignore-all lint/correctness/noUnusedVariables: the block uses them
import { text } from 'node:stream/consumers'

const visits = nodeVisits(new SessionManager({ store, userIds: 'string' }))
async function checkPassword(request) {
  if ((await text(request)) !== 'lovelace') throw Object.assign(new Error('wrong'), { status: 401, expose: true })
  return { id: 'u_42', name: 'ada' }
}
/* the block */
const ask = (path, init) => fetch(`http://localhost:3000${path}`, init)
assert.equal((await ask('/login', { method: 'POST', body: 'byron' })).status, 401)
const login = await ask('/login', { method: 'POST', body: 'lovelace' })
assert.equal(await login.text(), '{"id":"u_42","name":"ada"}')
const headers = { cookie: login.headers.getSetCookie()[0].split(';')[0] }
assert.equal(await (await ask('/profile', { headers })).text(), '{"id":"u_42","name":"ada"}')
assert.equal(await (await ask('/logout', { method: 'POST', headers })).text(), 'null')
assert.equal(await (await ask('/profile', { headers })).text(), 'null')
