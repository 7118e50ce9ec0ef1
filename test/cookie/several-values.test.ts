// Several cookies of one name: a change of the cookie's scope leaves one, and a sibling host can plant some. Those of longer paths
// come first, then the older ones.
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { ada, jar, loggedIn, type Manager, makeSessions, setCookies, visitOf } from '../support/edge-service.ts'

const max = { user: { id: 7n, name: 'max' } }
const planted = 'p'.repeat(43)
const ids = (count: number) => Array.from({ length: count }, (_, index) => String(index).padStart(43, 'x'))
const sessionCookies = (count: number) => ids(count).map(id => `session_id=${id}`)
const tokenCookies = (count: number) => ids(count).map(id => `remember_token=${id}.${'y'.repeat(43)}`)
const userOf = async (sessions: Manager, cookies: readonly string[]) =>
  (await visitOf(sessions, cookies).get())?.user?.name ?? null
const remembered = async () => {
  const made = makeSessions({ rememberFor: '30d' })
  return { ...made, ...(await loggedIn(made, { ...ada, remember: true })), made }
}

/** Each order of `own` among `others`. */
const placesOf = (own: string, others: readonly string[]) =>
  [...others, ''].map((_, at) => [...others.slice(0, at), own, ...others.slice(at)])

describe('of several session IDs', () => {
  it('the one that leads to a live session counts, wherever it stands among three that do not', async () => {
    const made = makeSessions()
    const { cookie, session } = await loggedIn(made)
    for (const cookies of placesOf(cookie, sessionCookies(3))) {
      made.calls.length = 0
      const visit = visitOf(made.sessions, cookies)
      expect((await visit.get())?.key).toBe(session.key)
      expect((await visit.update({ n: 1 }))?.key).toBe(session.key)
      expect([made.calls, made.events, setCookies(visit)]).toEqual([['read', 'read', 'read', 'read', 'update'], [], []])
    }
  })

  it('all are asked for in one turn, and one that comes alone as ever', async () => {
    const store = new MemoryStore()
    const read = store.read.bind(store)
    let underWay = 0
    const most: number[] = []
    store.read = async (...args) => {
      most.push(++underWay)
      await new Promise(resolve => setImmediate(resolve))
      underWay -= 1
      return read(...args)
    }
    const made = makeSessions({ store })
    const { cookie } = await loggedIn(made)
    expect(await userOf(made.sessions, [cookie, ...sessionCookies(3)])).toBe('ada')
    expect(most).toEqual([1, 2, 3, 4])
    most.length = 0
    expect(await userOf(made.sessions, [cookie])).toBe('ada')
    expect(most).toEqual([1])
  })

  it('two that lead to live sessions are no session, and one event', async () => {
    const made = makeSessions()
    const { cookie } = await loggedIn(made)
    const others = [(await loggedIn(made, max)).cookie, `session_id=${(await made.sessions.create()).secret}`]
    const visitors = [`session_id=${(await made.sessions.create()).secret}`, others[1]!]
    for (const cookies of [...others.flatMap(other => placesOf(cookie, [other])), visitors]) {
      made.events.length = 0
      const visit = visitOf(made.sessions, cookies)
      expect(await visit.get()).toBeNull()
      expect(await visit.get()).toBeNull()
      expect([made.events, setCookies(visit)]).toEqual([['ambiguous-cookie'], []])
    }
  })

  it('the later login of one user counts, and is used: the one before may be of another scope', async () => {
    const made = makeSessions()
    const before = await loggedIn(made)
    made.clock.now += 1
    const { cookie, session } = await loggedIn(made)
    made.clock.now += 10 * 60_000
    for (const cookies of placesOf(cookie, [before.cookie])) {
      const found = await visitOf(made.sessions, cookies).get()
      expect([found?.key, found?.seenAt]).toEqual([session.key, made.clock.now])
    }
    expect(made.events).toEqual([])
    expect((await made.sessions.get(before.session.secret, { touch: false }))?.seenAt).not.toBe(made.clock.now)
    const { cookie: ofMax } = await loggedIn(made, max)
    expect(await userOf(made.sessions, [cookie, ofMax, before.cookie])).toBeNull()
  })

  it('the old and the new ID of one session are one, as long as the grace lasts', async () => {
    const made = makeSessions()
    const { cookie, session } = await loggedIn(made)
    const visit = visitOf(made.sessions, [cookie])
    const next = (await visit.regenerate({ grace: '1m' }))!
    expect(next.key).not.toBe(session.key)
    for (const cookies of placesOf(cookie, [`session_id=${next.secret}`])) {
      const both = visitOf(made.sessions, cookies)
      expect((await both.get())?.key).toBe(next.key)
      expect(setCookies(both)).toEqual([])
    }
    expect(made.events).not.toContain('ambiguous-cookie')
  })

  it('five are no session, one event, and no store call', async () => {
    const { made, cookie, token } = await remembered()
    for (const cookies of placesOf(cookie, sessionCookies(4))) {
      made.events.length = 0
      const visit = visitOf(made.sessions, [...cookies, token])
      expect(await visit.get()).toBeNull()
      expect([made.calls, made.events, setCookies(visit)]).toEqual([[], ['ambiguous-cookie'], []])
    }
  })

  it('none counts where a store fails: the request is a 503', async () => {
    const store = new MemoryStore()
    const made = makeSessions({ store })
    const { cookie } = await loggedIn(made)
    store.read = () => Promise.reject(new Error('away'))
    const visit = visitOf(made.sessions, [cookie, `session_id=${planted}`])
    await expect(visit.get()).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
    expect(setCookies(visit)).toEqual([])
  })

  it('two live ones bring no session back by a remember token: each page view would begin one', async () => {
    const { made, cookie, token } = await remembered()
    const { cookie: theirs } = await loggedIn(made, max)
    for (let view = 0; view < 3; view += 1) {
      const visit = visitOf(made.sessions, [cookie, token, theirs])
      expect([await visit.get(), setCookies(visit)]).toEqual([null, []])
      made.clock.now += 120_000
    }
    expect(new Set(made.events)).toEqual(new Set(['ambiguous-cookie']))
    expect(await userOf(made.sessions, [token])).toBe('ada')
  })

  it('where none is live a remember token brings the user back', async () => {
    const { made, cookie, token } = await remembered()
    made.clock.now += 24 * 3_600_000
    expect(await userOf(made.sessions, [`session_id=${planted}`, cookie, token])).toBe('ada')
  })
})

