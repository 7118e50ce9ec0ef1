// @ts-check
import cookie from '@fastify/cookie'
import session from '@fastify/session'
import { SessionManager } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import fastify from 'fastify'

const sessions = new SessionManager({
  store: new MemoryStore(), // or new RedisStore(client, { singleSlot: true }), or your database
  userIds: 'string',
  idleTimeout: '1d', // the maxAge of your cookie
  absoluteTimeout: '30d', // ends every session, also one in use
})
const store = connectStore(sessions, { userOf: data => (data.userId ? { id: data.userId } : null) })

const app = fastify()
app.register(cookie)
app.register(session, {
  store,
  secret: 'a secret of at least 32 characters',
  cookie: { maxAge: sessions.options.idleTimeout, secure: 'auto', sameSite: 'lax' },
})
app.post('/login', async request => {
  await request.session.regenerate()
  Object.assign(request.session, { userId: 'u_42' }) // whoever it is by your check
  await request.session.save() // before the answer: a login that was not stored is none
  return 'logged in'
})
app.get('/', async request => request.session)
app.post('/logout', request => request.session.destroy().then(() => 'logged out'))
app.post('/logout-everywhere', async (request, reply) => {
  const userId = Reflect.get(request.session, 'userId') // nobody logs somebody else out
  if (!userId) return reply.code(401).send({ error: 'no user is logged in' })
  return String(await sessions.invalidateUser(userId))
})
app.setErrorHandler((/** @type {any} */ error, _request, reply) => {
  // Our errors have `expose`, Fastify's own a code of theirs; others' may name hosts and keys.
  const { code, expose, statusCode, message } = error
  const isFastifys = /^FST_/.test(code) || error instanceof SyntaxError
  const status = (isFastifys || typeof expose === 'boolean') && Number.isInteger(statusCode) ? statusCode : 500
  if (status >= 500) console.error(error) // the details are for the log alone
  reply.code(status).send({ error: status < 500 ? message : 'Please try again later.' })
})
console.log(await app.listen({ port: Number(process.env.PORT ?? 3000) }))
