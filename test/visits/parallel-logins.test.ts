// Logins that one browser sends in parallel, step by step; parallel.test.ts has them in every order.
import { setImmediate as turn } from 'node:timers/promises'
import { SessionManager, type SessionOptions } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it, vi } from 'vitest'
import { BarrierStore, faults } from '../support/barrier-store.ts'
import { type AnyVisit, jar } from '../support/edge-service.ts'
import { MINUTE, testClock } from '../support/test-clock.ts'

type Data = Record<string, unknown>
type Login = Parameters<AnyVisit['logIn']>[0]

const ADA = { id: 42n, name: 'ada' }
const MAX = { id: 7n, name: 'max' }

/** A browser that has an anonymous session, or only an ID that leads nowhere. */
async function browser(options: Partial<SessionOptions<Data, 'bigint', Data>> & { isDead?: boolean } = {}) {
  const { isDead = false, ...more } = options
  const store = BarrierStore.over(new MemoryStore())
  const clock = testClock()
  const events: string[] = []
  const sessions = new SessionManager<Data>({
    store,
    now: clock,
    sweepInterval: false,
    rememberFor: '30d',
    onEvent: ({ type }) => events.push(type),
    ...more,
  })
  const open = (cookie: string | null, request: { canSend?: () => boolean } = {}): AnyVisit =>
    openVisit(sessions, { method: 'POST', secure: true, header: () => null, cookie, ...request }) as never
  const first = open(null)
  await first.create({ data: { cart: ['tea'] } })
  const cookie = isDead ? `session_id=${'a'.repeat(43)}` : jar(first.headers.getSetCookie())
  store.reset()
  return { store, clock, sessions, events, cookie, open, visit: (request = {}) => open(cookie, request) }
}

const live = async ({ sessions }: Awaited<ReturnType<typeof browser>>, user = ADA) =>
  (await sessions.list(user.id)).map(({ key }) => key)

