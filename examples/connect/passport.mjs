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

const sessions = new SessionManager({ store: new MemoryStore(), userIds: 'string', getPasswordVersion: () => 3 })
const store = connectStore(sessions)
const sessionOf = (/** @type {string} */ sid) => sessions.get(store.idOf(sid), { touch: false })

const app = express()
app.use(express.urlencoded({ extended: false }))
app.use(session({ store, secret: 'keyboard cat', resave: false, saveUninitialized: false }))
app.use((_request, response, next) => {
  response.set({ 'Cache-Control': 'no-store', Vary: 'Cookie' }) // one user's answers are not another's
  next()
})
app.use(passport.session())

// Under a new ID: Passport calls regenerate.
app.post('/login', passport.authenticate('local'), (_request, response) => response.json('logged in'))
app.get('/', async (request, response) => {
  const found = await sessionOf(request.sessionID)
  console.log('session', found?.key) // the key may be logged; request.sessionID is the secret
  response.json({ user: request.user ?? null, csrf: found?.csrfToken ?? null })
})
app.post('/transfer', async (request, response) => {
  const [token, given] = [(await sessionOf(request.sessionID))?.csrfToken, request.body.csrf].map(text =>
    Buffer.from(`${text}`),
  )
  const isOurs = request.isAuthenticated() && token.length === given.length && timingSafeEqual(token, given)
  response.status(isOurs ? 200 : 403).json(isOurs ? 'transferred' : 'load the form again')
})
app.post('/logout', (request, response, next) => {
  request.logout(error => (error ? next(error) : response.json('logged out')))
})
app.post('/logout-everywhere', async (_request, response) => response.json(await sessions.invalidateUser(ada.id)))
const server = app.listen(process.env.PORT ?? 3000, () => console.log('listening', server.address()))
