// The parallel requests of one browser: what express-session loses or revives, and what the bridge makes of the same code.

import { expressSession } from 'coatcheck/express-session'
import { MemoryStore } from 'coatcheck/stores/memory'
// @ts-expect-error TS7016: it has no types
import flash from 'connect-flash'
import express from 'express'
import { MemoryStore as TheirStore, default as theirs } from 'express-session'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { called, listen, makeManager, type OldHandler, type OldRequest, serve } from './service.ts'

/** Resolves for all when `count` have come. */
function meeting(count: number): () => Promise<void> {
  let arrive = () => {}
  const all = new Promise<void>(resolve => {
    arrive = resolve
  })
  let here = 0
  return () => {
    here += 1
    if (here === count) arrive()
    return all
  }
}

type Middleware = (request: never, response: never, next: (error?: unknown) => void) => void

const MIDDLEWARE: [string, () => Middleware][] = [
  [
    'express-session',
    () =>
      theirs({
        secret: 's',
        resave: false,
        saveUninitialized: false,
        store: new TheirStore(),
      }) as unknown as Middleware,
  ],
  ['the bridge', () => expressSession(makeManager().sessions) as unknown as Middleware],
]

/** The same application around either middleware: requests that wait for each other in the middle. */
async function serveEither(make: () => Middleware) {
  let meet = () => Promise.resolve()
  const app = express()
  app.use(make() as unknown as express.RequestHandler)
  app.use(flash())
  const route = (path: string, handle: (old: OldRequest, response: express.Response) => unknown) =>
    app.get(path, (request, response) => handle(request as unknown as OldRequest, response))
  route('/', (old, response) => response.json({ ...old.session, cookie: undefined }))
  route('/set/:key', async (old, response) => {
    await meet()
    old.session[old.params.key] = 1
    response.end()
  })
  route('/login', (old, response) =>
    old.session.regenerate(() => {
      old.session.passport = { user: 42 }
      response.end()
    }),
  )
  route('/logout', (old, response) => old.session.destroy(() => response.end()))
  route('/slow', async (old, response) => {
    await meet()
    await new Promise<void>(resolve => {
      proceed = resolve
    })
    old.session.last = 'slow'
    response.end()
  })
  route('/flash', (old, response) => {
    old.flash('info', 'saved')
    response.end()
  })
  route('/read', async (old, response) => {
    await meet()
    response.json(old.flash('info'))
  })
  let proceed = () => {}
  const listening = await listen(app)
  return {
    ...listening,
    meetAt: (count: number) => {
      meet = meeting(count)
      return meet
    },
    proceed: () => proceed(),
  }
}

