// An application with Passport on express-session moves: its sessions are imported, and Passport goes on as it was.
import { expressSession } from 'coatcheck/express-session'
import { fromExpressSession, sessionImporter } from 'coatcheck/import'
import express from 'express'
import theirs, { MemoryStore as TheirStore } from 'express-session'
import { Passport } from 'passport'
import { describe, expect, it } from 'vitest'
import { listen, makeManager, type OldRequest } from './service.ts'

const ada = { id: '42', username: 'ada' }

/** The application, which does not know what offers its req.session. */
function application(...sessionMiddleware: express.RequestHandler[]) {
  const passport = new Passport()
  passport.serializeUser((user, done) => done(null, (user as typeof ada).id))
  passport.deserializeUser((id, done) => done(null, id === ada.id ? ada : false))
  const app = express()
  for (const middleware of sessionMiddleware) app.use(middleware)
  app.use(passport.session())
  app.get('/login', (request, response, next) => {
    request.login(ada, error => {
      if (error) return next(error)
      ;(request as unknown as OldRequest).session.cart = ['coat']
      response.end()
    })
  })
  app.get('/', (request, response) => {
    const { user, session } = request as unknown as OldRequest
    response.json([user?.username ?? null, session.cart ?? null])
  })
  app.get('/logout', (request, response, next) => request.logout(error => (error ? next(error) : response.end())))
  return app
}

describe('an application with Passport that moves from express-session', () => {
  it('keeps its users logged in, with their data, in sessions that invalidateUser ends', async () => {
    const store = new TheirStore()
    const secret = 'keyboard cat'
    const before = await listen(application(theirs({ secret, store, resave: false, saveUninitialized: false })))
    const browser = before.browser()
    await browser.go('/login')
    expect((await browser.go('/')).body).toBe('["ada",["coat"]]')

    const { sessions } = makeManager({ now: () => Date.now() })
    const session = expressSession(sessions)
    const importer = sessionImporter(sessions, {
      from: fromExpressSession({ secret, store }),
      toLogin: data => {
        const { passport } = data as { passport?: { user?: string } }
        return passport?.user === undefined ? null : { user: { id: BigInt(passport.user), name: 'ada' }, data }
      },
    })
    const after = await listen(application(importer.middleware(session.visits), session))
    const moved = after.browser()
    for (const [name, value] of browser.cookies) moved.cookies.set(name, value)
    expect((await moved.go('/')).body).toBe('["ada",["coat"]]')
    expect((await moved.go('/')).body).toBe('["ada",["coat"]]')
    expect([...moved.cookies.keys()]).toEqual(['session_id'])
    expect(await sessions.invalidateUser(42n)).toBe(1)
    expect((await moved.go('/')).body).toBe('[null,null]')
  })
})
