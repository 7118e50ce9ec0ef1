import { inspect } from 'node:util'
import { SessionStoreError } from 'coatcheck'
import { withCookies } from 'coatcheck/custom-server'
import { sessionImporter } from 'coatcheck/import'
import { nodeVisits } from 'coatcheck/node'
import { describe, expect, it, vi } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import {
  ada,
  BEGIN,
  connectSid,
  cookieAt,
  HOUR,
  MINUTE,
  OLD,
  type Options,
  SECRET,
  SID,
  withAda,
} from '../support/old-sessions.ts'

const VERBS = ['read', 'create', 'replace', 'delete', 'update'] as const
/** What becomes of a request whose time passes. */
const afterItsTime = async (asking: Promise<unknown>) => {
  const outcome = asking.catch((error: unknown) => error)
  // The old store answers by the real event loop.
  for (let turns = 0; turns < 20; turns += 1) {
    await vi.advanceTimersByTimeAsync(100)
    await new Promise(resolve => setImmediate(resolve))
  }
  return outcome
}
const timed = () => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
const listOf = (world: ReturnType<typeof withAda>) => world.one.sessions.list(42n)

describe('the first request with an old cookie', () => {
  it('finds the user logged in, with the data that toLogin says, and gets our cookie; the next removes the old one and its record', async () => {
    const { one, old } = withAda()
    const { session, visit, next, removed } = await one.ask(OLD)
    expect(session?.user).toEqual({ id: 42n, name: 'ada' })
    expect(session?.data).toEqual({ cart: ['tea'] })
    expect(visit.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^session_id=[\w-]{43}; Max-Age=\d+; Path=\/; HttpOnly; Secure; SameSite=Lax$/),
    ])
    expect(visit.headers.get('cache-control')).toBe('no-store')
    // Until the browser comes with our cookie, it can go back to the old service.
    expect([removed, old.records.size]).toEqual([[], 1])
    const header = next()
    const second = await one.open(header)
    expect((await second.visit.get())?.key).toBe(session?.key)
    expect(second.setCookie).toEqual([
      'connect.sid=; Max-Age=0; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; Secure; SameSite=Lax',
    ])
    expect(second.visit.headers.get('cache-control')).toBe('no-store')
    expect(old.records.size).toBe(0)
  })

  it('stores no old ID and no new one: only hashes', async () => {
    const { one, store } = withAda()
    const { session } = await one.ask(OLD)
    const written = JSON.stringify(store.calls.map(({ args }) => args.slice(0, 2)))
    expect(written).not.toContain(SID)
    expect(written).not.toContain(session!.secret)
  })

  it('asks no store where no old cookie came', async () => {
    const { one, old, store } = withAda()
    for (const cookie of [null, '', 'theme=dark', 'connect.sid=', 'xconnect.sid=1'])
      expect((await one.open(cookie)).setCookie).toEqual([])
    expect(old.asked).toEqual([])
    expect(store.calls).toEqual([])
  })

  it('carries the age over: a session begun 11 hours ago ends an hour from now', async () => {
    const { one, clock } = withAda({ loginAt: BEGIN - 11 * HOUR })
    const { session, next } = await one.ask(OLD)
    expect(session?.createdAt).toBe(BEGIN - 11 * HOUR)
    expect(session?.absoluteExpiresAt).toBe(BEGIN + HOUR)
    const cookie = next()
    for (let minutes = 20; minutes < 60; minutes += 20) {
      clock.now = BEGIN + minutes * MINUTE
      expect((await one.ask(cookie)).name).toBe('ada')
    }
    clock.now = BEGIN + HOUR
    expect((await one.ask(cookie)).name).toBeNull()
  })

  it('leaves a session alone that is older than ours may be', async () => {
    const world = withAda({ loginAt: BEGIN - 12 * HOUR })
    expect(await world.one.ask(OLD)).toMatchObject({ name: null })
    expect(world.old.records.size).toBe(1)
    expect(world.store.calls.map(({ verb }) => verb)).not.toContain('create')
  })

  it('is not fresh: no password was verified here', async () => {
    const { one } = withAda()
    const { session, visit } = await one.ask(OLD)
    expect(one.sessions.isFresh(session, '1h')).toBe(false)
    await expect(visit.requireUser({ freshWithin: '12h' })).rejects.toMatchObject({ code: 'ERR_SESSION_NOT_FRESH' })
  })
})