describe('parallel requests of one browser', () => {
  const written: Record<string, Record<string, unknown>[]> = {}
  it.each(MIDDLEWARE)('that each write another key: %s', async (name, make) => {
    const { browser, meetAt } = await serveEither(make)
    const visitor = browser()
    await visitor.go('/set/begun')
    meetAt(5)
    await Promise.all(['a', 'b', 'c', 'd', 'e'].map(key => visitor.go(`/set/${key}`)))
    written[name] = Object.keys(JSON.parse((await visitor.go('/')).body)).sort() as never
  })

  it('lose all but one in express-session, and none in the bridge', () => {
    expect(written['express-session']!.length).toBe(2)
    expect(written['the bridge']).toEqual(['a', 'b', 'begun', 'c', 'd', 'e'])
  })

  const afterwards: Record<string, string> = {}
  it.each(MIDDLEWARE)('of which one logs out while another is slow: %s', async (name, make) => {
    const { browser, meetAt, proceed } = await serveEither(make)
    const ada = browser()
    await ada.go('/login')
    const thief = browser()
    for (const [cookie, value] of ada.cookies) thief.cookies.set(cookie, value)
    const meet = meetAt(2)
    const slow = thief.go('/slow')
    await meet()
    await ada.go('/logout')
    proceed()
    await slow
    afterwards[name] = (await thief.go('/')).body
  })

  it('are logged in again in express-session, and stay logged out in the bridge', () => {
    expect(JSON.parse(afterwards['express-session']!)).toMatchObject({ passport: { user: 42 } })
    expect(JSON.parse(afterwards['the bridge']!)).toEqual({})
  })

  it('stay logged out also where the logout came to another server', async () => {
    const store = new MemoryStore()
    const other = makeManager({ store })
    const { browser } = await serve(
      {
        '/': (request, response) => response.end(JSON.stringify(request.session)),
        '/login': (request, response) => {
          request.session.passport = { user: 42 }
          response.end()
        },
        '/slow': async (request, response) => {
          await other.sessions.invalidateUser(42n)
          for (const key of ['a', 'b']) {
            request.session[key] = 1
            await called(back => request.session.save(back))
          }
          request.session.passport = { user: 42 }
          request.session.c = 1
          response.end()
        },
      },
      { manager: { store } },
    )
    const ada = browser()
    await ada.go('/login')
    expect((await ada.go('/slow')).status).toBe(200)
    expect((await ada.go('/')).body).toBe('{}')
    expect(await other.sessions.list(42n)).toEqual([])
  })

  it('are answered, and begin no session, where one comes after the logout with the cookie from before', async () => {
    const { browser, sessions, errors } = await serve({
      '/message': (request, response) => {
        request.session.message = 'hello'
        response.end('fine')
      },
      '/logout': (request, response) => {
        request.session.destroy()
        response.end()
      },
    })
    const [ada, late] = [browser(), browser()]
    await ada.go('/message')
    late.cookies.set('session_id', ada.cookies.get('session_id')!)
    await ada.go('/logout')
    expect([(await late.go('/message')).body, errors]).toEqual(['fine', []])
    expect(await sessions.count()).toBe(0)
  })

  it('that read one flash message each get it, as with express-session: it is one value, read at the begin', async () => {
    for (const [, make] of MIDDLEWARE) {
      const { browser, meetAt } = await serveEither(make)
      const visitor = browser()
      await visitor.go('/flash')
      meetAt(2)
      const replies = await Promise.all([visitor.go('/read'), visitor.go('/read')])
      expect(replies.map(({ body }) => body)).toEqual(['["saved"]', '["saved"]'])
      meetAt(1)
      expect((await visitor.go('/read')).body).toBe('[]')
    }
  })

  it('that take a flash message by the visit get it once', async () => {
    const { browser, session } = await serve({
      '/flash': (request, response) => {
        request.session.notice = 'saved'
        response.end()
      },
      '/take': async (request, response) => {
        const notice = await session.visits.of(request, response).take('notice')
        response.end(JSON.stringify(notice ?? null))
      },
    })
    const visitor = browser()
    await visitor.go('/flash')
    const replies = await Promise.all([visitor.go('/take'), visitor.go('/take'), visitor.go('/take')])
    expect(replies.map(({ body }) => body).sort()).toEqual(['"saved"', 'null', 'null'])
  })

  it('that log in twice end in one user, and a browser that is logged in whichever answer comes last', async () => {
    const { browser, sessions } = await serve({
      '/': (request, response) => response.end(JSON.stringify(request.session)),
      '/login': (request, response, next) =>
        request.session.regenerate((error: unknown) => {
          if (error) return next(error)
          request.session.passport = { user: 42 }
          request.session.save((failed: unknown) => (failed ? next(failed) : response.end()))
        }),
      '/set': (request, response) => {
        request.session.a = 1
        response.end()
      },
    })
    const ada = browser()
    await ada.go('/set')
    const [one, two] = [browser(), browser()]
    for (const each of [one, two]) each.cookies.set('session_id', ada.cookies.get('session_id')!)
    await Promise.all([one.go('/login'), two.go('/login')])
    for (const each of [one, two]) expect((await each.go('/')).body).toBe('{"passport":{"user":42}}')
    expect((await ada.go('/')).body).toBe('{}')
    expect(await sessions.invalidateUser(42n)).toBe(2)
  })
})

describe('connect-flash', () => {
  it('shows a message once, and begins no session where it only looks', async () => {
    const { browser } = await serveEither(MIDDLEWARE[1]![1])
    const visitor = browser()
    expect((await visitor.go('/read')).cookies).toEqual([])
    await visitor.go('/flash')
    await visitor.go('/flash')
    expect((await visitor.go('/read')).body).toBe('["saved","saved"]')
    expect((await visitor.go('/read')).body).toBe('[]')
  })
})

describe('whatever requests do to their keys in parallel', () => {
  it('each ends with what its own request wrote last', async () => {
    const values: fc.Arbitrary<unknown> = fc.oneof(
      fc.integer(),
      fc.string({ maxLength: 5 }),
      fc.array(fc.integer(), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('x', 'y'), fc.boolean()),
      fc.constant(undefined),
    )
    const steps = fc.array(fc.tuple(values, fc.boolean()), { minLength: 1, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { minLength: 1, maxLength: 4 }), async plans => {
        const handlers: Record<string, OldHandler> = {
          '/begin': (request, response) => {
            request.session.begun = true
            response.end()
          },
          '/': (request, response) => response.end(JSON.stringify(request.session)),
        }
        for (const [index, plan] of plans.entries())
          handlers[`/${index}`] = async (request, response) => {
            for (const [value, saves] of plan) {
              request.session[`k${index}`] = value
              if (saves) await called(back => request.session.save(back))
            }
            response.end()
          }
        const { browser, sessions } = await serve(handlers)
        const visitor = browser()
        await visitor.go('/begin')
        const replies = await Promise.all(plans.map((_, index) => visitor.go(`/${index}`)))
        expect(replies.map(({ status }) => status)).toEqual(plans.map(() => 200))
        const expected: Record<string, unknown> = { begun: true }
        for (const [index, plan] of plans.entries()) expected[`k${index}`] = plan.at(-1)![0]
        expect(JSON.parse((await visitor.go('/')).body)).toEqual(JSON.parse(JSON.stringify(expected)))
        await sessions.close()
      }),
      { numRuns: 40 },
    )
  })
})
