// @ts-check
import cookie from '@fastify/cookie'
import session from '@fastify/session'
import { SessionManager } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import fastify from 'fastify'

const sessions = new SessionManager({ store: new MemoryStore(), userIds: 'string' })
const store = connectStore(sessions, { userOf: data => (data.userId ? { id: data.userId } : null) })

const app = fastify()
app.register(cookie)
app.register(session, { store, secret: 'a secret of at least 32 characters', cookie: { secure: false } })
app.post('/login', async request => {
  await request.session.regenerate()
  Object.assign(request.session, { userId: 'u_42' })
  return 'logged in'
})
app.get('/', async request => request.session)
app.post('/logout', request => request.session.destroy().then(() => 'logged out'))
app.post('/logout-everywhere', async () => String(await sessions.invalidateUser('u_42')))
console.log(await app.listen({ port: Number(process.env.PORT ?? 3000) }))