describe('parallel requests with one old cookie', () => {
  it('all find one session, on one node and on several', async () => {
    const world = withAda()
    const nodes = [world.one, world.two, world.node(), world.node()]
    const answers = await Promise.all(Array.from({ length: 40 }, (_, at) => nodes[at % nodes.length]!.ask(OLD)))
    expect(new Set(answers.map(({ name }) => name))).toEqual(new Set(['ada']))
    expect(new Set(answers.map(({ session }) => session?.secret)).size).toBe(1)
    expect(await listOf(world)).toHaveLength(1)
  })

  it('find the session of the other if that ran between their looks at our store and at the old one', async () => {
    const world = withAda()
    const get = world.old.get.bind(world.old)
    let other: Promise<string | undefined> | null = null
    world.old.get = (id, callback) => {
      world.old.get = get
      other = (async () => {
        const { session, next } = await world.two.ask(OLD)
        await world.two.ask(next())
        return session?.secret
      })()
      other.then(() => get(id, callback))
    }
    const first = await world.one.ask(OLD)
    expect(first.name).toBe('ada')
    expect(await other).toBe(first.session?.secret)
    expect(world.old.records.size).toBe(0)
    expect(await listOf(world)).toHaveLength(1)
  })

  it('do not meet a limit of sessions: moving ends no other session', async () => {
    const world = withAda({}, { manager: { limit: { max: 1, onLimit: 'refuse' } } })
    const login = { user: { id: 42n, name: 'ada' } }
    const { secret } = await world.one.sessions.create(login)
    expect((await world.two.ask(OLD)).name).toBe('ada')
    expect(await world.one.sessions.get(secret)).not.toBeNull()
    await expect(world.one.sessions.create(login)).rejects.toMatchObject({ code: 'ERR_SESSION_LIMIT' })
  })

  it('find the session by the old cookie as long as it lives, and nothing once it has a new ID', async () => {
    const { one, two, clock, old } = withAda()
    const cookie = (await one.ask(OLD)).next()
    for (const minutes of [0, 20, 40]) {
      clock.now = BEGIN + minutes * MINUTE
      expect((await one.ask(cookie)).name).toBe('ada')
      expect((await two.ask(OLD)).name).toBe('ada')
    }
    const { visit, session } = await one.ask(cookie)
    const next = await visit.regenerate()
    expect(next?.user).toEqual(session?.user)
    old.put(SID, { cookie: cookieAt(clock.now), ...ada })
    expect(await two.ask(OLD)).toMatchObject({ name: null, removed: ['connect.sid'] })
  })

  it('find one session while the secret of the old service is being changed', async () => {
    const world = withAda()
    const [before, after] = [world.node({ secret: [SECRET] }), world.node({ secret: ['the next secret', SECRET] })]
    const first = await after.ask(OLD)
    expect((await before.ask(OLD)).session?.secret).toBe(first.session?.secret)
    // Signed anew by the old service after the import, it finds nothing, begins nothing, and stays where it is.
    expect(await after.ask(connectSid(SID, 'the next secret'))).toMatchObject({ name: null, removed: [] })
    expect([await listOf(world), world.old.records.size]).toMatchObject([[{ key: first.session!.key }], 1])
  })
})

