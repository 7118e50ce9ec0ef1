// @ts-check
// Passport 0.7 and express-session as they are: only the store is another.
import { timingSafeEqual } from 'node:crypto'
import { SessionManager } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import express from 'express'
import session from 'express-session'
import passport from 'passport'
import { Strategy } from 'passport-local'

/** @type {any} */
const ada = { id: 'u_42', username: 'ada', passwordVersion: 3 }
passport.use(new Strategy((username, password, done) => done(null, username === 'ada' && password === 'secret' && ada)))
passport.serializeUser((/** @type {any} */ user, done) => done(null, user.id))
passport.deserializeUser((id, done) => done(null, id === ada.id && ada))

const sessions = new SessionManager({
  store: new MemoryStore(),
  userIds: 'string',
  idleTimeout: '1d',
  absoluteTimeout: '30d',
  getPasswordVersion: () => 3,
})
const store = connectStore(sessions)

const app = express()
app.use(express.urlencoded({ extended: false }))
app.use(
  session({
    store,
    secret: 'keyboard cat',
    resave: false,
    saveUninitialized: false,
    cookie: { maxAge: sessions.options.idleTimeout, secure: 'auto', sameSite: 'lax' },
  }),
)
app.use((_request, response, next) => {
  response.set({ 'Cache-Control': 'no-store', Vary: 'Cookie' }) // one user's answers are not another's
  next()
})
app.use(passport.session())
app.use((request, response, next) => {
  const found = sessions.get(store.idOf(request.sessionID), { touch: false })
  found.then(session => {
    response.locals.found = session
    next()
  }, next) // Express 4 waits for no promise
})

// Under a new ID: Passport calls regenerate.
app.post('/login', passport.authenticate('local'), (_request, response) => response.json('logged in'))
app.get('/', (request, response) => {
  const { found } = response.locals
  console.log('session', found?.key) // the key may be logged; request.sessionID is the secret
  response.json({ user: request.user ?? null, csrf: found?.csrfToken ?? null })
})
app.post('/transfer', (request, response) => {
  const [token, given] = [response.locals.found?.csrfToken, request.body?.csrf]
  const isText = request.isAuthenticated() && typeof token === 'string' && typeof given === 'string'
  const [ours, theirs] = [Buffer.from(`${token}`), Buffer.from(`${given}`)]
  const isOurs = isText && ours.length === theirs.length && timingSafeEqual(ours, theirs)
  response.status(isOurs ? 200 : 403).json(isOurs ? 'transferred' : 'load the form again')
})
app.post('/logout', (request, response, next) => {
  request.logout(error => (error ? next(error) : response.json('logged out')))
})
app.post('/logout-everywhere', (request, response, next) => {
  const user = /** @type {any} */ (request.user) // nobody logs somebody else out
  if (!user) return response.status(401).json({ error: 'no user is logged in' })
  sessions.invalidateUser(user.id).then(ended => response.json(ended), next)
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
