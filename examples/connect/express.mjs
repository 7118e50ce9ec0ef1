// @ts-check
// express-session as it is: only the store is another.
import { SessionManager } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import express from 'express'
import session from 'express-session'

const sessions = new SessionManager({
  store: new MemoryStore(), // or new RedisStore(client, { singleSlot: true }), or your database
  userIds: 'string',
  idleTimeout: '1d', // the maxAge of your cookie
  absoluteTimeout: '30d', // ends every session, also one in use
})
const store = connectStore(sessions, { userOf: data => (data.userId ? { id: data.userId } : null) })

const app = express()
app.use(
  session({
    store,
    secret: 'keyboard cat',
    resave: false,
    saveUninitialized: false,
    // As long as the session may be idle; sent over HTTPS alone, and not with forms of other sites.
    cookie: { maxAge: sessions.options.idleTimeout, secure: 'auto', sameSite: 'lax' },
  }),
)
app.post('/login', (request, response, next) => {
  request.session.regenerate(error => {
    if (error) return next(error)
    Object.assign(request.session, { userId: 'u_42' }) // whoever it is by your check
    // Saved before the answer: a login that was not stored is none.
    request.session.save(error => (error ? next(error) : response.json('logged in')))
  })
})
app.get('/', (request, response) => response.json(request.session))
app.post('/logout', (request, response, next) => {
  request.session.destroy(error => (error ? next(error) : response.json('logged out')))
})
app.post('/logout-everywhere', (request, response, next) => {
  const userId = Reflect.get(request.session, 'userId') // nobody logs somebody else out
  if (!userId) return response.status(401).json({ error: 'no user is logged in' })
  sessions.invalidateUser(userId).then(ended => response.json(ended), next) // Express 4 waits for no promise
})
/** @type {express.ErrorRequestHandler} */
const answerErrors = (error, request, response, _next) => {
  if (response.headersSent) return console.error(error) // express-session tells of a failed touch beside the answer
  Reflect.deleteProperty(request, 'session') // else it is saved once more, and this answer waits for that
  // Our errors and those of body parsers have `expose`; others' may name hosts and keys.
  const { expose, status, message } = error
  const code = typeof expose === 'boolean' && Number.isInteger(status) ? status : 500
  if (code >= 500) console.error(error) // the details are for the log alone
  response.status(code).json({ error: expose === true ? message : 'Please try again later.' })
}
app.use(answerErrors)
const server = app.listen(process.env.PORT ?? 3000, () => console.log('listening', server.address()))
