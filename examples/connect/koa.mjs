// @ts-check
import { SessionManager } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import Koa from 'koa'
import session from 'koa-session'

const sessions = new SessionManager({
  store: new MemoryStore(), // or new RedisStore(client, { singleSlot: true }), or your database
  userIds: 'string',
  idleTimeout: '1d', // the maxAge of your cookie
  absoluteTimeout: '30d', // ends every session, also one in use
})
const store = connectStore(sessions, { userOf: data => (data.userId ? { id: data.userId } : null) })

const app = new Koa()
app.keys = ['keyboard cat']
app.use(async (context, next) => {
  try {
    await next() // the session is saved at its end, before the answer
  } catch (error) {
    // Our errors and those of context.throw have `expose`; others' may name hosts and keys.
    const { expose, status, message } = /** @type {any} */ (error)
    context.status = typeof expose === 'boolean' && Number.isInteger(status) ? status : 500
    if (context.status >= 500) console.error(error) // the details are for the log alone
    context.body = { error: expose === true ? message : 'Please try again later.' }
  }
})
const { idleTimeout: maxAge } = sessions.options
app.use(session({ store, maxAge, sameSite: 'lax' }, app)) // and behind HTTPS, `secure: true`
app.use(async context => {
  const name = `${context.method} ${context.path}`
  if (name === 'POST /login') {
    context.session.userId = 'u_42' // whoever it is by your check
    await context.session.regenerate()
  } else if (name === 'POST /logout') context.session = null
  else if (name === 'POST /logout-everywhere') {
    if (!context.session.userId) context.throw(401, 'no user is logged in') // nobody logs somebody else out
    await sessions.invalidateUser(context.session.userId)
  }
  context.body = context.session ?? {}
})
const server = app.listen(process.env.PORT ?? 3000, () => console.log('listening', server.address()))
