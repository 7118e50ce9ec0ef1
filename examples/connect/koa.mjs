// @ts-check
import { SessionManager } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import Koa from 'koa'
import session from 'koa-session'

const sessions = new SessionManager({ store: new MemoryStore(), userIds: 'string' })
const store = connectStore(sessions, { userOf: data => (data.userId ? { id: data.userId } : null) })

const app = new Koa()
app.keys = ['keyboard cat']
app.use(session({ store, maxAge: 30 * 60 * 1000 }, app))
app.use(async context => {
  if (context.path === '/login') {
    context.session.userId = 'u_42'
    await context.session.regenerate()
  } else if (context.path === '/logout') context.session = null
  else if (context.path === '/logout-everywhere') await sessions.invalidateUser('u_42')
  context.body = context.session ?? {}
})
const server = app.listen(process.env.PORT ?? 3000, () => console.log('listening', server.address()))
