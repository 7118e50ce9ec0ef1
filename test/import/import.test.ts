// What an import asks of both stores, tells, and leaves behind where it fails; and browsers with several cookies.
import { openVisit } from 'coatcheck/custom-server'
import { describe, expect, it, vi } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { BEGIN, connectSid, cookieAt, HOUR, MINUTE, OLD, SID, withAda } from '../support/old-sessions.ts'
import { onlyHost } from '../support/only-host.ts'

const user = { id: 42n, name: 'ada' }

const verbsOf = ({ store }: ReturnType<typeof withAda>) => store.calls.map(({ verb }) => verb)

describe('an import', () => {
  it('is one for all requests of a browser that come to a node at once', async () => {
    const world = withAda()
    await Promise.all(Array.from({ length: 10 }, () => world.one.open(OLD)))
    expect(world.old.asked).toEqual([`get ${SID}`, `get ${SID}`])
    // The note; the session, and the forward to it; whether the user's sessions were ended; the note; and both once more.
    expect(verbsOf(world)).toEqual(['read', 'create', 'replace', 'read', 'create', 'read', 'read'])
  })

  it('asks for the end of no user where a visitor has none', async () => {
    const world = withAda({}, { importer: { toLogin: () => ({ data: {} }) } })
    await world.one.open(OLD)
    expect(verbsOf(world)).toEqual(['read', 'create', 'replace', 'create', 'read', 'read'])
  })

  it('gives each call of our store a clock and an end', async () => {
    const world = withAda()
    await Promise.all([world.one.ask(OLD), world.two.ask(OLD)])
    world.clock.now += 20 * HOUR
    world.put()
    const { visit } = await world.one.ask(OLD)
    await visit.logOut()
    await world.one.importer.invalidateUser(42n)
    await world.one.importer.invalidateUser(42n)
    for (const { verb, args } of world.store.calls)
      expect(args.at(-1), verb).toEqual({ now: expect.any(Number), deadline: expect.any(Number) })
  })

  it('tells that a session began, as a login does', async () => {
    const { one, events } = withAda()
    const { session } = await one.ask(OLD)
    expect(events).toContainEqual({ type: 'created', key: session?.key, userId: 42n, remembered: false })
  })

  it('keeps the times that toLogin says, and refuses those of a visitor', async () => {
    const brief = withAda({}, { importer: { toLogin: () => ({ user, idleTimeout: '10m', absoluteTimeout: '1h' }) } })
    const { session } = await brief.one.ask(OLD)
    expect(session).toMatchObject({ expiresAt: BEGIN + 10 * MINUTE, absoluteExpiresAt: BEGIN + HOUR })
    const visitor = withAda({}, { importer: { toLogin: () => ({ data: {}, idle: '5m' }) as never } })
    await expect(visitor.one.ask(OLD)).rejects.toThrow('"idle" is not an option')
  })

  it('begins the session of a visitor without data where toLogin names none', async () => {
    const { one } = withAda({}, { importer: { toLogin: () => ({ data: undefined as never }) } })
    const { session } = await one.ask(OLD)
    expect(session).toMatchObject({ user: null, data: {} })
  })

  it('is refused where the store holds another record under the new key', async () => {
    const world = withAda()
    world.store.next('create', faults.answers('collision'))
    await expect(world.one.ask(OLD)).rejects.toThrow()
    expect(world.old.records.size).toBe(1)
    expect((await world.one.ask(OLD)).name).toBe('ada')
  })

  it('leaves no session behind where the old store fails in the middle', async () => {
    const world = withAda()
    world.store.next('create', async proceed => {
      world.old.fault = () => new Error('ECONNREFUSED')
      return proceed()
    })
    await expect(world.one.ask(OLD)).rejects.toMatchObject({ status: 503 })
    expect(await world.one.sessions.list(42n)).toEqual([])
  })

  it('begins nothing that lives where the old service ends its session in the middle', async () => {
    const world = withAda()
    world.store.next('create', async proceed => {
      world.old.records.clear()
      return proceed()
    })
    expect(await world.one.ask(OLD)).toMatchObject({ name: null, removed: [] })
    expect([await world.one.sessions.list(42n), world.events]).toEqual([[], []])
  })

  it('says why an old record could not be removed', async () => {
    const world = withAda()
    const lost = new Error('READONLY')
    world.old.fault = verb => (verb === 'destroy' ? lost : null)
    await world.one.ask((await world.one.ask(OLD)).next())
    expect(world.told).toMatchObject([{ operation: 'delete', cause: lost }])
  })

  it('of what has ended since has no cookie to be sent, and waits for none', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const world = withAda()
    const first = await world.one.ask(OLD)
    expect(first.next()).toContain('session_id=')
    await world.two.sessions.destroy(first.session!)
    expect(await world.two.ask(OLD)).toMatchObject({ session: null })
    world.events.length = 0
    vi.advanceTimersByTime(60_000)
    expect(world.events).toEqual([])
  })
})

