// What one process remembers of sessions that ended a moment ago, and what it does with it: the requests of one browser run
// in parallel.
import { SessionManager, type SessionOptions } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { RecentlyEnded } from '../../../src/manager/recently-ended.ts'

const ada = { id: 1n, name: 'ada' }

describe('what this process remembers of a session', () => {
  it('that got a new ID: nothing may begin under the old one, and the new one lives', () => {
    const recentlyEnded = new RecentlyEnded()
    recentlyEnded.noteNewId('a', 'b')
    expect([recentlyEnded.isSuperseded('a'), recentlyEnded.isEnded('a')]).toEqual([true, false])
    expect([recentlyEnded.isSuperseded('b'), recentlyEnded.isEnded('b')]).toEqual([false, false])
  })

  it('that ended: its successors have ended too, whichever is heard of first', () => {
    for (const order of [0, 1]) {
      const recentlyEnded = new RecentlyEnded()
      recentlyEnded.noteNewId('b', 'c')
      const steps = [() => recentlyEnded.noteEnd('a', 'superseded'), () => recentlyEnded.noteNewId('a', 'b')]
      for (const at of [order, 1 - order]) steps[at]!()
      expect(['a', 'b', 'c'].map(key => recentlyEnded.isEnded(key))).toEqual([true, true, true])
    }
  })

  it('that was ended by others: its browser may begin anew, and once it left, not any more', () => {
    const recentlyEnded = new RecentlyEnded()
    recentlyEnded.noteNewId('a', 'b')
    recentlyEnded.noteEnd('b', 'ended')
    expect([recentlyEnded.isSuperseded('b'), recentlyEnded.isEnded('b')]).toEqual([false, true])
    recentlyEnded.noteEnd('a', 'superseded')
    recentlyEnded.noteEnd('b', 'ended')
    expect(recentlyEnded.isSuperseded('b')).toBe(true)
  })

  it('spares the one that is to go on, and what follows from it', () => {
    const recentlyEnded = new RecentlyEnded()
    for (const [from, to] of ['ab', 'bc']) recentlyEnded.noteNewId(from!, to!)
    recentlyEnded.noteEnd('a', 'superseded', 'b')
    expect(['a', 'b', 'c'].map(key => recentlyEnded.isEnded(key))).toEqual([true, false, false])
  })

  it('comes to an end if sessions lead to each other in a ring', () => {
    const recentlyEnded = new RecentlyEnded()
    for (const [from, to] of ['ab', 'ba']) recentlyEnded.noteNewId(from!, to!)
    recentlyEnded.noteEnd('a', 'superseded')
    recentlyEnded.noteUserEnd('1', 'a')
    const session = { key: 'x', parent: null, userId: '1' }
    expect([recentlyEnded.isEnded('b'), recentlyEnded.hasEnded(session, 0)]).toEqual([true, true])
  })
})

describe('the cookie of a session', () => {
  const setUp = (options: Partial<SessionOptions<Record<string, unknown>>> = {}) => {
    const sessions = new SessionManager({
      store: new MemoryStore(),
      sweepInterval: false,
      rememberFor: '30d',
      ...options,
    })
    const visit = (cookie: string | null = null) =>
      openVisit(sessions, { method: 'POST', secure: true, header: () => null, cookie })
    const logIn = async (user = ada) => {
      const visiting = visit()
      return { visiting, session: await visiting.logIn({ user }) }
    }
    return { sessions, visit, logIn }
  }
  const sends = ({ cookies }: { cookies: readonly { name: string }[] }) =>
    cookies.some(({ name }) => name === 'session_id')

  it('is held back when the session was revoked, or its remember token', async () => {
    const { sessions, visit, logIn } = setUp()
    const { visiting, session } = await logIn()
    expect(sends(visiting)).toBe(true)
    await sessions.revoke(1n, session.key)
    expect(sends(visiting)).toBe(false)
    const token = await sessions.issueRememberToken((await logIn()).session)
    const back = visit(`remember_token=${token}`)
    await back.get()
    expect(sends(back)).toBe(true)
    await sessions.revokeRememberToken(token)
    expect(back.cookies).toEqual([])
  })

  it('is held back when its user was logged out everywhere, and sent if it began after', async () => {
    const { sessions, logIn } = setUp()
    const [before, other] = [await logIn(), await logIn({ id: 2n, name: 'max' })]
    await sessions.invalidateUser(1n)
    const after = await logIn()
    expect([before, other, after].map(each => sends(each.visiting))).toEqual([false, true, true])
  })

  it('is sent if it is the excepted one, under whichever of its IDs', async () => {
    const { sessions, logIn } = setUp()
    const [here, other] = [await logIn(), await logIn()]
    await here.visiting.regenerate()
    await sessions.invalidateUser(1n, { except: here.session })
    expect([here, other].map(each => sends(each.visiting))).toEqual([true, false])
  })

  it('is held back when the limit ended it, and its browser may begin anew', async () => {
    const { visit, logIn } = setUp({ limit: { max: 1 } })
    const { visiting, session } = await logIn()
    await logIn()
    expect(sends(visiting)).toBe(false)
    expect(await visit(`session_id=${session.secret}`).update({ n: 1 })).toMatchObject({ data: { n: 1 } })
  })
})
