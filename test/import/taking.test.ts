// What a taking over asks of both stores, tells, and leaves behind where it fails.
import { openVisit } from 'coatcheck/custom-server'
import { describe, expect, it, vi } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import {
  ada,
  BEGIN,
  connectSid,
  HOUR,
  MINUTE,
  OLD,
  type Options,
  replacement,
  SECRET,
  SID,
  withAda,
} from '../support/old-sessions.ts'

const user = { id: 42n, name: 'ada' }
const keepOld: Options = { adopt: { keepOld: true } }

const verbsOf = ({ store }: ReturnType<typeof withAda>) => store.calls.map(({ verb }) => verb)

describe('a taking over', () => {
  it('is one for all requests of a browser that come to a node at once', async () => {
    const world = withAda()
    await Promise.all(Array.from({ length: 10 }, () => world.one.adopting(world.one.visit(OLD))))
    expect(world.old.asked).toEqual([`get ${SID}`, `get ${SID}`, `destroy ${SID}`])
    expect(verbsOf(world)).toEqual(['read', 'create', 'read', 'create'])
  })

  it('asks for the end of no user where a visitor has none', async () => {
    const world = withAda({}, { adopt: { toLogin: () => ({ data: {} }) } })
    await world.one.adopting(world.one.visit(OLD))
    expect(verbsOf(world)).toEqual(['read', 'create', 'create'])
  })

  it('gives each call of our store a clock and an end', async () => {
    for (const options of [{}, keepOld]) {
      const world = withAda({}, options)
      await Promise.all([world.one.ask(OLD), world.two.ask(OLD)])
      world.clock.now += 20 * HOUR
      world.put()
      const { visit } = await world.one.ask(OLD)
      await visit.logOut()
      await world.one.adopting.invalidateUser(42n)
      await world.one.adopting.invalidateUser(42n)
      for (const { verb, args } of world.store.calls)
        expect(args.at(-1), verb).toEqual({ now: expect.any(Number), deadline: expect.any(Number) })
    }
  })

  it('tells that a session began, as a login does', async () => {
    const { one, events } = withAda()
    const { session } = await one.ask(OLD)
    expect(events).toContainEqual({ type: 'created', key: session?.key, userId: 42n, remembered: false })
  })

  it('keeps the times that toLogin says, and refuses those of a visitor', async () => {
    const brief = withAda({}, { adopt: { toLogin: () => ({ user, idleTimeout: '10m', absoluteTimeout: '1h' }) } })
    const { session } = await brief.one.ask(OLD)
    expect(session).toMatchObject({ expiresAt: BEGIN + 10 * MINUTE, absoluteExpiresAt: BEGIN + HOUR })
    const visitor = withAda({}, { adopt: { toLogin: () => ({ data: {}, idleTimeout: '5m' }) as never } })
    await expect(visitor.one.ask(OLD)).rejects.toThrow('"idle" is not an option')
  })

  it('begins the session of a visitor without data where toLogin names none', async () => {
    const { one } = withAda({}, { adopt: { toLogin: () => ({ data: undefined as never }) } })
    const { isAdopted, session } = await one.ask(OLD)
    expect(isAdopted).toBe(true)
    expect(session).toMatchObject({ user: null, data: {} })
  })

  it('is refused where the store holds another record under the new key', async () => {
    const world = withAda()
    world.store.next('create', faults.answers({ outcome: 'collision', ended: [] }))
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

  it('says why an old record could not be removed', async () => {
    const world = withAda()
    const lost = new Error('READONLY')
    world.old.fault = verb => (verb === 'destroy' ? lost : null)
    await world.one.ask(OLD)
    expect(world.told).toMatchObject([{ cause: { cause: lost } }])
  })

  it('clears no cookie of ours as if it were planted', async () => {
    const { one } = withAda()
    const request = { method: 'GET', secure: true, cookie: OLD, header: () => null }
    const visit = openVisit(one.sessions, request, { cookie: { clearDomains: ['example.com'] } })
    expect(await one.adopting(visit)).toBe(true)
    expect(visit.cookies.map(({ name, value }) => [name, value !== ''])).toEqual([
      ['session_id', true],
      ['connect.sid', false],
    ])
  })

  it('of what has ended since has no cookie to be sent, and waits for none', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const world = withAda()
      const first = await world.one.ask(OLD)
      expect(first.next()).toContain('session_id=')
      await world.two.sessions.destroy(first.session!)
      expect(await world.two.ask(OLD)).toMatchObject({ isAdopted: false, session: null })
      world.events.length = 0
      vi.advanceTimersByTime(60_000)
      expect(world.events).toEqual([])
    } finally {
      vi.useRealTimers()
    }
  })

  it('is found again by a node to which the secret was brought later', async () => {
    const world = withAda()
    const [before, after] = [world.node(), world.node({ secret: ['the next secret', SECRET] })]
    const first = await before.ask(OLD)
    expect((await after.ask(OLD)).session?.secret).toBe(first.session?.secret)
  })
})

