// Several cookies of one name, which a sibling host can plant: those of longer paths come first, then the older ones.
import { openVisit } from 'coatcheck/custom-server'
import { describe, expect, it } from 'vitest'
import { ada, jar, type Manager, makeSessions } from '../../support/edge-service.ts'
import { onlyHost } from '../../support/only-host.ts'

const planted = 'p'.repeat(43)
const ids = (count: number) => Array.from({ length: count }, (_, index) => String(index).padStart(43, 'x'))
const sessionCookies = (count: number) => ids(count).map(id => `session_id=${id}`)
const tokenCookies = (count: number) => ids(count).map(id => `remember_token=${id}.${'y'.repeat(43)}`)

const visitOf = (sessions: Manager, cookies: readonly string[], options?: Parameters<typeof openVisit>[2]) =>
  openVisit(sessions, { method: 'POST', secure: true, header: onlyHost, cookie: cookies.join('; ') }, options)
const setCookies = (visit: { finish(): { headers: Headers } }) => visit.finish().headers.getSetCookie()

/** A browser that has logged in: its cookies, each as `name=value`. */
async function loggedIn(made: ReturnType<typeof makeSessions>, login: object = ada) {
  const visit = visitOf(made.sessions, [])
  const session = await visit.logIn(login as typeof ada)
  const [cookie, token] = setCookies(visit).map(each => jar([each])) as [string, string]
  made.calls.length = 0
  made.events.length = 0
  return { session, cookie, token }
}

/** Each order of `own` among `others`. */
const placesOf = (own: string, others: readonly string[]) =>
  [...others, ''].map((_, at) => [...others.slice(0, at), own, ...others.slice(at)])

describe('several session IDs', () => {
  it('are no session, one event, and no store call', async () => {
    const made = makeSessions()
    const { cookie } = await loggedIn(made)
    for (const cookies of placesOf(cookie, [`session_id=${planted}`])) {
      made.events.length = 0
      const visit = visitOf(made.sessions, cookies)
      expect(await visit.get()).toBeNull()
      expect(await visit.get()).toBeNull()
      expect([made.calls, made.events, setCookies(visit)]).toEqual([[], ['ambiguous-cookie'], []])
    }
  })

  it('bring no session back either: each page view would begin one, and the last would be taken for a theft', async () => {
    const made = makeSessions({ rememberFor: '30d' })
    const { cookie, token } = await loggedIn(made, { ...ada, remember: true })
    for (let view = 0; view < 3; view += 1) {
      const visit = visitOf(made.sessions, [cookie, token, `session_id=${planted}`])
      expect([await visit.get(), setCookies(visit)]).toEqual([null, []])
      made.clock.now += 120_000
    }
    expect(new Set(made.events)).toEqual(new Set(['ambiguous-cookie']))
    expect((await visitOf(made.sessions, [token]).get())?.user?.name).toBe('ada')
  })

  it('all end at a logout, wherever the user’s own stands among three that were planted', async () => {
    const made = makeSessions()
    for (const at of [0, 1, 2, 3]) {
      const { cookie, session } = await loggedIn(made)
      await visitOf(made.sessions, placesOf(cookie, sessionCookies(3))[at]!).logOut()
      expect([at, await made.sessions.get(session.secret)]).toEqual([at, null])
    }
  })

  it('end at a logout of hundreds that says it was too many, if the user’s own is one of the first two or the last two', async () => {
    const made = makeSessions()
    for (const at of [0, 1, -2, -1]) {
      const { cookie, session } = await loggedIn(made)
      const visit = visitOf(made.sessions, placesOf(cookie, sessionCookies(500)).at(at)!)
      await expect(visit.logOut()).rejects.toMatchObject({
        code: 'ERR_SESSION_CONFLICT',
        message: expect.stringContaining('named session_id'),
      })
      expect(setCookies(visit)).toEqual([])
      expect([at, await made.sessions.get(session.secret)]).toEqual([at, null])
    }
  })
})

it('what has not the form of an ID or a token takes no place among several, and does not reach the store', async () => {
  const made = makeSessions({ rememberFor: '30d' })
  const { cookie, token, session } = await loggedIn(made, { ...ada, remember: true })
  const junk = Array.from({ length: 20 }, (_, index) => [`session_id=${index}`, `remember_token=${index}.x`]).flat()
  await visitOf(made.sessions, junk).logOut()
  expect(made.calls).toEqual([])
  await visitOf(made.sessions, [...junk.slice(0, 20), cookie, token, ...junk.slice(20)]).logOut()
  expect(await made.sessions.get(session.secret)).toBeNull()
  expect(await visitOf(made.sessions, [token]).get()).toBeNull()
})

it('a logout says of each session that it was one', async () => {
  const ended: unknown[] = []
  const made = makeSessions({ onEvent: event => event.type === 'destroyed' && ended.push([event.key, event.reason]) })
  const [one, other] = [await loggedIn(made), await loggedIn(made)]
  await visitOf(made.sessions, [one.cookie, other.cookie]).logOut()
  expect(ended).toEqual([
    [one.session.key, 'logout'],
    [other.session.key, 'logout'],
  ])
})

it('a logout tells the store of each of several IDs once', async () => {
  for (const count of [2, 3, 4]) {
    const made = makeSessions()
    await visitOf(made.sessions, sessionCookies(count)).logOut()
    // Each read looks for the remember token that began the session.
    expect(made.calls).toEqual(Array(count).fill(['read', 'delete']).flat())
  }
})

describe('several remember tokens', () => {
  // The planted ones are the same each time, as one sibling host plants them in several browsers.
  it('end at a logout and at a login, if the user’s own is among the first or the last two', async () => {
    const made = makeSessions({ rememberFor: '30d' })
    const max = { user: { id: 7n, name: 'max' } }
    for (const end of ['logOut', 'logIn'] as const)
      for (const planted of [1, 2, 100])
        for (const at of [0, 1, -2, -1]) {
          const { token } = await loggedIn(made, { ...ada, remember: true })
          const visit = visitOf(made.sessions, placesOf(token, tokenCookies(planted)).at(at)!)
          const ending = end === 'logOut' ? visit.logOut() : visit.logIn(max)
          if (end === 'logOut' && planted === 100)
            await expect(ending).rejects.toMatchObject({ message: expect.stringContaining('named remember_token') })
          else await ending
          expect([end, planted, at, await visitOf(made.sessions, [token]).get()]).toEqual([end, planted, at, null])
        }
  })

  it('are none: a planted one beside the user’s own begins no session', async () => {
    const made = makeSessions({ rememberFor: '30d' })
    const { token } = await loggedIn(made, { ...ada, remember: true })
    for (const cookies of placesOf(token, tokenCookies(1))) {
      const visit = visitOf(made.sessions, cookies)
      expect([await visit.get(), setCookies(visit)]).toEqual([null, []])
    }
    expect(made.calls).toEqual([])
  })
})

it('a logout costs few store calls, whatever the header holds', async () => {
  const made = makeSessions({ rememberFor: '30d' })
  const { cookie, token } = await loggedIn(made, { ...ada, remember: true })
  const junk = [...sessionCookies(400), ...tokenCookies(100)]
  await expect(visitOf(made.sessions, junk).logOut()).rejects.toThrow(/more than four/)
  expect(made.calls.length).toBeLessThanOrEqual(12)
  made.calls.length = 0
  await expect(visitOf(made.sessions, [cookie, token, ...junk]).logOut()).rejects.toThrow(/more than four/)
  expect(made.calls.length).toBeLessThanOrEqual(16)
})