describe('login', () => {
  const max = { user: { id: 7n, name: 'max' } }
  const other = 'YW5vdGhlciBzZXNzaW9uIG9mIDI0IGNoYXJz'
  const strangers = { importer: { toLogin: () => null } }

  it.each([
    ['one', OLD, {}],
    ['one that no user was found for', OLD, strangers],
    ['one of two', `${OLD}; ${connectSid(other)}`, {}],
  ])('ends the old session too, %s: it is nobody once the new one is over', async (_, header, options) => {
    const world = withAda()
    world.old.put(other, { cookie: cookieAt(BEGIN), ...ada })
    const node = world.node(options)
    const { visit, next } = await node.ask(header, { method: 'POST' })
    const { key } = await visit.logIn(max)
    expect((await world.two.ask(next())).name).toBe('max')
    await world.one.sessions.revoke(7n, key)
    world.put()
    for (const cookie of [OLD, ...header.split('; ')]) expect((await world.two.ask(cookie)).name).toBeNull()
    expect(await listOf(world)).toEqual([])
  })

  it('fails while the old store is down, if it cannot say what an old cookie leads to, and begins nothing', async () => {
    const world = withAda()
    const { visit } = await world.node(strangers).ask(OLD, { method: 'POST' })
    world.old.fault = () => new Error('ECONNREFUSED')
    await expect(visit.logIn(max)).rejects.toMatchObject({ status: 503 })
    expect([visit.finish().cookies, await world.one.sessions.list(7n)]).toEqual([[], []])
  })
})