describe('a request of which one ID has ended or got a new ID here, and none is live', () => {
  const beside = `session_id=${planted}`

  it.each(['logOut', 'logIn', 'regenerate'] as const)('begins nothing, and redeems nothing, after a %s', async verb => {
    const made = makeSessions({ rememberFor: '30d' })
    const { cookie } = await loggedIn(made)
    const { token } = await loggedIn(made, { ...ada, remember: true })
    const visit = visitOf(made.sessions, [cookie])
    await (verb === 'logIn' ? visit.logIn(max) : visit[verb]())
    for (const cookies of placesOf(cookie, [beside])) {
      expect(await visitOf(made.sessions, cookies).update({ n: 1 })).toBeNull()
      await expect(visitOf(made.sessions, cookies).create()).rejects.toMatchObject({ code: 'ERR_SESSION_CONFLICT' })
      const late = visitOf(made.sessions, [...cookies, token])
      expect([await late.get(), setCookies(late)]).toEqual([null, []])
    }
  })
})

describe('of several session IDs all', () => {
  it('end at a logout, wherever the user’s own stands among three that were planted', async () => {
    const made = makeSessions()
    for (const at of [0, 1, 2, 3]) {
      const { cookie, session } = await loggedIn(made)
      await visitOf(made.sessions, placesOf(cookie, sessionCookies(3))[at]!).logOut()
      expect([at, await made.sessions.get(session.secret)]).toEqual([at, null])
    }
  })

  it('end at a login too, and the next request has its session', async () => {
    const made = makeSessions()
    for (const at of [0, 1, 2, 3]) {
      const { cookie, session } = await loggedIn(made)
      const { cookie: theirs } = await loggedIn(made, max)
      const cookies = placesOf(cookie, [theirs, ...sessionCookies(2)])[at]!
      const visit = visitOf(made.sessions, cookies)
      const next = await visit.logIn(ada)
      expect(setCookies(visit).map(each => jar([each]))).toEqual([`session_id=${next.secret}`])
      expect([at, await made.sessions.get(session.secret)]).toEqual([at, null])
      expect(await userOf(made.sessions, [theirs])).toBeNull()
      expect(await userOf(made.sessions, [`session_id=${next.secret}`, cookie, theirs])).toBe('ada')
    }
  })

  it('end though the login finds its own by none of them, and a login that cannot end them leaves no session', async () => {
    const store = new MemoryStore()
    const made = makeSessions({ store })
    const [one, other] = [await loggedIn(made), await loggedIn(made, max)]
    const end = store.delete.bind(store)
    let isAway = true
    store.delete = async (...args) => {
      if (isAway && args[0] === other.session.key) throw new Error('away for a moment')
      return end(...args)
    }
    const visit = () => visitOf(made.sessions, [one.cookie, other.cookie])
    await expect(visit().logIn({ user: { id: 9n, name: 'eve' } })).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
    expect(await made.sessions.list(9n)).toEqual([])
    isAway = false
    await visit().logIn({ user: { id: 9n, name: 'eve' } })
    expect([await made.sessions.list(42n), await made.sessions.list(7n)]).toEqual([[], []])
  })

  it.each([{ hostPrefix: true }, {}])('end under the name with and without __Host-, with %j', async cookie => {
    for (const verb of ['logOut', 'logIn'] as const) {
      const made = makeSessions({ rememberFor: '30d' })
      const before = await loggedIn(made, { ...max, remember: true })
      const swapped = (pair: string) => (cookie.hostPrefix ? pair : `__Host-${pair}`)
      const named = (pair: string) => (cookie.hostPrefix ? `__Host-${pair}` : pair)
      const { cookie: own, session } = await loggedIn(made)
      const cookies = [swapped(before.cookie), swapped(before.token), named(own)]
      const visit = visitOf(made.sessions, cookies, {}, { cookie })
      // To read, the exact name counts alone.
      expect((await visitOf(made.sessions, cookies, {}, { cookie }).get())?.key).toBe(session.key)
      expect(await visitOf(made.sessions, cookies.slice(0, 2), {}, { cookie }).get()).toBeNull()
      await (verb === 'logIn' ? visit.logIn(ada) : visit.logOut())
      expect(await userOf(made.sessions, [own])).toBeNull()
      expect(await userOf(made.sessions, [before.cookie])).toBeNull()
      expect(await userOf(made.sessions, [before.token])).toBeNull()
    }
  })

  it('end where five came, as far as four go, and the logout says that it was too many', async () => {
    const made = makeSessions()
    for (const at of [0, 3, 4, 499]) {
      const { cookie, session } = await loggedIn(made)
      const visit = visitOf(made.sessions, placesOf(cookie, sessionCookies(at === 499 ? 500 : 4))[at]!)
      await expect(visit.logOut()).rejects.toMatchObject({
        code: 'ERR_SESSION_CONFLICT',
        message: expect.stringContaining('named session_id'),
      })
      expect(setCookies(visit)).toEqual([])
      expect([at, await made.sessions.get(session.secret)]).toEqual([at, at < 4 ? null : expect.anything()])
    }
  })

  it('that other hosts plant under the name without __Host- keep no logout of the name with it from its end', async () => {
    const made = makeSessions()
    const { cookie, session } = await loggedIn(made)
    const options = { cookie: { hostPrefix: true } }
    const visit = visitOf(made.sessions, [...sessionCookies(500), `__Host-${cookie}`], {}, options)
    await visit.logOut()
    expect(await made.sessions.get(session.secret)).toBeNull()
    expect(made.calls.length).toBeLessThanOrEqual(8)
  })
})

