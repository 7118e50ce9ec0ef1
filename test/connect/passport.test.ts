// Passport 0.7 and express-session, both as they are on npm: only the store is ours.
import type { SessionOptions } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import express from 'express'
import expressSession from 'express-session'
import { Passport } from 'passport'
import { Strategy } from 'passport-local'
import { describe, expect, it } from 'vitest'
import { type ConnectBrowser, SECRET } from '../support/connect/apps.ts'
import { listen, makeManager } from './service.ts'

const USERS = [
  { id: '42', username: 'ada', passwordVersion: 3 },
  { id: '18446744073709551615', username: 'max' },
]
type User = (typeof USERS)[number]
const LOG_IN = new URLSearchParams({ username: 'ada', password: 'p' })

async function start({
  serialize = user => user.id,
  manager = {},
}: {
  serialize?: (user: User) => unknown
  manager?: Partial<SessionOptions>
} = {}) {
  const made = makeManager(manager)
  const passport = new Passport()
  passport.use(
    new Strategy((username, _password, done) => {
      done(null, USERS.find(user => user.username === username) ?? false)
    }),
  )
  passport.serializeUser((user, done) => done(null, serialize(user as User)))
  passport.deserializeUser((stored: unknown, done) => {
    const id = String((stored as User).id ?? stored)
    done(null, USERS.find(user => user.id === id) ?? false)
  })
  const app = express()
  app.use(express.urlencoded({ extended: false }))
  const store = connectStore(made.sessions)
  app.use(expressSession({ store, secret: SECRET, resave: false, saveUninitialized: false }))
  app.use(passport.session())
  app.get('/', (request, response) => {
    const { cart } = request.session as any
    response.json({ user: (request.user as User)?.username ?? null, id: request.sessionID, cart })
  })
  app.post('/cart', (request, response) => {
    ;(request.session as any).cart = ['tea']
    response.end()
  })
  app.post('/login', passport.authenticate('local'), (_request, response) => {
    response.end()
  })
  const keeping = { keepSessionInfo: true } as object
  app.post('/login-keep', passport.authenticate('local', keeping), (_request, response) => void response.end())
  app.post('/logout-keep', (request, response, next) => {
    request.logout({ keepSessionInfo: true }, error => (error ? next(error) : response.end()))
  })
  app.use(((error, _request, response, _next) => {
    response.status(error.status ?? 500).json(error.message)
  }) as express.ErrorRequestHandler)
  const listening = await listen(app)
  const seenBy = async (one: ConnectBrowser) => (await one.go('/')).body
  const post = (one: ConnectBrowser, path: string, body = new URLSearchParams()) =>
    one.go(path, undefined, { method: 'POST', body })
  return { ...made, ...listening, store, seenBy, post }
}

describe('Passport', () => {
  it('logs in under a new ID: the session that the browser had before is dead', async () => {
    const { browser, sessions, store, seenBy, post } = await start()
    const one = browser()
    await post(one, '/cart')
    const copy = one.copy()
    expect((await post(one, '/login', LOG_IN)).status).toBe(200)
    const { user, cart, id } = await seenBy(one)
    expect({ user, cart }).toEqual({ user: 'ada', cart: undefined })
    expect(await seenBy(copy)).toMatchObject({ user: null })
    const session = await sessions.get(store.idOf(id))
    expect(session).toMatchObject({ user: { id: 42n, name: 'ada' }, data: { passport: { user: '42' } } })
    expect(await sessions.list(42n)).toMatchObject([{ key: session!.key }])
  })

  it('keeps what it is told to keep, at a login and at a logout', async () => {
    const { browser, sessions, seenBy, post } = await start()
    const one = browser()
    await post(one, '/cart')
    await post(one, '/login-keep', LOG_IN)
    expect(await seenBy(one)).toMatchObject({ user: 'ada', cart: ['tea'] })
    await post(one, '/logout-keep')
    expect(await seenBy(one)).toMatchObject({ user: null, cart: ['tea'] })
    expect(await sessions.list(42n)).toEqual([])
  })
})

describe('the password version of Passport’s user', () => {
  it.each([
    ['an ID', ({ id }: User) => id],
    ['an object', ({ id, username, passwordVersion }: User) => ({ id, username, passwordVersion })],
  ])('is known if serializeUser gives %s', async (_, serialize) => {
    const { browser, sessions, seenBy, post } = await start({ serialize, manager: { getPasswordVersion: () => 3 } })
    const one = browser()
    expect((await post(one, '/login', LOG_IN)).status).toBe(200)
    expect(await seenBy(one)).toMatchObject({ user: 'ada' })
    const [session] = await sessions.list(42n)
    expect(session!.user).toEqual({ id: 42n, name: 'ada' })
    expect(session!.user!.passwordVersion).toBe(3)
    await sessions.invalidateUser(42n, { minPasswordVersion: 3 })
    expect((await post(one, '/login', LOG_IN)).status).toBe(200)
    await sessions.invalidateUser(42n, { minPasswordVersion: 4 })
    expect((await post(one, '/login', LOG_IN)).status).toBe(401)
    expect(await seenBy(one)).toMatchObject({ user: null })
  })
})