describe('a response that is lost', () => {
  it('costs no write: each that follows brings our cookie, and the old one stays until that comes', async () => {
    const world = withAda()
    const first = await world.one.ask(OLD)
    world.store.calls.length = 0
    for (const minutes of [1, 2]) {
      world.clock.now = BEGIN + minutes * MINUTE
      const { session, visit, removed } = await world.two.ask(OLD)
      expect(session?.secret).toBe(first.session?.secret)
      expect([visit.cookies.map(({ name }) => name), removed]).toEqual([['session_id'], []])
    }
    expect(new Set(verbsOf(world))).toEqual(new Set(['read']))
    for (const lifetime of ['absolute', 'browser'] as const) {
      const options = { cookie: { lifetime, name: 'sid' } }
      const open = (cookie: string | null) =>
        openVisit(world.one.sessions, { method: 'GET', secure: true, cookie, header: onlyHost }, options)
      const { visit } = await world.one.importer.import(OLD, header => open(header), options)
      expect((await visit.get())?.secret).toBe(first.session?.secret)
      expect(visit.cookies.map(({ name }) => name)).toEqual(['sid'])
    }
  })
})

describe('a record of the old service', () => {
  it('that gets another user after the import is followed by nothing: the session stays whose it was', async () => {
    const world = withAda()
    const { next } = await world.one.ask(OLD)
    const max = () => world.old.put(SID, { cookie: cookieAt(world.clock.now), userId: '43', name: 'max' })
    max()
    expect((await world.two.ask(OLD)).name).toBe('ada')
    const cookie = next()
    expect((await world.two.ask(cookie)).name).toBe('ada')
    max()
    expect((await world.one.ask(OLD)).name).toBe('ada')
    const { visit } = await world.one.ask(cookie)
    await visit.logOut()
    max()
    expect((await world.two.ask(OLD)).name).toBeNull()
    expect(await world.one.sessions.list(43n)).toEqual([])
  })

  it('that gets its user before the import is that of this user, whoever it was', async () => {
    const world = withAda({ userId: null })
    expect((await world.one.ask(OLD)).name).toBeNull()
    world.old.put(SID, { cookie: cookieAt(BEGIN), userId: '43', name: 'max' })
    expect((await world.two.ask(OLD)).name).toBe('max')
  })
})

describe('a request that cannot be judged', () => {
  it('fails as the methods of its visit do', async () => {
    const { one } = withAda()
    const fault = new Error('no headers')
    const header = (name: string) => {
      if (name === 'host') return 'app.example.com'
      throw fault
    }
    const { visit } = await one.open(OLD, { method: 'POST', header })
    await expect(visit.get()).rejects.toBe(fault)
  })

  it('with five genuine old cookies is told as an event, and neither store is asked', async () => {
    const { one, events, store, old } = withAda()
    const planted = ['a', 'b', 'c', 'd'].map(sid => connectSid(sid))
    for (const cookies of [
      [OLD, ...planted],
      [...planted, OLD],
    ]) {
      events.length = 0
      expect((await one.ask(cookies.join('; '))).name).toBeNull()
      expect(events).toEqual([{ type: 'ambiguous-cookie' }])
    }
    expect([old.asked, store.calls]).toEqual([[], []])
    // One for each scope that a cookie has had is no attack.
    expect((await one.ask([...planted.slice(1), OLD].join('; '))).name).toBe('ada')
  })

  it('with live cookies of ours of two users imports nothing', async () => {
    const { one, old, events } = withAda()
    const ours = async (id: bigint) => `session_id=${(await one.sessions.create({ user: { id, name: '' } })).secret}`
    const cookies = `${await ours(7n)}; ${await ours(8n)}; ${OLD}`
    events.length = 0
    expect((await one.ask(cookies)).name).toBeNull()
    expect([old.asked, events]).toEqual([[], [{ type: 'ambiguous-cookie' }]])
  })

  it('with dead cookies of ours imports as ever', async () => {
    const { one } = withAda()
    const ours = (letter: string) => `session_id=${letter.repeat(43)}`
    expect((await one.ask(`${ours('A')}; ${ours('Q')}; ${OLD}`)).name).toBe('ada')
  })

  it('of a browser that logged out a moment ago imports nothing', async () => {
    const { one, put } = withAda()
    const { visit, session } = await one.ask(OLD)
    await visit.logOut()
    put()
    expect(await one.ask(`session_id=${session!.secret}; ${OLD}`)).toMatchObject({
      name: null,
      removed: ['connect.sid'],
    })
  })
})

