// Requests of one session of connect at nodes of their own, as each middleware makes them of its store: one takes a new ID for
// the user whom it has loaded, beside whatever ends that session or gives it to another user. What must hold: nobody who was
// logged out is logged in again, and what a user saves late is not in the session of the next one.
import assert from 'node:assert/strict'
import type { ConnectStore } from 'coatcheck/connect'
import type { Scene } from './search.ts'
import type { World } from './world.ts'

const SID = 'an-ID-of-the-middleware-01234567'
const nextOf = (index: number) => `the-ID-that-is-drawn-anew-for-0${index}`

const NAMES = ['a new ID', 'a logout', 'a logout everywhere', 'a save', 'a login of another user'] as const
type LateRequest = (typeof NAMES)[number]
const ENDS: readonly LateRequest[] = ['a new ID', 'a logout', 'a logout everywhere']
const MIDDLEWARE = ['express-session', '@fastify/session', 'koa-session'] as const

class Session {
  constructor(request: object, values: object = {}) {
    Object.assign(this, values)
    Object.defineProperty(this, 'req', { value: request })
    Object.defineProperty(this, 'id', { value: (request as { sessionID: string }).sessionID })
  }
}

const called = (verb: (callback: (error: unknown, value?: any) => void) => unknown): Promise<any> =>
  new Promise((resolve, reject) => {
    verb((error, value) => (error ? reject(error) : resolve(value)))
  })

/** What the three make of the store: load, save, end, and a new ID with the same data. */
const requestsOf = {
  'express-session'(store: ConnectStore, next: string) {
    const request: any = { sessionID: SID, sessionStore: store }
    store.generate = (each: any) => {
      each.sessionID = next
      each.session = new Session(each, { cookie: { toJSON: () => ({}) } })
    }
    const save = () => called(callback => store.set(request.sessionID, request.session, callback))
    return {
      async load() {
        const data = await called(callback => store.get(SID, callback))
        return data && store.createSession(request, data)
      },
      save,
      end: () => called(callback => request.session.destroy(callback)),
      async renew(values: object) {
        await called(callback => store.regenerate(request, callback))
        Object.assign(request.session, values)
        await save()
      },
    }
  },
  '@fastify/session'(store: ConnectStore, next: string) {
    const request: any = { sessionID: SID }
    const made = (sessionID: string, values: object) =>
      Object.defineProperty(new Session({ sessionID }, values), Symbol('request'), { value: request })
    const save = () => called(callback => store.set(request.session.id, request.session, callback))
    return {
      async load() {
        const data = await called(callback => store.get(SID, callback))
        request.session = data && made(SID, data)
        return request.session
      },
      save,
      end: () => called(callback => store.destroy(SID, callback)),
      async renew(values: object) {
        const session = made(next, { cookie: {} })
        await called(callback =>
          store.destroy(SID, (failed: unknown) =>
            store.set(next, session, (error: unknown) => {
              request.session = session
              callback(failed ?? error)
            }),
          ),
        )
        Object.assign(session, values)
        await save()
      },
    }
  },
  'koa-session'(store: ConnectStore, next: string) {
    const more = { ctx: {} }
    let session: any
    return {
      load: async () => (session = await store.get(SID, 60_000, more)),
      save: () => store.set(SID, { ...session }, 60_000, more),
      end: () => store.destroy(SID, more),
      async renew(values: object) {
        await store.destroy(SID, more)
        await store.set(next, { ...values }, 60_000, more)
      },
    }
  },
}

export function lateOf(requests: readonly LateRequest[], middleware: (typeof MIDDLEWARE)[number]): Scene {
  const node = (world: World) => {
    const sessions = world.manager()
    const userOf = ({ user }: { user?: string }) => (user === undefined ? null : { id: user })
    return { sessions, store: world.library.connectStore(sessions, { userOf }) }
  }
  return {
    name: `a session of ${middleware}: ${requests.join(' | ')}`,
    options: { faults: 0 },
    async prepare(world) {
      await node(world).store.set(SID, { cookie: {}, user: '42', a: 0 })
      world.canonical([SID, ...requests.map((_, index) => nextOf(index))].join(' '))
      for (const [index, name] of requests.entries()) {
        const { sessions, store } = node(world)
        const request = requestsOf[middleware](store, nextOf(index))
        world.act(name, async () => {
          if (name === 'a logout everywhere') return sessions.invalidateUser(42n)
          const session = await request.load()
          if (session === null) return null
          const { user } = session
          if (name === 'a new ID') await request.renew({ user })
          else if (name === 'a logout') await request.end()
          else {
            Object.assign(session, name === 'a save' ? { a: 1 } : { user: '43' })
            await request.save()
          }
          return user
        })
      }
    },
    async judge(world) {
      const { actors, trace } = world
      const at = (index: number, verb: string) =>
        trace.findIndex(label => label.startsWith(`${index}: ${verb} `) && / runs$/.test(label))
      const ending = (index: number) => {
        const found = at(index, requests[index] === 'a logout everywhere' ? 'deleteUser' : 'delete')
        return ENDS.includes(requests[index]!) && found >= 0 ? found : Number.POSITIVE_INFINITY
      }
      const first = Math.min(...requests.map((_, index) => ending(index)))
      const { sessions, store } = node(world)
      const found = (await store.get(SID)) as Record<string, unknown> | null
      const listed = (await sessions.list(42n)).length
      let live = 0
      for (const [index, { name, error, value }] of actors.entries()) {
        const isRefused = (error as { code?: string } | undefined)?.code === 'ERR_SESSION_UNAUTHENTICATED'
        assert.ok(error === undefined || (name === 'a new ID' && isRefused), `${name}: ${(error as Error)?.stack}`)
        if (name !== 'a new ID' || isRefused || value !== '42') continue
        assert.equal(ending(index), first, 'a request under way logs in again whom another one has logged out')
        live += 1
      }
      // A logout everywhere may have met what the new ID began.
      const isAmong = requests.includes('a logout everywhere') ? listed <= live : listed === live
      if (Number.isFinite(first)) assert.ok(isAmong, `${listed} sessions live of ${live} that began`)
      const login = requests.indexOf('a login of another user')
      if (login < 0 || Number.isFinite(first) || actors[login]!.value !== '42') return
      assert.deepEqual([found?.user, listed], ['43', 0], 'the login is undone')
      const save = requests.indexOf('a save')
      if (save >= 0 && actors[save]!.value === '42' && at(save, 'update') > at(login, 'replace'))
        assert.equal(found?.a, 0, 'a save of 42 is in 43')
    },
  }
}

export const LATE: readonly Scene[] = MIDDLEWARE.flatMap(middleware =>
  NAMES.flatMap((first, index) => NAMES.slice(index).map(second => lateOf([first, second], middleware))),
)
export const LATE_TRIPLES: readonly Scene[] = MIDDLEWARE.flatMap(middleware =>
  NAMES.map(third => lateOf(['a new ID', 'a logout', third], middleware)),
)