describe('a cookie of another scope that is dead, and goes on being sent', () => {
  const dead = `session_id=${planted}`

  it.each(['logOut', 'logIn'] as const)('keeps nothing from beginning after a %s beside it', async verb => {
    const { made, cookie, token } = await remembered()
    const [deadToken] = tokenCookies(1) as [string]
    const { token: next } = await loggedIn(made, { ...ada, remember: true })
    const visit = visitOf(made.sessions, [dead, cookie, deadToken, token])
    await (verb === 'logIn' ? visit.logIn(max) : visit.logOut())
    expect((await visitOf(made.sessions, [dead, deadToken]).update({ n: 1 }))?.data).toEqual({ n: 1 })
    expect(await userOf(made.sessions, [dead, deadToken, next])).toBe('ada')
  })
})

it('what has not the form of an ID or a token takes no place among several, and does not reach the store', async () => {
  const { made, cookie, token, session } = await remembered()
  const junk = Array.from({ length: 20 }, (_, index) => [`session_id=${index}`, `remember_token=${index}.x`]).flat()
  await visitOf(made.sessions, junk).logOut()
  expect(made.calls).toEqual([])
  await visitOf(made.sessions, [...junk.slice(0, 20), cookie, token, ...junk.slice(20)]).logOut()
  expect(await made.sessions.get(session.secret)).toBeNull()
  expect(await visitOf(made.sessions, [token]).get()).toBeNull()
})

it('a logout and a login end what is live by the clock of a slower node alone', async () => {
  for (const end of ['logOut', 'logIn'] as const) {
    const store = new MemoryStore()
    const [slow, fast] = [makeSessions({ store }), makeSessions({ store })]
    const { cookie } = await loggedIn(slow)
    slow.clock.now += 27 * 60_000
    fast.clock.now = slow.clock.now + 4 * 60_000
    const visit = visitOf(fast.sessions, [cookie, ...sessionCookies(1)])
    await (end === 'logOut' ? visit.logOut() : visit.logIn(max))
    expect([end, await userOf(slow.sessions, [cookie])]).toEqual([end, null])
  }
})