describe('logout', () => {
  it('ends the new session for good: a late request with the old cookie does not bring it back', async () => {
    const world = withAda()
    const { visit } = await world.one.ask(OLD)
    await visit.logOut()
    expect(visit.cookies.map(({ name, value }) => [name, value])).toEqual([['session_id', '']])
    expect(world.old.records.size).toBe(0)
    for (const node of [world.one, world.two])
      expect(await node.ask(OLD)).toMatchObject({ name: null, removed: ['connect.sid'] })
    expect(await listOf(world)).toEqual([])
  })

  it('fails while the old store is down, if it cannot say what an old cookie leads to, and may be repeated', async () => {
    const world = withAda()
    const { secret } = await world.one.visit(null).logIn({ user: { id: 7n, name: 'max' } })
    const { visit, name, next } = await world.one.ask(`session_id=${secret}; ${OLD}`, { method: 'POST' })
    expect(name).toBe('max')
    world.old.fault = () => new Error('ECONNREFUSED')
    await expect(visit.logOut()).rejects.toMatchObject({ status: 503 })
    expect(visit.finish().cookies).toEqual([])
    world.old.fault = null
    await (await world.one.ask(next(), { method: 'POST' })).visit.logOut()
    expect(world.old.records.size).toBe(0)
    expect((await world.two.ask(OLD)).name).toBeNull()
  })

  it('ends what another node imports between the looks at our store and at the old one', async () => {
    const world = withAda()
    const { secret } = await world.one.visit(null).logIn({ user: { id: 7n, name: 'max' } })
    const { visit } = await world.one.ask(`session_id=${secret}; ${OLD}`, { method: 'POST' })
    const get = world.old.get.bind(world.old)
    world.old.get = (id, callback) => {
      world.old.get = get
      world.two.ask(OLD).then(() => get(id, callback))
    }
    await visit.logOut()
    expect(world.old.get).toBe(get)
    expect(await listOf(world)).toEqual([])
    expect((await world.two.ask(OLD)).name).toBeNull()
  })

  it('of one whose record our store knows works while the old store is down', async () => {
    const world = withAda()
    const { next } = await world.one.ask(OLD)
    world.old.fault = () => new Error('ECONNREFUSED')
    const { visit } = await world.one.ask(next(), { method: 'POST' })
    await visit.logOut()
    world.old.fault = null
    expect((await world.two.ask(OLD)).name).toBeNull()
  })

  it('ends what every genuine old cookie leads to, imported or not, and no unsigned text stands in its way', async () => {
    const other = 'YW5vdGhlciBzZXNzaW9uIG9mIDI0IGNoYXJz'
    for (const header of [
      `connect.sid=planted; ${OLD}`,
      `${OLD}; connect.sid=s%3Aplanted.${'A'.repeat(43)}`,
      `${OLD}; ${connectSid(other)}`,
      `${connectSid(other)}; ${OLD}`,
    ])
      for (const isImported of [true, false]) {
        const world = withAda()
        const putOther = () => world.old.put(other, { cookie: cookieAt(BEGIN), userId: '43', name: 'max' })
        putOther()
        if (isImported) for (const cookie of [OLD, connectSid(other)]) await world.two.ask(cookie)
        const { visit, name } = await world.one.ask(header, { method: 'POST' })
        const isOne = !header.includes(connectSid(other))
        expect(name, header).toBe(isOne ? 'ada' : null)
        await visit.logOut()
        world.put()
        putOther()
        expect((await world.two.ask(OLD)).name, header).toBeNull()
        expect((await world.two.ask(connectSid(other))).name, header).toBe(isOne ? 'max' : null)
      }
  })

  it('writes nothing if no session is behind the old cookie', async () => {
    const world = withAda()
    const absent = connectSid('bm8gc2Vzc2lvbiBpcyBiZWhpbmQgdGhpcyBJRA')
    await (await world.one.ask(absent, { method: 'POST' })).visit.logOut()
    await (await world.one.ask(`${absent}; ${connectSid('bm8gb25l')}`, { method: 'POST' })).visit.logOut()
    expect(new Set(world.store.calls.map(({ verb }) => verb))).toEqual(new Set(['read']))
  })

  it('everywhere: importer.invalidateUser ends old sessions too that no request has come with yet', async () => {
    const world = withAda()
    await world.one.importer.invalidateUser(42n)
    expect((await world.two.ask(OLD)).name).toBeNull()
    expect((await world.one.ask(OLD)).name).toBeNull()
    const later = 'bGF0ZXIgdGhhbiB0aGUgbG9nLW91dCBldg'
    world.clock.now = BEGIN + HOUR
    world.old.put(later, { cookie: cookieAt(BEGIN + HOUR), ...ada, loginAt: BEGIN + 30 * MINUTE })
    expect((await world.one.ask(connectSid(later))).name).toBe('ada')
  })

  it('holds after invalidateAll too, as does a logout everywhere: what says so is no session, and stays', async () => {
    const world = withAda()
    const { visit } = await world.one.ask(OLD)
    await visit.logOut()
    const other = 'YW5vdGhlciBzZXNzaW9uIG9mIDI0IGNoYXJz'
    world.old.put(other, { cookie: cookieAt(BEGIN), userId: '43', name: 'max' })
    await world.one.importer.invalidateUser(43n)
    await world.two.sessions.invalidateAll()
    world.old.put(SID, { cookie: cookieAt(BEGIN), ...ada })
    expect((await world.two.ask(OLD)).name).toBeNull()
    expect((await world.one.ask(connectSid(other))).name).toBeNull()
    expect(await world.one.sessions.count()).toBe(0)
  })

  it('with a password version: an old session of an older password is refused for good', async () => {
    const toLogin = () => ({ user: { id: 42n, name: 'ada', passwordVersion: 1 } })
    const world = withAda({}, { importer: { toLogin } })
    await world.one.sessions.invalidateUser(42n, { minPasswordVersion: 2 })
    expect((await world.two.ask(OLD)).name).toBeNull()
    world.clock.now = BEGIN + 25 * HOUR
    world.old.put(SID, { cookie: cookieAt(world.clock.now), ...ada })
    expect((await world.two.ask(OLD)).name, 'the minimum password version is forgotten by now').toBeNull()
  })
})