describe('a browser with two genuine old cookies, as after a change of their domain', () => {
  const OTHER = 'QW5vdGhlciBvbGQgSUQgb2YgMjQgYnl0ZXM'
  const other = connectSid(OTHER)
  const orders = [`${OLD}; ${other}`, `${other}; ${OLD}`]

  it('is logged in by the only live one, on each node, before and after the import', async () => {
    for (const cookies of orders) {
      const { one, two, events, clock } = withAda()
      const first = await one.ask(cookies)
      expect([first.name, first.removed]).toEqual(['ada', []])
      clock.now += MINUTE
      expect((await two.ask(cookies)).session?.key).toBe(first.session!.key)
      expect((await two.ask(first.next())).removed).toEqual(['connect.sid'])
      expect(events).not.toContainEqual({ type: 'ambiguous-cookie' })
    }
  })

  it('is logged in by the later login of one user, and a logout ends both', async () => {
    for (const cookies of orders) {
      const { one, two, old, clock } = withAda({ loginAt: BEGIN - HOUR })
      old.put(OTHER, { cookie: cookieAt(clock.now), userId: '42', name: 'ada', cart: ['hat'], loginAt: BEGIN - MINUTE })
      const { session, visit } = await one.ask(cookies)
      expect([session?.data, session?.createdAt]).toEqual([{ cart: ['hat'] }, BEGIN - MINUTE])
      await visit.logOut()
      expect([await one.sessions.list(42n), old.records.size]).toEqual([[], 0])
      for (const each of [OLD, other, cookies]) expect((await two.ask(each)).name).toBeNull()
    }
  })

  it('has no session where they are of two users, and a login ends both', async () => {
    for (const cookies of orders) {
      const { one, two, old, clock, events } = withAda()
      old.put(OTHER, { cookie: cookieAt(clock.now), userId: '7', name: 'max' })
      const { name, visit } = await one.ask(cookies)
      expect([name, events]).toContainEqual(null)
      expect(events.filter(({ type }) => type === 'ambiguous-cookie')).toHaveLength(1)
      await visit.logIn({ user: { id: 9n, name: 'eve' } })
      expect([await one.sessions.list(42n), await one.sessions.list(7n), old.records.size]).toEqual([[], [], 0])
      for (const each of [OLD, other, cookies]) expect((await two.ask(each)).name).toBeNull()
    }
  })

  it('loses both as soon as neither leads anywhere', async () => {
    const { one, two } = withAda()
    const { visit } = await one.ask(OLD)
    await visit.logOut()
    expect(await two.ask(orders[0]!)).toMatchObject({ name: null, removed: ['connect.sid'] })
  })
})

describe('a browser that has a session of ours', () => {
  async function both() {
    const world = withAda()
    const { secret } = await world.one.visit(null, { method: 'POST' }).logIn({ user: { id: 7n, name: 'max' } })
    return { ...world, ours: `session_id=${secret}` }
  }

  it('loses an old cookie that a slow response of the old service brought back, or whose session is over', async () => {
    const { one, two, put, ours, old } = await both()
    await one.ask(OLD)
    put()
    expect(await two.ask(`${ours}; ${OLD}`)).toMatchObject({ name: 'max', removed: ['connect.sid'] })
    expect(old.records.size).toBe(0)
    const absent = connectSid('bm8gc2Vzc2lvbiBpcyBiZWhpbmQgdGhpcyBJRA')
    expect(await two.ask(`${ours}; ${absent}`)).toMatchObject({ name: 'max', removed: ['connect.sid'] })
  })

  it('keeps one that a logout would have to end, and logs out of both', async () => {
    const { two, ours, old } = await both()
    const { name, removed, visit } = await two.ask(`${ours}; ${OLD}`)
    expect([name, removed, old.records.size]).toEqual(['max', [], 1])
    await visit.logOut()
    expect(old.records.size).toBe(0)
    expect((await two.ask(OLD)).name).toBeNull()
  })

  it('and logs out of it leaves an old cookie that was imported elsewhere worth nothing', async () => {
    const { one, two, ours } = await both()
    expect((await two.ask(OLD)).name).toBe('ada')
    const { visit, name } = await one.ask(`${ours}; ${OLD}`)
    expect(name).toBe('max')
    await visit.logOut()
    expect((await two.ask(OLD)).name).toBeNull()
  })

  it('that has expired goes on with the old one', async () => {
    const { one, ours, clock, put } = await both()
    clock.now += 13 * HOUR
    put()
    expect(await one.ask(`${ours}; ${OLD}`)).toMatchObject({ name: 'ada' })
  })
})
