// Passport 0.7, as it is on npm, over coatcheck: what it stores is a login, so that all that coatcheck does with users works.
import type { SessionOptions } from 'coatcheck'
import { type ExpressSessionOptions, expressSession } from 'coatcheck/express-session'
import { nodeVisits } from 'coatcheck/node'
import express from 'express'
import { Passport } from 'passport'
import { Strategy } from 'passport-local'
import { describe, expect, it } from 'vitest'
import { type AnyManager, called, controlled, listen, makeManager, type OldRequest, serve } from './service.ts'

const USERS = [
  { id: '42', username: 'ada', password: 'p', passwordVersion: 1 },
  { id: '18446744073709551615', username: 'max', password: 'p' },
]
const LOG_IN = 'username=ada&password=p'

interface Made {
  readonly passport: InstanceType<typeof Passport>
  readonly deserialized: { user: (typeof USERS)[number] | undefined | null }
}

/** A new Passport with its strategy, as its own guide sets it up. */
function makePassport(serialize: (user: (typeof USERS)[number]) => unknown = user => user.id): Made {
  const passport = new Passport()
  const deserialized: Made['deserialized'] = { user: null }
  passport.use(
    new Strategy((username, password, done) => {
      const user = USERS.find(each => each.username === username && each.password === password)
      done(null, user ?? false, { message: 'Wrong name or password.' })
    }),
  )
  passport.serializeUser((user, done) => done(null, serialize(user as (typeof USERS)[number])))
  passport.deserializeUser((stored: unknown, done) => {
    const id = typeof stored === 'object' ? (stored as { id: string }).id : String(stored)
    done(null, deserialized.user === undefined ? false : (USERS.find(each => each.id === id) ?? false))
  })
  return { passport, deserialized }
}

async function serveExpress(
  options: {
    manager?: Partial<SessionOptions>
    bridge?: ExpressSessionOptions<'bigint'>
    serialize?: Parameters<typeof makePassport>[0]
    more?: (app: express.Express, sessions: AnyManager) => void
  } = {},
) {
  const made = makeManager(options.manager)
  const { passport, deserialized } = makePassport(options.serialize)
  const app = express()
  app.use(express.urlencoded({ extended: false }))
  app.use(expressSession(made.sessions, options.bridge))
  app.use(passport.session())
  app.get('/', (request, response) => {
    const old = request as unknown as OldRequest
    response.json({ user: old.user?.username ?? null, id: old.sessionID ?? null, cart: old.session?.cart ?? null })
  })
  app.post('/cart', (request, response) => {
    ;(request as unknown as OldRequest).session.cart = ['coat']
    response.end('ok')
  })
  app.post('/login', passport.authenticate('local', { failureMessage: true }), (_request, response) => {
    response.end('logged in')
  })
  app.post(
    '/login-keep',
    passport.authenticate('local', { keepSessionInfo: true } as object),
    (_request, response) => void response.end('logged in'),
  )
  app.post('/logout', (request, response, next) => {
    request.logout(error => {
      if (error) next(error)
      else response.redirect(303, '/')
    })
  })
  options.more?.(app, made.sessions)
  const answerError: express.ErrorRequestHandler = (error, _request, response, next) => {
    if (response.headersSent) next(error)
    else response.status(error.status ?? 500).send(error.code ?? String(error))
  }
  app.use(answerError)
  const listening = await listen(app)
  const whoIs = async (browser: ReturnType<typeof listening.browser>) => JSON.parse((await browser.go('/')).body)
  return { ...made, ...listening, deserialized, whoIs }
}