it('a logout everywhere, before each of whose calls another node imports the session, leaves none', async () => {
  for (let stop = 0; ; stop += 1) {
    const world = withAda()
    let calls = 0
    const beside = async (proceed: () => Promise<any>) => {
      if (calls++ === stop) await world.two.ask(OLD)
      return proceed()
    }
    for (const verb of VERBS) world.store.every(verb, beside)
    await world.one.importer.invalidateUser(42n)
    for (const verb of VERBS) world.store.every(verb, null)
    if (calls <= stop) break
    expect(await world.one.sessions.list(42n), `call ${stop}`).toEqual([])
    expect((await world.two.ask(OLD)).name, `call ${stop}`).toBeNull()
  }
})

describe('an old cookie', () => {
  it('without HTTPS finds no user, and the old record stays for the service that can be reached', async () => {
    const { one, old } = withAda()
    for (let times = 0; times < 2; times += 1) {
      const { name, visit, removed } = await one.ask(OLD, { secure: false })
      expect([name, visit.cookies, removed]).toEqual([null, [], []])
    }
    expect(old.records.size).toBe(1)
    expect((await one.ask(OLD)).name).toBe('ada')
  })

  it('in an unsafe request of another origin the visit refuses', async () => {
    const { one, old } = withAda()
    const header = (name: string) => (name === 'sec-fetch-site' ? 'cross-site' : null)
    const { visit, setCookie } = await one.open(OLD, { method: 'POST', header })
    for (const refused of [() => visit.get(), () => visit.logOut()])
      await expect(refused()).rejects.toMatchObject({ code: 'ERR_SESSION_CROSS_ORIGIN' })
    expect([setCookie, visit.cookies, old.records.size]).toEqual([[], [], 1])
    expect((await one.ask(OLD)).name, 'it has logged nobody out').toBe('ada')
  })
})

describe('a request', () => {
  it('is answered in time if toLogin never settles, and the next one finds it well again', async () => {
    let isWell = false
    const toLogin = (data: any) => (isWell ? { user: { id: 42n, name: data.name } } : new Promise<never>(() => {}))
    timed()
    const { one } = withAda({}, { importer: { toLogin: toLogin as never } })
    const error = await afterItsTime(one.ask(OLD))
    expect(error).toMatchObject({ status: 503, message: expect.stringContaining('toLogin') })
    isWell = true
    expect((await one.ask(OLD)).name).toBe('ada')
  })

  it('of a user of ours asks the old store once in five minutes', async () => {
    const { one, old } = withAda({ userId: null })
    const own = await one.sessions.logIn(null, { user: { id: 7n, name: 'max' } })
    const asked = old.asked.length
    for (let n = 0; n < 10; n += 1) await one.open(`${OLD}; session_id=${own.secret}`)
    expect(old.asked.length - asked).toBe(1)
  })

  it('that fails in the old store shows no old ID in its error', async () => {
    const { one, old } = withAda()
    old.fault = () =>
      Object.assign(new Error(`no answer for ${SID}`), { sql: SID, command: { args: [SID] }, code: 'X' })
    const error = await one.ask(OLD).catch((error: unknown) => error)
    expect(error).toMatchObject({ status: 503, cause: { code: 'X', message: 'no answer for …' } })
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(SID)
  })
})

