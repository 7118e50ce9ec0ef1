// How long the browser keeps the cookie, and what two nodes that know nothing of each other do with it.
import { SessionManager } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { ada, jar, loggedIn, makeSessions, setCookies, visitOf } from '../support/edge-service.ts'
import { onlyHost } from '../support/only-host.ts'
import { MINUTE, testClock } from '../support/test-clock.ts'

const max = { user: { id: 2n, name: 'max' } }
type Lifetime = 'idle' | 'absolute' | 'browser'

/** One browser and two nodes on one store. `apart`: how far the clock of the second is ahead, in ms. */
function setUp({ lifetime = 'idle' as Lifetime, apart = 0 } = {}) {
  const store = new MemoryStore()
  const clock = testClock()
  const node = (now: () => number) => new SessionManager({ store, now, sweepInterval: false })
  const nodes = [node(clock), node(() => clock() + apart)] as const
  const options = { cookie: { lifetime } }
  const browser = {
    value: null as string | null,
    expires: 0,
    sends(): string | null {
      return this.value !== null && clock() < this.expires ? `session_id=${this.value}` : null
    },
    takes(visit: { finish(): { headers: Headers } }): boolean {
      const [line] = visit.finish().headers.getSetCookie()
      if (line === undefined) return false
      this.value = /^session_id=([^;]*)/.exec(line)![1]!
      const age = /Max-Age=(\d+)/.exec(line)?.[1]
      this.expires = age === undefined ? Number.POSITIVE_INFINITY : clock() + Number(age) * 1000
      return true
    },
  }
  const visit = (at: 0 | 1, canSend = true, head = { isSent: false }) => {
    const request = {
      method: 'POST',
      secure: true,
      header: onlyHost,
      cookie: browser.sends(),
      canSend: () => canSend && !head.isSent,
      isLate: () => canSend && head.isSent,
    }
    return openVisit(nodes[at], request, options)
  }
  const logIn = async (at: 0 | 1, login: typeof ada & { idleTimeout?: '10m' } = ada) => {
    const visiting = visit(at)
    await visiting.logIn(login)
    browser.takes(visiting)
  }
  /** A request of a page: whose session it finds, and whether the answer brings a cookie. */
  const page = async (at: 0 | 1) => {
    const visiting = visit(at)
    return [(await visiting.get())?.user?.name, browser.takes(visiting)] as const
  }
  /** A request whose answer streams: its head is written before it is known whose session it is. */
  const stream = async (at: 0 | 1) => {
    const head = { isSent: false }
    const visiting = visit(at, true, head)
    const reading = visiting.get()
    const isSending = browser.takes(visiting)
    head.isSent = true
    return [(await reading)?.user?.name, isSending] as const
  }
  return { clock, browser, visit, logIn, page, stream }
}

describe('a cookie goes with its session', () => {
  it('twice more, with what is left of the absolute time: at the first touch and half of the idle time', async () => {
    const made = makeSessions({ idleTimeout: '30m', absoluteTimeout: '40m', touchInterval: '3m' })
    const { cookie } = await loggedIn(made)
    const ages: (string | undefined)[] = []
    for (const minutes of [1, 4, 1, 6, 6, 15]) {
      made.clock.now += minutes * MINUTE
      const visit = visitOf(made.sessions, cookie)
      await visit.get()
      ages.push(/Max-Age=(\d+)/.exec(setCookies(visit)[0] ?? '')?.[1])
    }
    // After 1, 5, 6, 12, 18 and 33 minutes.
    expect(ages).toEqual([undefined, String(35 * 60), undefined, undefined, String(22 * 60), undefined])
    expect(made.calls.filter(call => call === 'touch')).toHaveLength(4)
  })

  it.each(['idle', 'absolute', 'browser'] as const)(
    'with a new ID that another request gave, with the lifetime %s',
    async lifetime => {
      const options = { cookie: { lifetime } }
      const made = makeSessions()
      const { cookie } = await loggedIn(made, ada, options)
      const rotated = await visitOf(made.sessions, cookie, {}, options).regenerate({ grace: '1m' })
      const late = visitOf(made.sessions, cookie, {}, options)
      await late.get()
      expect(jar(setCookies(late))).toBe(`session_id=${rotated?.secret}`)
    },
  )

  it.each(['absolute', 'browser'] as const)(
    'never again with the lifetime %s, which no use prolongs',
    async lifetime => {
      const options = { cookie: { lifetime } }
      const made = makeSessions()
      const { cookie } = await loggedIn(made, ada, options)
      made.clock.now += 20 * MINUTE
      const visit = visitOf(made.sessions, cookie, {}, options)
      expect((await visit.get())?.seenAt).toBe(made.clock.now)
      expect(setCookies(visit)).toEqual([])
    },
  )

  it('not with a look that is no use of the session, nor where no cookie can be sent, nor where nothing is due', async () => {
    const made = makeSessions()
    const { cookie } = await loggedIn(made)
    const visit = visitOf(made.sessions, cookie)
    const looked = await visit.get({ touch: false })
    expect(await visit.get()).toBe(looked)
    made.clock.now += 20 * MINUTE
    await visitOf(made.sessions, cookie).get({ touch: false })
    const socket = visitOf(made.sessions, cookie, { canSend: () => false })
    await socket.get({ touch: false })
    await socket.get()
    expect(made.calls).toEqual(['read', 'read', 'read'])
  })

  it.each(['get', 'requireUser', 'csrfToken'] as const)(
    'with a later look that is a use: by %s after a poll or a log',
    async verb => {
      const made = makeSessions()
      const { cookie } = await loggedIn(made)
      made.clock.now += 20 * MINUTE
      const visit = visitOf(made.sessions, cookie)
      const looked = await visit.get({ touch: false })
      await Promise.all([visit.get({ touch: false }), visit[verb](), visit[verb]()])
      expect(made.calls).toEqual(['read', 'touch'])
      expect([looked?.seenAt, (await visit.get())?.seenAt]).toEqual([looked?.createdAt, made.clock.now])
      expect(setCookies(visit)).toHaveLength(1)
    },
  )

  it('not where the session ended between a look that is no use and one that is', async () => {
    const made = makeSessions()
    const { cookie, session } = await loggedIn(made)
    made.clock.now += 20 * MINUTE
    const visit = visitOf(made.sessions, cookie)
    await visit.get({ touch: false })
    await made.sessions.destroy(session)
    expect([await visit.get(), setCookies(visit)]).toEqual([null, []])
  })
})