describe('a response that is lost', () => {
  it('costs no write while the grace is long, and begins it anew where it is not', async () => {
    const world = withAda()
    await world.one.ask(OLD)
    world.store.calls.length = 0
    world.clock.now = BEGIN + MINUTE / 2
    await world.two.adopting(world.two.visit(OLD))
    expect(verbsOf(world)).toEqual(['read', 'read'])
    world.clock.now = BEGIN + 20 * MINUTE
    const again = await world.one.ask(OLD)
    expect((await world.one.ask(again.next())).name).toBe('ada')
    world.clock.now = BEGIN + 26 * MINUTE
    expect((await world.two.ask(OLD)).name).toBe('ada')
    world.clock.now = BEGIN + 28 * MINUTE
    expect((await world.two.ask(OLD)).name).toBeNull()
  })
})

describe('the grace of an old cookie', () => {
  it('counts from the last response that may have been the lost one', async () => {
    const world = withAda()
    await world.one.ask(OLD)
    world.clock.now = BEGIN + 1.5 * MINUTE
    const again = await world.one.ask(OLD)
    expect((await world.one.ask(again.next())).name).toBe('ada')
    world.clock.now = BEGIN + 8.5 * MINUTE - 1
    expect((await world.two.ask(OLD)).name).toBe('ada')
    world.clock.now = BEGIN + 8.5 * MINUTE
    expect((await world.two.ask(OLD)).name).toBeNull()
  })
})

describe('a lent session', () => {
  it('is moved by one request to a node that lends no more: our cookie comes, the old record goes, the grace begins', async () => {
    const world = withAda({}, keepOld)
    await world.one.ask(OLD)
    const moving = world.node()
    const { visit, isAdopted, next } = await moving.ask(OLD)
    expect(isAdopted).toBe(true)
    expect(visit.cookies.map(({ name }) => name)).toEqual(['session_id', 'connect.sid'])
    expect(world.old.records.size).toBe(0)
    expect((await moving.ask(next())).name).toBe('ada')
    world.clock.now = BEGIN + 6 * MINUTE
    expect((await moving.ask(OLD)).name).toBe('ada')
    world.clock.now = BEGIN + 8 * MINUTE
    expect((await moving.ask(OLD)).name).toBeNull()
  })

  it('that got an ID of its own can be rotated, also by the same request', async () => {
    const { one } = withAda({}, keepOld)
    const { visit } = await one.ask(OLD, { method: 'POST' })
    const own = await visit.regenerate()
    const rotated = await visit.regenerate({ grace: '1m' })
    expect([rotated?.user?.name, rotated?.secret === own?.secret]).toEqual(['ada', false])
  })

  it('that ended at an old node is a logout here, and its browser gets no cookie', async () => {
    const world = withAda({}, keepOld)
    const { session } = await world.one.ask(OLD)
    world.old.records.clear()
    const { isAdopted, name, visit } = await world.two.ask(OLD)
    expect({ isAdopted, name }).toEqual({ isAdopted: false, name: null })
    expect(visit.cookies).toEqual([])
    expect(world.events).toContainEqual({ type: 'destroyed', key: session?.key, userId: null, reason: 'logout' })
  })

  it('is no session at a node that does not know its secret, and lives on', async () => {
    const world = withAda({}, keepOld)
    const after = world.node({ ...keepOld, secret: ['the next secret', SECRET] })
    await after.ask(OLD)
    expect(await world.one.ask(OLD)).toMatchObject({ isAdopted: false, name: null })
    expect((await after.ask(OLD)).name).toBe('ada')
  })
})

describe('a request that adopting cannot judge', () => {
  it('fails as the verbs of its visit would', async () => {
    const { one } = withAda()
    const fault = Object.assign(new Error('no headers'), { code: 'ERR_OTHER' })
    const header = () => {
      throw fault
    }
    await expect(one.adopting(one.visit(OLD, { method: 'POST', header }))).rejects.toBe(fault)
  })

  it('with several old cookies is told as an event', async () => {
    const { one, events } = withAda()
    expect(await one.adopting(one.visit(`${OLD}; ${connectSid('planted')}`))).toBe(false)
    expect(events).toEqual([{ type: 'ambiguous-cookie' }])
  })

  it('with several cookies of ours takes nothing over', async () => {
    const { one, old } = withAda()
    const ours = (letter: string) => `session_id=${letter.repeat(43)}`
    expect(await one.adopting(one.visit(`${ours('A')}; ${ours('Q')}; ${OLD}`))).toBe(false)
    expect(old.asked).toEqual([])
  })

  it('of a browser that logged out in this process a moment ago takes nothing over', async () => {
    const { one, put, old } = withAda()
    const { visit, session } = await one.ask(OLD)
    await visit.logOut()
    put()
    const asked = old.asked.length
    expect(await one.adopting(one.visit(`session_id=${session!.secret}; ${OLD}`))).toBe(false)
    expect(old.asked).toHaveLength(asked)
  })
})