describe('old records', () => {
  const taken = async (record: object, options?: Options) => {
    const world = withAda(record, options)
    return { ...world, answer: await world.one.ask(OLD) }
  }

  it('of a user that the application does not know are left alone, and no user is logged in', async () => {
    const { answer, old, store } = await taken({ userId: null })
    expect(answer).toMatchObject({ name: null })
    expect(answer.visit.cookies).toEqual([])
    expect(old.records.size).toBe(1)
    expect(store.calls.map(({ verb }) => verb)).toEqual(['read'])
  })

  it('of a visitor go on as an anonymous session with the data that toLogin says', async () => {
    const toLogin = ({ cart }: { cart?: unknown }) => ({ data: { cart: cart as string[] } })
    const { answer, one, old } = await taken({ userId: null }, { importer: { toLogin } })
    expect(answer.session).toMatchObject({ user: null, data: { cart: ['tea'] } })
    expect((await one.ask(answer.next())).session?.data).toEqual({ cart: ['tea'] })
    expect(old.records.size).toBe(0)
    const login = await answer.visit.logIn({ user: { id: 42n, name: 'ada' }, data: ({ cart = [] }) => ({ cart }) })
    expect(login.data).toEqual({ cart: ['tea'] })
  })

  it('for which toLogin throws, or says what is no login, fail the request and change nothing', async () => {
    for (const [toLogin, message] of [
      [
        () => {
          throw new Error('no such table: users')
        },
        'no such table: users',
      ],
      [() => 42, 'toLogin: expected { user: { id, name }, data }, { data } or null, got 42'],
      [() => ({}), 'toLogin: expected { user: { id, name }, data }, { data } or null, got an object'],
      [() => ({ user: { id: 'ada', name: 'ada' } }), 'user ID: expected a bigint'],
      [
        () => ({ user: { id: 42, name: 'ada' }, createdAt: 'today' }),
        'sessionImporter: createdAt: expected epoch milliseconds',
      ],
      [() => ({ user: { id: 42, name: 'ada' }, ttl: 1 }), 'toLogin: "ttl" is not an option'],
      [() => ({ user: { id: 42, name: 'ada' } }), 'user.passwordVersion: expected the version'],
    ] as const) {
      const manager = message.startsWith('user.') ? { getPasswordVersion: () => 1 } : {}
      const world = withAda({}, { manager, importer: { toLogin: toLogin as never } })
      await expect(world.one.ask(OLD)).rejects.toThrow(message)
      expect(world.old.records.size).toBe(1)
      expect(world.store.calls.map(({ verb }) => verb)).toEqual(['read'])
    }
  })
})