describe('Passport on Express 5', () => {
  it('logs in with a new ID: the session that the browser had before is dead', async () => {
    const { browser, whoIs, sessions } = await serveExpress()
    const ada = browser()
    await ada.post('/cart')
    const before = ada.cookie
    const { id, user } = await whoIs(ada)
    expect(user).toBe(null)
    expect((await ada.post('/login', LOG_IN)).body).toBe('logged in')
    expect(ada.cookie).not.toBe(before)
    const after = await whoIs(ada)
    expect(after).toMatchObject({ user: 'ada', cart: null })
    expect(after.id).not.toBe(id)
    const thief = browser()
    thief.cookies.set('session_id', before.split('=')[1]!)
    expect(await whoIs(thief)).toMatchObject({ user: null, cart: null })
    expect((await sessions.list(42n)).map(({ key }) => key)).toEqual([after.id])
  })

  it('begins a session of that user: listed with the name, with the password version, and ended by invalidateUser', async () => {
    const { browser, whoIs, sessions } = await serveExpress()
    const ada = browser()
    await ada.post('/login', LOG_IN)
    const [session] = await sessions.list(42n)
    expect(session!.user).toEqual({ id: 42n, name: 'ada' })
    expect(session!.user!.passwordVersion).toBe(1)
    expect(await sessions.invalidateUser(42n)).toBe(1)
    expect(await whoIs(ada)).toMatchObject({ user: null, id: null })
  })

  it('keeps user IDs exact up to the largest', async () => {
    const { browser, sessions, whoIs } = await serveExpress()
    const max = browser()
    await max.post('/login', 'username=max&password=p')
    expect(await whoIs(max)).toMatchObject({ user: 'max' })
    expect((await sessions.list(2n ** 64n - 1n)).length).toBe(1)
  })

  it('gives a login that verified an older password no session', async () => {
    const { browser, whoIs, sessions } = await serveExpress()
    await sessions.invalidateUser(42n, { minPasswordVersion: 2 })
    const ada = browser()
    const reply = await ada.post('/login', LOG_IN)
    expect([reply.status, reply.body]).toEqual([401, 'ERR_SESSION_STALE_LOGIN'])
    expect(await whoIs(ada)).toMatchObject({ user: null })
  })

  it('logs out: the session is dead, and the browser loses its cookie', async () => {
    const { browser, whoIs, sessions } = await serveExpress()
    const ada = browser()
    await ada.post('/login', LOG_IN)
    const { cookie } = ada
    expect((await ada.post('/logout')).status).toBe(303)
    expect(ada.cookie).toBe('')
    expect(await sessions.list(42n)).toEqual([])
    const thief = browser()
    thief.cookies.set('session_id', cookie.split('=')[1]!)
    expect(await whoIs(thief)).toMatchObject({ user: null })
  })

  it('carries a cart over the login where the application says so', async () => {
    const { browser, whoIs } = await serveExpress()
    const ada = browser()
    await ada.post('/cart')
    await ada.post('/login-keep', LOG_IN)
    expect(await whoIs(ada)).toMatchObject({ user: 'ada', cart: ['coat'] })
  })

  it('keeps the rest of the data at a logout where the application says so, in a session of no user', async () => {
    const { browser, whoIs, sessions } = await serveExpress({
      more: app =>
        app.post('/logout-keep', (request, response, next) =>
          request.logout({ keepSessionInfo: true }, error => (error ? next(error) : void response.end('ok'))),
        ),
    })
    const ada = browser()
    await ada.post('/login', LOG_IN)
    await ada.post('/cart')
    const { cookie } = ada
    await ada.post('/logout-keep')
    expect(ada.cookie).not.toBe(cookie)
    expect(await whoIs(ada)).toMatchObject({ user: null, cart: ['coat'] })
    expect(await sessions.list(42n)).toEqual([])
  })

  it('logs the user out whom deserializeUser no longer knows', async () => {
    const { browser, whoIs, sessions, deserialized } = await serveExpress()
    const ada = browser()
    await ada.post('/login', LOG_IN)
    deserialized.user = undefined
    expect(await whoIs(ada)).toMatchObject({ user: null })
    expect(await sessions.list(42n)).toEqual([])
  })

  it('answers an outage at the login with 503, and the user is not logged in', async () => {
    const { store, control } = controlled()
    const { browser, whoIs } = await serveExpress({ manager: { store } })
    const ada = browser()
    control.failing.add('create')
    const reply = await ada.post('/login', LOG_IN)
    expect([reply.status, reply.body, reply.cookies.filter(line => !/max-age=0/i.test(line))]).toEqual([
      503,
      'ERR_SESSION_STORE',
      [],
    ])
    control.failing.clear()
    expect(await whoIs(ada)).toMatchObject({ user: null })
    expect((await ada.post('/login', LOG_IN)).status).toBe(200)
  })

  it('answers an outage at the logout with 503: the cookie stays, and the logout may be repeated', async () => {
    const { store, control } = controlled()
    const { browser, whoIs, sessions } = await serveExpress({ manager: { store } })
    const ada = browser()
    await ada.post('/login', LOG_IN)
    control.failing.add('delete')
    expect((await ada.post('/logout')).status).toBe(503)
    expect(ada.cookie).not.toBe('')
    control.failing.clear()
    expect(await whoIs(ada)).toMatchObject({ user: 'ada' })
    expect((await ada.post('/logout')).status).toBe(303)
    expect(await sessions.list(42n)).toEqual([])
  })

  it('keeps the message of a failed login for the next page', async () => {
    const { browser } = await serveExpress({
      more: app =>
        app.get('/messages', (request, response) => {
          const { session } = request as unknown as OldRequest
          const { messages = [] } = session
          session.messages = []
          response.json(messages)
        }),
    })
    const ada = browser()
    expect((await ada.post('/login', 'username=ada&password=wrong')).status).toBe(401)
    expect((await ada.go('/messages')).body).toBe('["Wrong name or password."]')
    expect((await ada.go('/messages')).body).toBe('[]')
  })

  it('takes a user that serializeUser gave as an object or as a number', async () => {
    for (const serialize of [
      (user: { id: string; username: string }) => ({ id: user.id, username: user.username }),
      (user: { id: string }) => Number(user.id),
    ]) {
      const { browser, sessions, whoIs } = await serveExpress({ serialize })
      const ada = browser()
      await ada.post('/login', LOG_IN)
      expect(await whoIs(ada)).toMatchObject({ user: 'ada' })
      expect((await sessions.list(42n))[0]!.user).toEqual({ id: 42n, name: 'ada' })
    }
  })

  it('says what is wrong where a user has no ID, or one that JSON has not', async () => {
    const cases = [
      [() => ({ name: 'ada' }), /passport\.user: expected text, a number or an object with an id/],
      [() => 42n, /ERR_SESSION_DATA/],
      [() => 'ada', /user ID: expected a bigint/],
    ] as const
    for (const [serialize, message] of cases) {
      const { browser, whoIs } = await serveExpress({ serialize })
      const ada = browser()
      const reply = await ada.post('/login', LOG_IN)
      expect(reply.status).toBe(500)
      expect(reply.body).toMatch(message)
      expect(await whoIs(ada)).toMatchObject({ user: null })
    }
  })

  it('takes terms for a login: a short idle time, or a password that was never verified', async () => {
    const { browser, sessions } = await serveExpress({
      bridge: { logIn: () => ({ idleTimeout: '6m', verifiedAt: null }) },
      more: (app, all) =>
        app.get('/fresh', async (request, response) => {
          const session = await nodeVisits(all).of(request, response).get()
          response.json(all.isFresh(session, '1h'))
        }),
    })
    const ada = browser()
    const { cookies } = await ada.post('/login', LOG_IN)
    expect(cookies[0]).toContain('Max-Age=360')
    expect((await sessions.list(42n)).length).toBe(1)
    expect((await ada.go('/fresh')).body).toBe('false')
  })

  it('gives the browser a remember token where the terms say so, and a logout ends that too', async () => {
    const { browser, sessions, clock, whoIs } = await serveExpress({
      manager: { rememberFor: '30d' },
      bridge: { logIn: () => ({ remember: true }) },
    })
    const ada = browser()
    await ada.post('/login', LOG_IN)
    expect([...ada.cookies.keys()].sort()).toEqual(['remember_token', 'session_id'])
    clock.now += 3_600_000
    await whoIs(ada)
    expect((await sessions.list(42n)).map(({ remembered }) => remembered)).toEqual([true])
    await ada.post('/logout')
    expect(ada.cookies.size).toBe(0)
  })

  it('takes a login with a key of its own for one also in a session that a remember token began', async () => {
    const made = await serve(
      {
        '/login': (request, response) => {
          request.session.userId = '42'
          response.end()
        },
        '/': async (request, response) => {
          const session = await made.session.visits.of(request, response).get()
          response.end(JSON.stringify([session?.remembered, made.sessions.isFresh(session, '5m')]))
        },
        '/told': async (request, response) => {
          await made.session.visits.of(request, response).update({ userId: '42' })
          await called(back => request.session.reload(back))
          response.end()
        },
      },
      {
        manager: { rememberFor: '30d' },
        bridge: {
          userOf: ({ userId }) => (userId === undefined ? null : { id: userId, name: 'ada' }),
          logIn: () => ({ remember: true }),
        },
      },
    )
    const ada = made.browser()
    await ada.go('/login')
    made.clock.now += 3_600_000
    expect((await ada.go('/')).body).toBe('[true,false]')
    const before = ada.cookies.get('session_id')
    await ada.go('/told')
    expect([ada.cookies.get('session_id'), (await ada.go('/')).body], 'what the visit writes is no login').toEqual([
      before,
      '[true,false]',
    ])
    made.clock.now += 3_600_000
    await ada.go('/')
    await ada.go('/login')
    expect((await ada.go('/')).body).toBe('[false,true]')
    expect(ada.cookies.get('session_id')).not.toBe(before)
    expect(await made.sessions.list(42n)).toHaveLength(1)
  })

  it('leaves a login alone that the application made by the visit, beside data of its own', async () => {
    const { browser, sessions } = await serveExpress({
      more: (app, all) => {
        const session = expressSession(all)
        app.post('/native', async (request, response) => {
          await session.visits.of(request, response).logIn({ user: { id: 7n, name: 'eve' } })
          response.end()
        })
      },
    })
    const eve = browser()
    await eve.post('/native')
    await eve.post('/cart')
    expect((await sessions.list(7n)).map(({ data }) => data)).toEqual([{ cart: ['coat'] }])
  })
})

describe('Passport without a framework', () => {
  it('logs in and out where the middleware is called by hand', async () => {
    const { sessions } = makeManager()
    const { passport } = makePassport()
    const session = expressSession(sessions)
    const authenticate = passport.session()
    const { browser } = await listen((request, response) => {
      const old = request as OldRequest
      const failed = (error: unknown) => void response.writeHead(500).end(String(error))
      session(request, response, error => {
        if (error) return failed(error)
        authenticate(old, response, (problem: unknown) => {
          if (problem) return failed(problem)
          const done = (outcome: unknown) => (outcome ? failed(outcome) : void response.end('done'))
          if (old.url === '/login') old.login(USERS[0], done)
          else if (old.url === '/logout') old.logout(done)
          else response.end(old.user?.username ?? 'no user')
        })
      })
    })
    const ada = browser()
    expect((await ada.go('/')).body).toBe('no user')
    await ada.post('/login')
    expect((await ada.go('/')).body).toBe('ada')
    await ada.post('/logout')
    expect((await ada.go('/')).body).toBe('no user')
    expect(await sessions.list(42n)).toEqual([])
  })
})