describe('two logins with the same cookies', () => {
  it('get one session, whether the first has answered or not', async () => {
    for (const isDead of [false, true])
      for (const isSent of [false, true]) {
        const made = await browser({ isDead })
        const [one, two] = [made.visit(), made.visit()]
        const first = await one.logIn({ user: ADA })
        if (isSent) expect(one.headers.getSetCookie()).toHaveLength(1)
        expect((await two.logIn({ user: ADA })).key).toBe(first.key)
        expect(jar(two.headers.getSetCookie())).toBe(`session_id=${first.secret}`)
        expect(await live(made)).toEqual([first.key])
      }
  })

  it('take turns where they come at once, and are one session then too', async () => {
    const made = await browser()
    const sessions = await Promise.all(
      [made.visit(), made.visit(), made.visit()].map(each => each.logIn({ user: ADA })),
    )
    expect(new Set(sessions.map(({ key }) => key))).toEqual(new Set(await live(made)))
    expect(made.events.filter(type => type === 'replaced' || type === 'regenerated').length).toBeLessThanOrEqual(1)
  })

  it('are each of their own without any cookie: they may be of two people', async () => {
    const made = await browser()
    const [one, two] = [await made.open(null).logIn({ user: ADA }), await made.open(null).logIn({ user: ADA })]
    expect(one.key).not.toBe(two.key)
    expect(await live(made)).toHaveLength(2)
  })

  it('do not wait for those of other browsers, with another cookie or with none', async () => {
    const made = await browser()
    for (const cookie of [null, `session_id=${'b'.repeat(43)}`]) {
      const pausing = made.store.pause('create', 'before')
      const slow = made.open(cookie).logIn({ user: ADA })
      await pausing.reached
      await made.open(null).logIn({ user: MAX })
      await made.open(`session_id=${'c'.repeat(43)}`).logIn({ user: MAX })
      pausing.resume()
      expect((await slow).user.name).toBe('ada')
    }
  })

  it('fail where the one before takes all of storeTimeout, and nothing is written', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    try {
      const made = await browser({ storeTimeout: '50ms' })
      const replacing = made.store.pause('replace', 'before')
      const login = { user: ADA, remember: true }
      const both = Promise.allSettled([made.visit().logIn(login), made.visit().logIn(login)])
      await replacing.reached
      await vi.advanceTimersByTimeAsync(30)
      // The token of the first has a storeTimeout of its own: the second waits no longer than its own.
      const issuing = made.store.pause('create', 'before')
      replacing.resume()
      await issuing.reached
      await vi.advanceTimersByTimeAsync(50)
      const [slow, late] = (await both).map(each => (each as PromiseRejectedResult).reason)
      expect(slow).toMatchObject({ code: 'ERR_SESSION_STORE', operation: 'create' })
      expect(late).toMatchObject({ code: 'ERR_SESSION_STORE', operation: 'replace', outcome: 'not-applied' })
      expect(String(late.cause?.message ?? late.message)).toMatch(/earlier logins of this browser/)
      expect(made.store.counts().replace).toBe(1)
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('a login that differs from the one before', () => {
  const base = { user: ADA } as const
  const differing: [string, Login, Login][] = [
    ['in its user', base, { user: MAX }],
    ['in its user, of the same name', base, { user: { ...MAX, name: ADA.name } }],
    ['in its name', base, { user: { ...ADA, name: 'Ada L.' } }],
    ['in its password version', { user: { ...ADA, passwordVersion: 1 } }, { user: { ...ADA, passwordVersion: 2 } }],
    ['since it has a password version', base, { user: { ...ADA, passwordVersion: 1 } }],
    ['since it has no password version', { user: { ...ADA, passwordVersion: 1 } }, base],
    ['in its data', { ...base, data: { n: 1 } }, { ...base, data: { n: 2 } }],
    ['since it has data', base, { ...base, data: { n: 2 } }],
    ['since it has no data', { ...base, data: { n: 1 } }, base],
    ['since it is to be remembered', base, { ...base, remember: true }],
    ['since it is not to be remembered', { ...base, remember: true }, base],
    ['in when the password was verified', base, { ...base, verifiedAt: 1_700_000_000_000 }],
    ['in its idle timeout', base, { ...base, idleTimeout: '10m' }],
    ['in its absolute timeout', base, { ...base, absoluteTimeout: '1h' }],
  ]
  it.each(differing)('%s has a session of its own, and ends the one whose cookie was not sent', async (_, a, b) => {
    const made = await browser()
    const first = await made.visit().logIn(a)
    const second = await made.visit().logIn(b)
    expect(second.key).not.toBe(first.key)
    expect(await made.sessions.get(first.secret)).toBeNull()
    expect((await made.sessions.get(second.secret))?.key).toBe(second.key)
  })

  it.each(differing)('%s leaves the one that a browser may hold', async (_, a, b) => {
    const made = await browser()
    const one = made.visit()
    const first = await one.logIn(a)
    expect(one.headers.getSetCookie().length).toBeGreaterThan(0)
    const second = await made.visit().logIn(b)
    expect(second.key).not.toBe(first.key)
    expect(await made.sessions.get(first.secret)).not.toBeNull()
    expect(await made.sessions.get(second.secret)).not.toBeNull()
  })

  it('is the same login where it asks for the same of all that', async () => {
    const made = await browser()
    const asked = {
      user: { ...ADA, passwordVersion: 3 },
      data: { n: 1 },
      remember: true,
      verifiedAt: 1_700_000_000_000,
      idle: '10m',
      absolute: '1h',
    } as const
    const one = made.visit()
    const two = made.visit()
    const first = await one.logIn(asked)
    expect((await two.logIn({ ...asked, data: { n: 1 } })).key).toBe(first.key)
    expect(two.headers.getSetCookie()).toEqual(one.headers.getSetCookie())
    expect(await made.store.inner.listUser('42', 'remember', { now: testClock()() })).toHaveLength(1)
  })

  it('ends the token of the one before with its session', async () => {
    const made = await browser()
    const one = made.visit()
    await one.logIn({ user: ADA, remember: true })
    await made.visit().logIn({ user: ADA })
    expect(await made.store.inner.listUser('42', 'remember', { now: testClock()() })).toEqual([])
    expect(await live(made)).toHaveLength(1)
  })

  it('succeeds where the one before cannot be ended', async () => {
    const made = await browser()
    await made.visit().logIn({ user: ADA })
    made.store.next('delete', faults.rejects)
    expect((await made.visit().logIn({ user: MAX })).user.name).toBe('max')
  })

  it('and is wrong in itself ends nothing', async () => {
    const made = await browser()
    const first = await made.visit().logIn({ user: ADA })
    for (const wrong of [
      { user: null },
      {},
      { user: 'ada' },
      { user: { id: -1, name: 'ada' } },
      { user: { id: 42n } },
      { user: { ...ADA, passwordVersion: -1 } },
      { user: ADA, verifiedAt: -1 },
      { user: ADA, idle: '1s' },
      { user: ADA, absolute: 'soon' },
    ])
      await expect(made.visit().logIn(wrong as never)).rejects.toThrow(TypeError)
    expect(await live(made)).toEqual([first.key])
  })
})

describe('the data of two logins', () => {
  const carry = { user: ADA, data: ({ cart }: any) => ({ cart, n: 1 }) } as Login

  it('that carry over the same are one session, with what was carried over once', async () => {
    const made = await browser()
    const first = await made.visit().logIn(carry)
    const second = await made.visit().logIn(carry)
    expect([second.key, second.data]).toEqual([first.key, { cart: ['tea'], n: 1 }])
  })

  // The first has ended the session that had the cart, and the browser keeps the cookie of the second.
  it.each([false, true])('that differ is carried over by both, where the first one was sent: %s', async isSent => {
    for (const [more, taken] of [
      [{ data: ({ cart }: any) => ({ cart: [...cart, 'milk'] }) }, ['tea', 'milk']],
      [{ verifiedAt: 1_700_000_000_000 }, ['tea']],
    ] as const) {
      const made = await browser()
      const one = made.visit()
      const first = await one.logIn(carry)
      if (isSent) expect(one.headers.getSetCookie()).toHaveLength(1)
      const second = await made.visit().logIn({ ...carry, ...more } as Login)
      expect([second.key === first.key, second.data.cart]).toEqual([false, taken])
      // And a third, which asks for what the second asked for.
      expect((await made.visit().logIn({ ...carry, ...more } as Login)).key).toBe(second.key)
      // One that carries nothing over does not lose it for the next.
      await made.visit().logIn({ user: ADA })
      expect((await made.visit().logIn(carry)).data).toEqual({ cart: ['tea'], n: 1 })
    }
  })

  it('of another user is not carried over, nor that of a session which is not the one that ended', async () => {
    const seen: object[] = []
    const look = (user: object) => ({ user, data: (before: object) => ({ seen: seen.push(before) }) }) as Login
    const made = await browser()
    await made.visit().logIn(look(ADA))
    await made.visit().logIn(look(MAX))
    expect(seen).toEqual([{ cart: ['tea'] }, {}])
  })

  it('is handed out as a copy each time', async () => {
    const made = await browser()
    const spoil = {
      user: ADA,
      data: (before: any) => ({ first: Object.assign(before, { cart: 'spoilt' }).cart }),
    } as Login
    await made.visit().logIn(carry)
    await made
      .visit()
      .logIn(spoil)
      .catch(() => {})
    expect((await made.visit().logIn({ ...carry, idleTimeout: '10m' } as Login)).data).toEqual({ cart: ['tea'], n: 1 })
  })

  it('is what the handler was given, also where a handler changes it', async () => {
    const made = await browser()
    const greedy = {
      user: ADA,
      data: (before: any) => {
        const { cart } = before
        try {
          before.cart.push('milk')
        } catch {}
        return { cart }
      },
    } as Login
    const first = await made.visit().logIn(greedy)
    expect(first.data).toEqual((await made.visit().logIn(greedy)).data)
  })

  it('compares with a session as it is now: what was written to since is no twin', async () => {
    const made = await browser()
    const first = await made.visit().logIn({ user: ADA })
    await made.sessions.update(first, { n: 1 })
    const second = await made.visit().logIn({ user: ADA })
    expect([second.key === first.key, second.data]).toEqual([false, {}])
  })

  it('is not handed on by a session that has ended since, here or elsewhere', async () => {
    for (const end of ['here', 'elsewhere']) {
      const made = await browser()
      const first = await made.visit().logIn({ user: ADA })
      if (end === 'here') await made.sessions.destroy(first)
      else await made.store.inner.delete(first.key, { now: testClock()() } as never)
      const second = await made.visit().logIn({ user: ADA })
      expect(second.key).not.toBe(first.key)
      expect(await live(made)).toEqual([second.key])
    }
  })

  it('costs one read where it is the same, and touches nothing; none where the login differs', async () => {
    const made = await browser()
    await made.visit().logIn({ user: ADA })
    made.clock.advance(10 * MINUTE)
    made.store.reset()
    await made.visit().logIn({ user: ADA })
    expect(made.store.counts()).toEqual({ read: 1 })
    const { key } = (await made.sessions.list(ADA.id))[0]!
    made.store.reset()
    await made.visit().logIn({ user: MAX })
    expect(made.store.calls.filter(({ verb, args }) => verb === 'read' && args[0] === key)).toEqual([])
  })

  it('is the same where nothing is carried over by a function, or by none', async () => {
    const made = await browser()
    const first = await made.visit().logIn({ user: ADA })
    const nothing = { user: ADA, data: ({ other }: any) => ({ ...(other && { other }) }) } as Login
    expect((await made.visit().logIn(nothing)).key).toBe(first.key)
  })
})

describe('a login whose head went out too early', () => {
  it('gives up a session that another request got, and ends one that no other has', async () => {
    const made = await browser()
    let canSend = true
    const one = made.visit({ canSend: () => canSend })
    const pausing = made.store.pause('replace', 'after')
    const failing = one.logIn({ user: ADA }).catch((error: { code: string }) => error.code)
    await pausing.reached
    const two = made.visit()
    const joining = two.logIn({ user: ADA })
    canSend = false
    pausing.resume()
    expect(await failing).toBe('ERR_SESSION_HEADERS_SENT')
    const session = await joining
    expect((await made.sessions.get(session.secret))?.key).toBe(session.key)
    expect(await live(made)).toEqual([session.key])
  })

  it('ends its session once all have given it up', async () => {
    const made = await browser()
    const one = made.visit()
    const first = await one.logIn({ user: ADA })
    for (let each = 0; each < 2; each += 1) {
      let canSend = true
      const reading = made.store.pause('read', 'before')
      const late = made.visit({ canSend: () => canSend })
      const failing = late.logIn({ user: ADA }).catch((error: { code: string }) => error.code)
      await reading.reached
      canSend = false
      reading.resume()
      expect(await failing).toBe('ERR_SESSION_HEADERS_SENT')
      expect(await live(made)).toEqual([first.key])
    }
    await (one as never as { abandon(reason: string): Promise<void> }).abandon('its handler threw')
    expect(await live(made)).toEqual([])
  })

  it('ends its session also after a read that failed', async () => {
    const made = await browser()
    const one = made.visit()
    await one.logIn({ user: ADA })
    made.store.next('read', faults.rejects)
    await expect(made.visit().logIn({ user: ADA })).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
    await (one as never as { abandon(reason: string): Promise<void> }).abandon('its handler threw')
    expect(await live(made)).toEqual([])
  })

  it('ends its session also where another login went its own way', async () => {
    const made = await browser()
    const one = made.visit()
    const first = await one.logIn({ user: ADA })
    expect(one.headers.getSetCookie()).toHaveLength(1)
    await made.visit().logIn({ user: MAX })
    expect(await live(made)).toEqual([first.key])
    await (one as never as { abandon(reason: string): Promise<void> }).abandon('its handler threw')
    expect([await live(made), await made.sessions.get(first.secret)]).toEqual([[], null])
  })

  it('ends what began without a login too', async () => {
    const made = await browser()
    let canSend = true
    const pausing = made.store.pause('create', 'after')
    const creating = made
      .open(null, { canSend: () => canSend })
      .create()
      .catch((error: { code: string }) => error.code)
    await pausing.reached
    canSend = false
    pausing.resume()
    expect(await creating).toBe('ERR_SESSION_HEADERS_SENT')
    expect(made.events.slice(-2)).toEqual(['created', 'destroyed'])
  })

  it('does not give up for another session of the same visit', async () => {
    const made = await browser()
    const one = made.visit()
    const first = await one.logIn({ user: ADA })
    await made.visit().logIn({ user: ADA })
    const next = await one.regenerate()
    await (one as never as { abandon(reason: string): Promise<void> }).abandon('its handler threw')
    expect(await made.sessions.get(next!.secret)).toBeNull()
    expect(await made.sessions.get(first.secret)).toBeNull()
  })
})

describe('a second login of one visit', () => {
  it('has a new ID, though it asks for the same', async () => {
    const made = await browser()
    const visit = made.visit()
    const first = await visit.logIn({ user: ADA })
    const second = await visit.logIn({ user: ADA })
    expect(second.key).not.toBe(first.key)
    expect(await live(made)).toEqual([second.key])
  })
})

describe('a logout', () => {
  it('ends what a parallel request with the same cookies logged in to, and its token', async () => {
    const made = await browser()
    const session = await made.visit().logIn({ user: ADA, remember: true })
    await made.visit().logOut()
    expect(await made.sessions.get(session.secret)).toBeNull()
    expect(await made.store.inner.listUser('42', 'remember', { now: testClock()() })).toEqual([])
    // It is forgotten: the next login begins anew.
    expect((await made.visit().logIn({ user: ADA })).key).not.toBe(session.key)
  })

  it('whose head comes last ends a login that came during it', async () => {
    const made = await browser()
    const leaving = made.visit()
    await leaving.logOut()
    const session = await made.visit().logIn({ user: ADA })
    expect(leaving.headers.getSetCookie()).toHaveLength(1)
    await vi.waitFor(async () => expect(await made.store.inner.read(session.key, { now: 0 } as never)).toBeNull())
  })

  it('whose head comes last and cannot end it leaves no rejection behind', async () => {
    const made = await browser()
    const leaving = made.visit()
    await leaving.logOut()
    await made.visit().logIn({ user: ADA })
    const rejections: unknown[] = []
    const note = (reason: unknown) => rejections.push(reason)
    process.on('unhandledRejection', note)
    try {
      made.store.every('delete', faults.rejects)
      expect(leaving.headers.getSetCookie()).toHaveLength(1)
      for (let turns = 0; turns < 5; turns++) await turn()
      expect(rejections).toEqual([])
    } finally {
      process.off('unhandledRejection', note)
    }
  })
})