describe('an outage is not a logout', () => {
  it('of the old store: the request is refused with 503, the cookies stay, and it works afterwards', async () => {
    for (const fault of [() => new Error('ECONNREFUSED'), () => 'no answer'] as const) {
      timed()
      const world = withAda()
      world.old.fault = fault
      const error = await afterItsTime(world.one.open(OLD))
      expect(error).toBeInstanceOf(SessionStoreError)
      expect(error).toMatchObject({ status: 503, operation: 'read', outcome: 'not-applied' })
      world.old.fault = null
      expect((await world.node().ask(OLD)).name).toBe('ada')
    }
  })

  it('of the old store does not concern those who have a session of ours, or were imported', async () => {
    const world = withAda()
    const first = await world.one.ask(OLD)
    world.old.fault = () => new Error('ECONNREFUSED')
    expect((await world.two.ask(first.next())).name).toBe('ada')
    expect((await world.two.ask(`${first.next()}; ${OLD}`)).name).toBe('ada')
    expect((await world.two.ask(OLD)).name).toBe('ada')
  })

  it('of our store while the session gets a new ID: both cookies still lead to it', async () => {
    const world = withAda()
    const { next } = await world.one.ask(OLD)
    const cookie = next()
    const { visit: rotating } = await world.one.open(cookie)
    world.store.next('replace', faults.rejectsAfter)
    await expect(rotating.regenerate({ grace: '1m' })).rejects.toThrow(SessionStoreError)
    for (const each of [OLD, cookie, withCookies(cookie, rotating.cookies)])
      expect((await world.one.ask(each)).name).toBe('ada')
  })

  it('of our store, at each step: the old cookie goes with an answer that knows the session, or stays', async () => {
    let removals = 0
    for (let stop = 0; stop < 6; stop += 1) {
      const world = withAda()
      const cookies = (await world.one.ask(OLD)).next()
      let calls = 0
      for (const verb of VERBS)
        world.store.every(verb, proceed => (calls++ < stop ? proceed() : Promise.reject(new Error('down'))))
      const opened = await world.two.open(cookies).catch(() => null)
      if (opened === null || opened.setCookie.length === 0) continue
      removals += 1
      expect(calls, 'no call of this request has failed').toBeLessThanOrEqual(stop)
    }
    expect(removals).toBeGreaterThan(0)
  })

  it.each(['create', 'replace'] as const)(
    'whose beginning got no answer from the store, by %s, is in no list: no browser can have it',
    async verb => {
      const world = withAda()
      world.store.every(verb, async proceed => {
        world.store.every(verb, null)
        await proceed()
        throw new Error('the answer is lost')
      })
      await expect(world.one.ask(OLD)).rejects.toMatchObject({ outcome: 'unknown' })
      expect(await listOf(world)).toEqual([])
      expect((await world.two.ask(OLD)).name).toBe('ada')
    },
  )

  it('of our store that is sure to have refused the note leaves no session behind', async () => {
    const world = withAda()
    world.store.every('create', async (proceed, [record]) => {
      if (record.kind !== 'remember') return proceed()
      throw new SessionStoreError('create', 'not-applied', 'create: the store is full')
    })
    await expect(world.one.ask(OLD)).rejects.toMatchObject({ outcome: 'not-applied' })
    expect(await listOf(world)).toEqual([])
  })

  it.each(['before', 'after'] as const)(
    'a process that dies %s any call of a store leaves one session, whose it was at the import, until a logout',
    async when => {
      let isDead = true
      for (let step = 0; isDead; step += 1) {
        const world = withAda()
        let calls = 0
        isDead = false
        let die!: () => void
        const dying = new Promise<void>(resolve => {
          die = resolve
        })
        const run = async (proceed: () => Promise<unknown>) => {
          if (calls++ < step) return proceed()
          isDead = true
          if (when === 'after') await proceed()
          die()
          return new Promise(() => {})
        }
        for (const verb of VERBS) world.store.every(verb, run)
        const get = world.old.get.bind(world.old)
        world.old.get = (sid, callback) =>
          void run(() => new Promise<void>(resolve => get(sid, (...answer) => resolve(callback(...answer)))))
        await Promise.race([dying, world.one.ask(OLD).catch(() => {})])
        world.old.get = get
        for (const verb of VERBS) world.store.every(verb, null)

        world.old.put(SID, { cookie: cookieAt(BEGIN), userId: '43', name: 'max' })
        const first = await world.two.ask(OLD)
        expect(['ada', 'max'], `died at call ${step}`).toContain(first.name)
        world.put()
        for (const cookie of [OLD, first.next()]) {
          const again = await world.node().ask(cookie)
          expect([again.name, again.session?.key], `died at call ${step}`).toEqual([first.name, first.session?.key])
        }
        await first.visit.logOut()
        world.put()
        for (const cookie of [OLD, first.next()])
          expect((await world.node().ask(cookie)).name, `died at call ${step}`).toBeNull()
      }
    },
  )
})

describe('options that cannot be', () => {
  const { sessions, importer } = withAda().one
  const reader = { cookie: 'token', read: () => null }
  const make =
    (options: object, manager: unknown = sessions) =>
    () =>
      sessionImporter(manager as never, options as never)
  it.each<readonly [string, () => unknown]>([
    ['expected a SessionManager', make({}, {})],
    ['from: expected a reader such as fromExpressSession', make({})],
    ...[{ cookie: 'token' }, { read: () => null }, null].map(
      from => ['from: expected a reader such as fromExpressSession', make({ from, toLogin: () => null })] as const,
    ),
    ['toLogin', make({ from: reader })],
    ['sessionImporter: "keep" is not an option', make({ from: reader, toLogin: () => null, keep: true })],
    ...[{}, null, undefined, nodeVisits(withAda().one.sessions), nodeVisits(sessions.namespace('t'))].map(
      wrong => ['expected the visits of the same SessionManager', () => importer.middleware(wrong as never)] as const,
    ),
  ])('are refused by name: %s', (message, make) => {
    expect(make).toThrow(message)
  })
})
