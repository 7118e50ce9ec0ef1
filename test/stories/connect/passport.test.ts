// Passport 0.7 and express-session, both as they are on npm: only the store is ours.
import { connectStore } from 'coatcheck/connect'
import express from 'express'
import expressSession from 'express-session'
import { Passport } from 'passport'
import { Strategy } from 'passport-local'
import { describe, expect, it } from 'vitest'
import { listen, makeManager } from '../express-session/service.ts'
import { SECRET } from './service.ts'

const ada = { id: '42', username: 'ada', passwordVersion: 1 }

async function start(serialize: (user: typeof ada) => unknown = user => user.id) {
  const made = makeManager()
  const passport = new Passport()
  passport.use(new Strategy((username, _password, done) => done(null, username === 'ada' && ada)))
  passport.serializeUser((user, done) => done(null, serialize(user as typeof ada)))
  passport.deserializeUser((_stored, done) => done(null, ada))
  const app = express()
  app.use(express.urlencoded({ extended: false }))
  const store = connectStore(made.sessions)
  app.use(expressSession({ store, secret: SECRET, resave: false, saveUninitialized: false }))
  app.use(passport.session())
  app.get('/', (request, response) => {
    response.json({ user: (request.user as typeof ada)?.username ?? null, id: request.sessionID })
  })
  app.post('/cart', (request, response) => {
    ;(request.session as any).cart = ['tea']
    response.end()
  })
  app.post(
    '/login',
    passport.authenticate('local', { keepSessionInfo: true } as object),
    (_request, response) => void response.end(),
  )
  app.post('/logout', (request, response, next) => request.logout(error => (error ? next(error) : response.end())))
  app.use(((error, _request, response, _next) => {
    response.status(error.status ?? 500).json(error.message)
  }) as express.ErrorRequestHandler)
  return { ...made, store, ...(await listen(app)) }
}

const LOG_IN = 'username=ada&password=p'

describe('Passport', () => {
  it('logs in under a new ID, and keeps what it is told to keep', async () => {
    const { browser, sessions, store } = await start()
    const one = browser()
    await one.post('/cart')
    const copy = browser()
    for (const [name, value] of one.cookies) copy.cookies.set(name, value)
    expect((await one.post('/login', LOG_IN)).status).toBe(200)
    const { user, id } = JSON.parse((await one.go('/')).body)
    expect(user).toBe('ada')
    expect(JSON.parse((await copy.go('/')).body).user).toBe(null)
    expect(await sessions.get(store.idOf(id))).toMatchObject({
      user: { id: 42n },
      data: { cart: ['tea'], passport: { user: '42' } },
    })
    expect(await sessions.list(42n)).toHaveLength(1)
  })

  it('logs out for good', async () => {
    const { browser, sessions } = await start()
    const one = browser()
    await one.post('/login', LOG_IN)
    const copy = browser()
    for (const [name, value] of one.cookies) copy.cookies.set(name, value)
    expect((await one.post('/logout')).status).toBe(200)
    for (const each of [one, copy]) expect(JSON.parse((await each.go('/')).body).user).toBe(null)
    expect(await sessions.list(42n)).toEqual([])
  })

  it('has its users logged out everywhere', async () => {
    const { browser, sessions } = await start()
    const both = [browser(), browser()]
    for (const one of both) await one.post('/login', LOG_IN)
    expect(await sessions.invalidateUser(42n)).toBe(2)
    for (const one of both) expect(JSON.parse((await one.go('/')).body).user).toBe(null)
  })

  it('may serialize an object with an ID and the password version', async () => {
    const { browser, sessions } = await start(({ id, passwordVersion, username }) => ({
      id,
      passwordVersion,
      username,
    }))
    const one = browser()
    await one.post('/login', LOG_IN)
    expect(await sessions.list(42n)).toMatchObject([{ user: { id: 42n, name: 'ada' } }])
    await sessions.invalidateUser(42n, { minPasswordVersion: 2 })
    expect((await one.post('/login', LOG_IN)).status).toBe(401)
    expect(JSON.parse((await one.go('/')).body).user).toBe(null)
  })

  it('that serializes something without an ID is told to say who that is', async () => {
    const { browser, sessions } = await start(() => ({ sub: 'somebody' }))
    const one = browser()
    expect(await one.post('/login', LOG_IN)).toMatchObject({
      status: 500,
      body: expect.stringContaining('userOf: data =>'),
    })
    expect(await sessions.count()).toBe(0)
  })
})