describe('a browser whose session lives keeps its cookie', () => {
  /** Logs in, and then sends a request after each pause (in minutes), to the nodes in turn. */
  async function walk(
    pauses: readonly number[],
    { apart = 0, isLost = (_sent: number): boolean => false, polls = 0, login = ada } = {},
  ) {
    const { clock, browser, visit, logIn } = setUp({ apart })
    await logIn(0, login)
    let minutes = 0
    let sent = 0
    for (const [at, pause] of pauses.entries()) {
      for (let poll = 0; poll < polls; poll += 1) {
        clock.advance((pause * MINUTE) / (polls + 1))
        await visit(((at + poll) % 2) as 0 | 1).get({ touch: false })
      }
      clock.advance((pause * MINUTE) / (polls + 1))
      minutes += pause
      const visiting = visit(((at + 1) % 2) as 0 | 1)
      expect((await visiting.get())?.user?.name, `after ${minutes} minutes`).toBe('ada')
      if (visiting.finish().headers.getSetCookie().length > 0) {
        if (!isLost(sent)) browser.takes(visiting)
        sent += 1
      }
    }
    return sent
  }
  /** Enough pauses for four hours. */
  const fourHours = (...pauses: number[]) =>
    Array.from({ length: Math.floor(240 / pauses.reduce((sum, each) => sum + each)) }, () => pauses).flat()

  it.each([[[20]], [[25]], [[29]], [[1]], [[4, 25]], [[1, 1, 25]], [[14, 4, 26]], [[3, 29, 16]]])(
    'with pauses of %j minutes',
    async pauses => {
      expect(await walk(fourHours(...pauses))).toBeLessThanOrEqual(2)
    },
  )

  it.each([0, 1])('also if the response with the cookie is lost, the one or the other: %i', async lost => {
    for (const pauses of [[1], [4], [5, 12]])
      expect(await walk(fourHours(...pauses), { isLost: at => at === lost })).toBe(2)
  })

  it('also if it polls in between, which is no use of the session', async () => {
    for (const pauses of [[10], [20], [25]]) await walk(fourHours(...pauses), { polls: 3 })
  })

  it.each([5, -5])('also if the clocks of the nodes are %i minutes apart', async apart => {
    for (const pauses of [[1], [4], [10], [20]]) await walk(fourHours(...pauses), { apart: apart * MINUTE })
    const login = { ...ada, idleTimeout: '10m' as const }
    await walk(fourHours(0.5), { apart: apart * MINUTE, login })
  })

  it('and no request touches that cannot send it', async () => {
    const { clock, browser, visit, logIn } = setUp()
    await logIn(0)
    for (let minutes = 0; minutes < 25; minutes += 5) {
      clock.advance(5 * MINUTE)
      const socket = visit(0, false)
      await socket.get()
      await socket.update({ minutes, flash: 'hello' })
      await socket.take('flash')
    }
    const page = visit(0)
    expect((await page.get())?.user?.name).toBe('ada')
    expect(browser.takes(page)).toBe(true)
  })
})