it('a logout tells the store of each of several IDs once, and costs few calls whatever the header holds', async () => {
  const { made, cookie, token } = await remembered()
  for (const count of [2, 3, 4]) {
    made.calls.length = 0
    await visitOf(made.sessions, sessionCookies(count)).logOut()
    // There is nothing to end.
    expect(made.calls).toEqual(Array(count).fill('read'))
  }
  const junk = [...sessionCookies(400), ...tokenCookies(100)]
  for (const [cookies, most] of [
    [junk, 12],
    [[cookie, token, ...junk], 16],
  ] as const) {
    made.calls.length = 0
    await expect(visitOf(made.sessions, cookies).logOut()).rejects.toThrow(/more than four/)
    expect(made.calls.length).toBeLessThanOrEqual(most)
  }
})

describe('several remember tokens', () => {
  // The planted ones are the same each time, as one sibling host plants them in several browsers.
  it('end at a logout and at a login, wherever the user’s own stands among three that were planted', async () => {
    const made = makeSessions({ rememberFor: '30d' })
    for (const end of ['logOut', 'logIn'] as const)
      for (const count of [1, 2, 3])
        for (const at of [0, 1, -2, -1]) {
          const { token } = await loggedIn(made, { ...ada, remember: true })
          const visit = visitOf(made.sessions, placesOf(token, tokenCookies(count)).at(at)!)
          await (end === 'logOut' ? visit.logOut() : visit.logIn(max))
          expect([end, count, at, await userOf(made.sessions, [token])]).toEqual([end, count, at, null])
        }
  })

  it('that are five are too many for a logout', async () => {
    const made = makeSessions({ rememberFor: '30d' })
    const visit = visitOf(made.sessions, tokenCookies(5))
    await expect(visit.logOut()).rejects.toMatchObject({ message: expect.stringContaining('named remember_token') })
  })

  it('begin a session by the only one that is current, and the others are neither theft nor an answer', async () => {
    const { made, token: first } = await remembered()
    made.clock.now += 24 * 3_600_000
    const visit = visitOf(made.sessions, [first])
    await visit.get()
    const current = jar([setCookies(visit)[1]!])
    await visitOf(made.sessions, [jar([setCookies(visit)[0]!])]).get()
    made.clock.now += 24 * 3_600_000
    made.events.length = 0
    // Used long ago: alone it is a theft.
    const again = visitOf(made.sessions, [first, current, ...tokenCookies(2)])
    expect((await again.get())?.user?.name).toBe('ada')
    expect([setCookies(again).length, made.events]).toEqual([2, ['created']])
    expect(await userOf(made.sessions, [first, ...tokenCookies(1)])).toBeNull()
    expect(made.events).not.toContain('remember-theft')
  })

  it('begin one session in parallel requests: no other is current, and one of them was used a moment ago', async () => {
    const { made, token } = await remembered()
    made.clock.now += 24 * 3_600_000
    const cookies = [...tokenCookies(1), token]
    const keys = new Set<string | undefined>()
    for (const visit of [0, 1, 2].map(() => visitOf(made.sessions, cookies))) keys.add((await visit.get())?.key)
    made.clock.now += 6 * 60_000
    keys.add((await visitOf(made.sessions, cookies).get())?.key)
    expect([keys.size, keys.has(undefined)]).toEqual([1, false])
    // No longer: a token that another scope still has is no answer.
    made.clock.now += 1
    expect(await userOf(made.sessions, cookies)).toBeNull()
    expect(made.events).not.toContain('remember-theft')
  })

  it('begin a session by the current one beside one that was used a moment ago', async () => {
    const { made, token } = await remembered()
    const visit = visitOf(made.sessions, [token])
    await visit.get()
    const next = jar([setCookies(visit)[1]!])
    const again = visitOf(made.sessions, [token, next])
    expect((await again.get())?.user?.name).toBe('ada')
    expect(jar([setCookies(again)[1]!]), 'the current one was used, and has a next one').not.toBe(next)
    expect(made.events).not.toContain('remember-theft')
  })

  it('are none if two are current, or more than four came: a sibling host can plant its own', async () => {
    const { made, token } = await remembered()
    const { token: theirs } = await loggedIn(made, { ...max, remember: true })
    for (const cookies of [...placesOf(token, [theirs]), ...placesOf(token, tokenCookies(4))]) {
      const visit = visitOf(made.sessions, cookies)
      expect([await visit.get(), setCookies(visit)]).toEqual([null, []])
    }
    expect(made.events).not.toContain('created')
    expect(await userOf(made.sessions, [token])).toBe('ada')
  })
})
