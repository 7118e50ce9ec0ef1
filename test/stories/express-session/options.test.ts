// The options of the bridge, and who is logged in by the data of an application without Passport.
import { SessionManager, type SessionOptions } from 'coatcheck'
import { expressSession } from 'coatcheck/express-session'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { makeManager, type OldHandler, serve } from './service.ts'

const handlers: Record<string, OldHandler> = {
  '/': (request, response) => response.end(JSON.stringify(request.session)),
  '/user': (request, response) => {
    const id = new URL(request.url!, 'http://localhost').searchParams.get('id')
    if (id === null) delete request.session.userId
    else request.session.userId = id
    response.end()
  },
  '/cart': (request, response) => {
    request.session.cart = ['coat']
    response.end()
  },
}
const userOf = (data: Record<string, string>) =>
  data.userId === undefined ? null : { id: data.userId, name: 'someone' }

describe('a user of one’s own', () => {
  const serveOwn = (manager: Partial<SessionOptions> = {}) => serve(handlers, { manager, bridge: { userOf } })

  it('is logged in by the key that userOf names, with a new ID, also without regenerate', async () => {
    const { browser, sessions } = await serveOwn()
    const visitor = browser()
    await visitor.go('/cart')
    const { cookie } = visitor
    await visitor.go('/user?id=7')
    expect(visitor.cookie).not.toBe(cookie)
    expect((await visitor.go('/')).body).toBe('{"cart":["coat"],"userId":"7"}')
    expect((await sessions.list(7n)).map(({ user }) => user)).toEqual([{ id: 7n, name: 'someone' }])
    const thief = browser()
    thief.cookies.set('session_id', cookie.split('=')[1]!)
    expect((await thief.go('/')).body).toBe('{}')
  })

  it('is logged out where the key goes: the rest is kept under a new ID', async () => {
    const { browser, sessions } = await serveOwn()
    const visitor = browser()
    await visitor.go('/user?id=7')
    await visitor.go('/cart')
    const { cookie } = visitor
    await visitor.go('/user')
    expect(visitor.cookie).not.toBe(cookie)
    expect((await visitor.go('/')).body).toBe('{"cart":["coat"]}')
    expect(await sessions.list(7n)).toEqual([])
  })

  it('that follows another one gets nothing of what that one had', async () => {
    const { browser, sessions } = await serveOwn()
    const visitor = browser()
    await visitor.go('/user?id=7')
    await visitor.go('/cart')
    await visitor.go('/user?id=8')
    expect((await visitor.go('/')).body).toBe('{"userId":"8"}')
    expect([(await sessions.list(7n)).length, (await sessions.list(8n)).length]).toEqual([0, 1])
  })

  it('that follows another one sees in the same request what is stored', async () => {
    const { browser } = await serve(
      {
        ...handlers,
        '/switch': (request, response) => {
          request.session.userId = '8'
          request.session.save(() => response.end(JSON.stringify(request.session)))
        },
      },
      { bridge: { userOf } },
    )
    const visitor = browser()
    await visitor.go('/user?id=7')
    await visitor.go('/cart')
    expect((await visitor.go('/switch')).body).toBe('{"userId":"8"}')
    expect((await visitor.go('/')).body).toBe('{"userId":"8"}')
  })

  it.each([
    ['number', '7', 7],
    ['string', '7', '7'],
    ['string', 'b3b0c1d2', 'b3b0c1d2'],
  ] as const)('has the ID that the manager takes: %s', async (userIds, given, id) => {
    const { sessions, browser } = await serveOwn({ userIds: userIds as never })
    await browser().go(`/user?id=${given}`)
    expect((await sessions.list(id as never)).length).toBe(1)
  })

  it.each([
    ['an ID that is none', () => ({ id: 'x y' }), /user ID: expected a bigint from 0n/],
    ['a number that is not exact', () => ({ id: 2 ** 60 }), /user ID: expected a bigint/],
    [
      'a promise',
      async () => ({ id: 1 }),
      /userOf: expected it to return \{ id, name \}, or null if nobody is logged in, and no promise/,
    ],
    ['text', () => 'ada', /userOf: expected it to return .*, got "ada"/],
    ['a name that is none', () => ({ id: 1, name: 5 }), /user\.name: expected text/],
    [
      'what it throws',
      () => {
        throw new Error('no such table')
      },
      /no such table/,
    ],
  ])('that cannot be one is told at the end, and nothing is stored: %s', async (_, wrong, message) => {
    const { browser, errors, calls } = await serve(handlers, { bridge: { userOf: wrong as never } })
    const reply = await browser().go('/cart')
    expect(reply.status).toBe(500)
    expect(String(errors[0])).toMatch(message)
    expect(calls).toEqual([])
  })

  it('is logged in also where userOf asks the request, and where the data was written past the bridge', async () => {
    const { browser, sessions } = await serve(
      {
        ...handlers,
        '/login': (request, response) => {
          request.user = { id: 7 }
          request.session.cart = ['coat']
          response.end()
        },
      },
      {
        bridge: {
          userOf: (data, request) => (request as { user?: never }).user ?? (data.userId ? { id: data.userId } : null),
        },
      },
    )
    await browser().go('/login')
    expect((await sessions.list(7n)).length).toBe(1)
    const session = await sessions.create({ data: { userId: '8' } })
    const visitor = browser()
    visitor.cookies.set('session_id', session.secret)
    await visitor.go('/')
    expect((await sessions.list(8n)).length).toBe(0)
    await visitor.go('/cart')
    const [found] = await sessions.list(8n)
    expect(found!.data).toEqual({ userId: '8', cart: ['coat'] })
    const [is] = [await sessions.get(visitor.cookies.get('session_id') as never)]
    expect(sessions.isFresh(is, '1h')).toBe(false)
  })

  it('that the application logged out by the visit is not logged in again by a message for the next page', async () => {
    const { browser, sessions, session } = await serve(
      {
        ...handlers,
        '/logout': async (request, response) => {
          await session.visits.of(request, response).logOut()
          request.session.notice = 'bye'
          response.end()
        },
        '/switch': async (request, response) => {
          const visit = session.visits.of(request, response)
          await visit.logOut()
          await visit.create({ data: { anonymous: true } })
          request.session.notice = 'bye'
          response.end()
        },
      },
      { bridge: { userOf } },
    )
    for (const [path, data] of [
      ['/logout', '{"notice":"bye"}'],
      ['/switch', '{"anonymous":true,"notice":"bye"}'],
    ] as const) {
      const visitor = browser()
      await visitor.go('/user?id=7')
      await visitor.go(path)
      expect((await visitor.go('/')).body).toBe(data)
      expect(await sessions.list(7n)).toEqual([])
    }
  })

  it('goes beside what the application does by the visit in the same request', async () => {
    const { browser, sessions, session, calls } = await serve(
      {
        ...handlers,
        '/create': async (request, response) => {
          await session.visits.of(request, response).create({ data: { note: 'new' } })
          request.session.cart = ['hat']
          response.end()
        },
        '/same': async (request, response) => {
          await session.visits.of(request, response).logIn({ user: { id: 7n, name: 'someone' } })
          request.session.userId = '7'
          response.end()
        },
        '/other': async (request, response) => {
          await session.visits.of(request, response).logIn({ user: { id: 8n, name: 'other' } })
          delete request.session.userId
          response.end()
        },
        '/out': async (request, response) => {
          await session.visits.of(request, response).logOut()
          delete request.session.userId
          request.session.notice = 'bye'
          response.end()
        },
      },
      { bridge: { userOf } },
    )
    const go = async (...paths: string[]) => {
      const visitor = browser()
      for (const path of paths) await visitor.go(path)
      return JSON.parse((await visitor.go('/')).body)
    }
    expect(await go('/create')).toEqual({ note: 'new', cart: ['hat'] })
    calls.length = 0
    expect(await go('/same')).toEqual({ userId: '7' })
    expect(calls, 'one login').toEqual(['create', 'update', 'read'])
    await sessions.invalidateAll()
    expect(await go('/user?id=7', '/cart', '/out')).toEqual({ cart: ['coat'], notice: 'bye' })
    expect(await go('/user?id=7', '/other')).toEqual({})
    expect([(await sessions.list(7n)).length, (await sessions.list(8n)).length]).toEqual([0, 1])
  })

  it('has terms of its login, which are checked as those of a login are', async () => {
    const { browser, errors } = await serve(handlers, {
      bridge: { userOf, logIn: () => ({ idleTimeout: 5 }) as never },
    })
    await browser().go('/user?id=7')
    expect(String(errors[0])).toMatch(/idleTimeout: expected a duration with its unit/)
  })
})

