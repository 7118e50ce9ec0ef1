// @ts-check
// The way over: a login at the service as it was, and the same browser at the new one.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { SessionManager } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import express from 'express'
import session from 'express-session'

const oldStore = new session.MemoryStore() // the store that your service has, such as that of connect-redis
const sessions = new SessionManager({
  store: new MemoryStore(), // your new store
  userIds: 'string',
  idleTimeout: '14d', // as long as your cookies promise
  absoluteTimeout: '90d',
})
const store = connectStore(sessions, { oldStore, userOf: data => (data.userId ? { id: data.userId } : null) })

const before = await serve(oldStore)
const after = await serve(store)
const { headers } = await fetch(`${before}/login`, { method: 'POST' })
const cookie = headers.getSetCookie()[0]?.split(';')[0] ?? ''
const ask = async (/** @type {string} */ url, method = 'GET') =>
  (await fetch(url, { method, headers: { cookie } })).json()

assert.equal(await ask(after), 'u_42') // it has moved, under the same cookie
assert.equal((await sessions.list('u_42')).length, 1)
assert.equal(await ask(before), null) // and is no longer there
await ask(`${after}/logout`, 'POST')
assert.equal(await ask(after), null)
console.log('moved, and logged out')
process.exit()

async function serve(/** @type {session.Store} */ store) {
  const app = express()
  app.use(session({ store, secret: 'keyboard cat', resave: false, saveUninitialized: false }))
  app.post('/login', (request, response) => {
    Object.assign(request.session, { userId: 'u_42' })
    response.json('logged in')
  })
  app.get('/', (request, response) => response.json(Reflect.get(request.session, 'userId') ?? null))
  app.post('/logout', (request, response, next) => {
    request.session.destroy(error => (error ? next(error) : response.json('logged out')))
  })
  const server = app.listen(0)
  await once(server, 'listening')
  return `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`
}
