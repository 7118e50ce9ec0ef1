// How long the browser keeps the cookie, and what two nodes that know nothing of each other do with it.
import { SessionManager } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { onlyHost } from '../../support/only-host.ts'
import { MINUTE, testClock } from '../../support/test-clock.ts'

const ada = { user: { id: 1n, name: 'ada' } }
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
  const visit = (at: 0 | 1, canSend = true) => {
    const request = {
      method: 'POST',
      secure: true,
      header: onlyHost,
      cookie: browser.sends(),
      canSend: () => canSend,
    }
    return openVisit(nodes[at], request, options)
  }
  const logIn = async (at: 0 | 1, login = ada) => {
    const visiting = visit(at)
    await visiting.logIn(login)
    browser.takes(visiting)
  }
  return { clock, browser, visit, logIn }
}

describe('a browser whose session lives keeps its cookie', () => {
  /** Logs in, and then sends a request after each pause (in minutes), to the nodes in turn. */
  async function walk(
    pauses: readonly number[],
    { apart = 0, isLost = (_sent: number): boolean => false, polls = 0 } = {},
  ) {
    const { clock, browser, visit, logIn } = setUp({ apart })
    await logIn(0)
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
  /** Enough pauses for ten hours. */
  const tenHours = (...pauses: number[]) =>
    Array.from({ length: Math.floor(600 / pauses.reduce((sum, each) => sum + each)) }, () => pauses).flat()

  it.each([[[20]], [[25]], [[29]], [[1]], [[4, 25]], [[1, 1, 25]], [[14, 4, 26]], [[3, 29, 16]]])(
    'with pauses of %j minutes',
    async pauses => {
      expect(await walk(tenHours(...pauses))).toBeLessThanOrEqual(2)
    },
  )

  it.each([0, 1])('also if the response with the cookie is lost, the one or the other: %i', async lost => {
    for (const pauses of [[1], [4], [5, 12]])
      expect(await walk(tenHours(...pauses), { isLost: at => at === lost })).toBe(2)
  })

  it('also if it polls in between, which is no use of the session', async () => {
    for (const pauses of [[10], [20], [25]]) await walk(tenHours(...pauses), { polls: 3 })
  })

  it.each([5, -5])('also if the clocks of the nodes are %i minutes apart', async apart => {
    for (const pauses of [[1], [4], [10], [20]]) await walk(tenHours(...pauses), { apart: apart * MINUTE })
  })

  it('and no request touches that cannot send it', async () => {
    const { clock, browser, visit, logIn } = setUp()
    await logIn(0)
    for (let minutes = 0; minutes < 25; minutes += 5) {
      clock.advance(5 * MINUTE)
      const socket = visit(0, false)
      await socket.get()
      await socket.update({ minutes })
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