describe('a browser that has a session of ours', () => {
  async function both(options: Options) {
    const world = withAda({}, options)
    const { secret } = await world.one.visit(null, { method: 'POST' }).logIn({ user: { id: 7n, name: 'max' } })
    return { ...world, ours: `session_id=${secret}` }
  }

  it('loses an old cookie that a slow response of the old service brought back', async () => {
    const { two, ours } = await both({})
    const { visit, name, isAdopted } = await two.ask(`${ours}; ${OLD}`)
    expect({ name, isAdopted }).toEqual({ name: 'max', isAdopted: false })
    expect(visit.cookies.map(cookie => [cookie.name, cookie.value])).toEqual([['connect.sid', '']])
  })

  it('keeps it while nodes of the old service run: it may be a newer one', async () => {
    const { two, ours } = await both(keepOld)
    const { visit, name } = await two.ask(`${ours}; ${OLD}`)
    expect(name).toBe('max')
    expect(visit.cookies).toEqual([])
  })

  it('and logs out of it leaves an old cookie that was taken over elsewhere worth nothing', async () => {
    const { one, two, ours } = await both({})
    expect((await two.ask(OLD)).name).toBe('ada')
    const { visit, name } = await one.ask(`${ours}; ${OLD}`)
    expect(name).toBe('max')
    await visit.logOut()
    expect((await two.ask(OLD)).name).toBeNull()
  })

  it('that has expired goes on with the old one', async () => {
    const { one, ours, clock, put } = await both({})
    clock.now += 13 * HOUR
    put()
    expect(await one.ask(`${ours}; ${OLD}`)).toMatchObject({ isAdopted: true, name: 'ada' })
  })

  it('and logged out of it a moment ago is not logged in by an old cookie that comes beside it', async () => {
    const { one, ours, old } = await both({})
    await one.visit(ours, { method: 'POST' }).logOut()
    expect(await one.ask(`${ours}; ${OLD}`)).toMatchObject({ isAdopted: false, name: null })
    expect(old.asked).toEqual([])
  })
})

describe('without onError', () => {
  /** The library anew, as a process has it that was just started. */
  async function started(text: string, fault: ((verb: string) => unknown) | null) {
    vi.resetModules()
    const { SessionManager } = await import('coatcheck')
    const { openVisit } = await import('coatcheck/custom-server')
    const { sessionImporter, fromExpressSession } = await import('coatcheck/import')
    const { MemoryStore } = await import('coatcheck/stores/memory')
    const { old } = replacement()
    old.records.set(SID, text)
    old.fault = fault
    const sessions = new SessionManager({ store: new MemoryStore(), sweepInterval: false, now: () => BEGIN })
    const adopting = sessionImporter(sessions, {
      from: fromExpressSession<typeof ada>({ secret: SECRET, store: old }),
      toLogin: ({ name }) => ({ user: { id: 42n, name } }),
    })
    const warnings = vi.spyOn(process, 'emitWarning').mockReturnValue()
    const ask = (secure = true) =>
      adopting(openVisit(sessions, { method: 'GET', secure, cookie: OLD, header: () => null }))
    return { ask, old, warnings }
  }

  it('a record that cannot be removed is a warning of the process, once, with the reason', async () => {
    const { ask, old, warnings } = await started(JSON.stringify(ada), verb =>
      verb === 'destroy' ? new Error('READONLY') : null,
    )
    expect(await ask()).toBe(true)
    old.fault = null
    old.records.set(SID, '{')
    expect(await ask()).toBe(true)
    expect(warnings.mock.calls).toEqual([
      [
        'import: the record of a session that was taken over could not be removed: delete: the store of the old sessions failed',
        { type: 'CoatcheckWarning', code: 'COATCHECK_IMPORT' },
      ],
    ])
    warnings.mockRestore()
  })

  it('a record that cannot be read is told without a piece of it', async () => {
    const { ask, warnings } = await started('{"password":hunter2', null)
    expect(await ask()).toBe(false)
    expect(await ask()).toBe(false)
    expect(warnings.mock.calls.map(([message]) => message)).toEqual([
      'import: a session of the old store cannot be read: it is left alone',
    ])
    warnings.mockRestore()
  })

  it('a request without HTTPS is told once, with what to set', async () => {
    const { ask, warnings } = await started(JSON.stringify(ada), null)
    expect(await ask(false)).toBe(false)
    expect(await ask(false)).toBe(false)
    expect(warnings.mock.calls).toEqual([
      [
        expect.stringMatching(/did not come over HTTPS; say so in `secure`/),
        { type: 'CoatcheckWarning', code: 'COATCHECK_IMPORT_INSECURE' },
      ],
    ])
    warnings.mockRestore()
  })
})