describe('the options', () => {
  const { sessions } = makeManager()
  const make = (options: unknown) => () => expressSession(sessions, options as never)

  it.each([
    ['secret', /expressSession: "secret" is not an option; nothing is signed or encrypted/],
    ['store', /"store" is not an option; it belongs to the manager: new SessionManager/],
    ['resave', /"resave" is not an option; only the keys that changed are written/],
    [
      'saveUninitialized',
      /"saveUninitialized" is not an option; a session begins when req\.session gets its first value/,
    ],
    ['name', /"name" is not an option; the cookie has its name from cookie: \{ name \}/],
    ['genid', /"genid" is not an option; an ID is always 240 random bits/],
    ['rolling', /"rolling" is not an option; a session in use lives on by itself/],
    ['proxy', /"proxy" is not an option; trustedProxies or isSecure/],
    ['unset', /"unset" is not an option; req\.session = null always ends the session/],
    ['userof', /"userof" is not an option \(there are: /],
  ])('of express-session are refused by name, with what to do instead: %s', (name, message) => {
    expect(make({ [name]: 'x' })).toThrow(message)
  })

  it('of the wrong type are quoted', () => {
    expect(make({ userOf: 'id' })).toThrow('userOf: expected a function, got "id"')
    expect(make({ logIn: {} })).toThrow('logIn: expected a function, got an object')
    expect(make({ cookie: { maxAge: 5 } })).toThrow(/cookie: "maxAge" is not an option; idleTimeout/)
    expect(make('keyboard cat')).toThrow(/expressSession: expected an object of options/)
    expect(() => expressSession({ secret: 's' } as never)).toThrow(/expected a SessionManager/)
    expect(() => expressSession(new MemoryStore() as never)).toThrow(
      /^nodeVisits: expected a SessionManager, got an object; pass new SessionManager/,
    )
  })

  it('take a manager with whatever data and IDs', () => {
    const typed = new SessionManager({ store: new MemoryStore(), userIds: 'string', initial: () => ({ n: 0 }) })
    expect(typeof expressSession(typed, { userOf: data => ({ id: data.user }) })).toBe('function')
  })
})
