// @ts-check
// express-session as it is: only the store is another.
import { SessionManager } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { MemoryStore } from 'coatcheck/stores/memory'
import express from 'express'
import session from 'express-session'

const sessions = new SessionManager({ store: new MemoryStore(), userIds: 'string' })
const store = connectStore(sessions, { userOf: data => (data.userId ? { id: data.userId } : null) })

const app = express()
app.use(session({ store, secret: 'keyboard cat', resave: false, saveUninitialized: false }))
app.post('/login', (request, response, next) => {
  request.session.regenerate(error => {
    if (error) return next(error)
    Object.assign(request.session, { userId: 'u_42' }) // whoever it is by your check
    response.json('logged in')
  })
})
app.get('/', (request, response) => response.json(request.session))
app.post('/logout', (request, response, next) => {
  request.session.destroy(error => (error ? next(error) : response.json('logged out')))
})
app.post('/logout-everywhere', async (_request, response) => response.json(await sessions.invalidateUser('u_42')))
const server = app.listen(process.env.PORT ?? 3000, () => console.log('listening', server.address()))