describe('a page view that is answered after a login at another node', () => {
  /** A session is used every two minutes; at `minutes`, a page view at the one node is answered after a login at the other. */
  async function after(minutes: number, lifetime: Lifetime) {
    const { clock, browser, visit, logIn } = setUp({ lifetime })
    await logIn(0)
    for (let passed = 2; passed < minutes; passed += 2) {
      clock.advance(2 * MINUTE)
      const visiting = visit(0)
      await visiting.get()
      browser.takes(visiting)
    }
    clock.advance(2 * MINUTE)
    const slow = visit(0)
    await slow.get()
    await logIn(1, max)
    browser.takes(slow)
    return (await visit(1).get())?.user?.name ?? null
  }
  const moments = Array.from({ length: 20 }, (_, at) => 2 * (at + 1))

  it("never takes the login's place with a cookie that is not re-sent", async () => {
    for (const lifetime of ['absolute', 'browser'] as const)
      for (const minutes of moments) expect([minutes, await after(minutes, lifetime)]).toEqual([minutes, 'max'])
  })

  it("takes the login's place at two moments by default: the first touch, and that at half of the idle time", async () => {
    const lost: number[] = []
    for (const minutes of moments) if ((await after(minutes, 'idle')) !== 'max') lost.push(minutes)
    expect(lost).toEqual([4, 16])
  })

  it('does not do so in one process, at no moment', async () => {
    for (const minutes of moments) {
      const { clock, browser, visit, logIn } = setUp()
      await logIn(0)
      clock.advance(minutes * MINUTE)
      const slow = visit(0)
      if ((await slow.get()) === null) continue
      await logIn(0, max)
      browser.takes(slow)
      expect([minutes, (await visit(1).get())?.user?.name]).toEqual([minutes, 'max'])
    }
  })
})

describe('a browser whose answers stream keeps its cookie as long as its session lives, and the session as long as it is in use', () => {
  /** Four hours of requests after pauses in turn; `pages`: every so many-th request is for a page, at the other node. */
  async function walk(pauses: readonly number[], { pages = 0, nodes = 1, apart = 0 } = {}) {
    const { clock, logIn, page, stream } = setUp({ apart })
    await logIn(0)
    let sent = 0
    for (let [minutes, at] = [0, 1]; minutes < 240; at += 1) {
      const pause = pauses[at % pauses.length]!
      minutes += pause
      clock.advance(pause * MINUTE)
      const isPage = pages > 0 && at % pages === 0
      const [name, isSending] = await (isPage ? page(1) : stream((at % nodes) as 0 | 1))
      expect([minutes, name]).toEqual([minutes, 'ada'])
      sent += Number(isSending)
    }
    return sent
  }

  it.each([[[1]], [[4]], [[14]], [[4, 12]], [[1, 1, 27]]])(
    'if all of them do, with pauses of %j minutes',
    async pauses => {
      const sent = await walk(pauses)
      expect(sent).toBeGreaterThan(0)
      expect(sent).toBeLessThanOrEqual(2)
    },
  )

  it('if all of them do, at two nodes: each may send it once more', async () => {
    for (const pauses of [[1], [4], [9]]) expect(await walk(pauses, { nodes: 2 })).toBeLessThanOrEqual(4)
  })

  it.each([2, 3, 7])('if every %i. request is for a page, of another service on the store', async pages => {
    for (const apart of [0, 5, -5])
      for (const pauses of [[1], [3], [2, 1]]) {
        const sent = await walk(pauses, { pages, apart: apart * MINUTE })
        expect(sent, `${apart} ${pauses}`).toBeLessThanOrEqual(4)
      }
  })

  it('and the next page sends it, at another node too, however short ago the last stream was, and once', async () => {
    const { clock, logIn, page, stream } = setUp()
    await logIn(0)
    clock.advance(4 * MINUTE)
    expect(await stream(0)).toEqual(['ada', false])
    expect(await page(1)).toEqual(['ada', true])
    expect(await page(1)).toEqual(['ada', false])
    expect(await page(0)).toEqual(['ada', false])
  })

  it('but neither past its absolute time, nor after it was idle', async () => {
    const { clock, browser, logIn, stream } = setUp()
    await logIn(0)
    for (let minutes = 0; minutes < 12 * 60; minutes += 10) {
      const [name] = await stream(0)
      expect([minutes, name]).toEqual([minutes, 'ada'])
      clock.advance(10 * MINUTE)
    }
    browser.expires = Number.POSITIVE_INFINITY
    expect((await stream(0))[0]).toBeUndefined()
    await logIn(0)
    clock.advance(10 * MINUTE)
    await stream(0)
    browser.expires = Number.POSITIVE_INFINITY
    clock.advance(30 * MINUTE)
    expect((await stream(0))[0]).toBeUndefined()
  })
})
