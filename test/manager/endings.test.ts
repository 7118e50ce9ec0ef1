import { SessionManager } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { Endings } from '../../src/manager/endings.ts'
import { recordOf } from '../../src/session/session.ts'
import { BarrierStore } from '../support/barrier-store.ts'

it('a successor that is told of after the end of its session ends too, with all that follow', () => {
  const endings = new Endings()
  endings.moved('b', 'c')
  endings.end('a', 'left')
  endings.moved('a', 'b')
  expect(['a', 'b', 'c'].map(key => endings.isOver(key))).toEqual([true, true, true])
})

it('what began in the place of a session is named when that one ends, and begins no more afterwards', () => {
  const endings = new Endings()
  expect(endings.began('a', 'u')).toBe(true)
  expect(endings.end('a', 'left')).toEqual(['u'])
  expect(endings.began('a', 'v')).toBe(false)
  expect([endings.isOver('u'), endings.isOver('v')]).toEqual([true, true])
  endings.end('r', 'ended')
  expect(endings.began('r', 'w')).toBe(true)
  expect(endings.isOver('w')).toBe(false)
})

it('the cookie of a session is held back when its remember-me series ended', async () => {
  const sessions = new SessionManager({ store: new MemoryStore(), rememberFor: '30d', sweepInterval: false })
  const token = await sessions.issueRememberToken(await sessions.create({ user: { id: 1, name: 'ada' } }))
  const { session } = (await sessions.redeemRememberToken(token))!
  const endings = new Endings()
  expect(endings.has(session)).toBe(false)
  endings.end(recordOf(session)!.parent!, 'left')
  expect(endings.has(session)).toBe(true)
})

describe('what this process remembers of a session', () => {
  const chain = (endings: Endings, length: number) => {
    for (let at = 0; at < length; at += 1) endings.moved(`s${at}`, `s${at + 1}`)
  }

  it('that got a new ID: nothing may begin under the old one, and the new one lives', () => {
    const endings = new Endings()
    endings.moved('a', 'b')
    expect([endings.isLeft('a'), endings.isOver('a'), endings.hasFollower('a')]).toEqual([true, false, true])
    expect([endings.isLeft('b'), endings.isOver('b'), endings.hasFollower('b')]).toEqual([false, false, false])
  })

  it('that its browser left: what comes late in its place is left too', () => {
    const endings = new Endings()
    endings.end('a', 'left')
    endings.began('a', 'b')
    expect([endings.isLeft('b'), endings.isOver('b')]).toEqual([true, true])
    expect(endings.hasFollower('a')).toBe(false)
  })

  it('that was ended by others: its browser may begin anew, and once it left, not any more', () => {
    const endings = new Endings()
    endings.end('a', 'ended')
    expect([endings.isLeft('a'), endings.isOver('a')]).toEqual([false, true])
    endings.end('a', 'left')
    endings.end('a', 'ended')
    expect(endings.isLeft('a')).toBe(true)
  })

  it('that another follows: both end together, and where it has ended already, at once', () => {
    const endings = new Endings()
    endings.follows('a', 'b')
    expect(['a', 'b'].map(key => endings.isOver(key))).toEqual([false, false])
    expect(endings.end('a', 'left')).toEqual(['b'])
    expect([endings.isOver('b'), endings.isLeft('b')]).toEqual([true, true])
    endings.follows('a', 'c')
    expect([endings.isOver('c'), endings.isLeft('c')]).toEqual([true, true])
    endings.end('d', 'ended')
    endings.follows('d', 'e')
    expect([endings.isOver('e'), endings.isLeft('e')]).toEqual([true, false])
    endings.moved('f', 'g')
    endings.follows('f', 'h')
    expect(endings.isOver('h')).toBe(false)
  })

  it('names at its end what began in its place, and not the successors that the store knows', () => {
    const endings = new Endings()
    endings.moved('a', 'b')
    endings.began('b', 'c')
    endings.moved('c', 'd')
    endings.began('x', 'y')
    expect(endings.end('a', 'left')).toEqual(['c'])
    expect(['a', 'b', 'c', 'd', 'y'].map(key => endings.isOver(key))).toEqual([true, true, true, true, false])
    // A second end has them once more: an answer of the first may have been lost.
    expect(endings.end('a', 'left')).toEqual(['c'])
  })

  it('that was ended by others: what its browser began there keeps no remember token from beginning a session', () => {
    const endings = new Endings()
    endings.end('a', 'ended')
    expect(endings.began('a', 'b')).toBe(true)
    expect(endings.hasFollower('a')).toBe(false)
  })

  it('spares the one that is to go on, and what follows from it', () => {
    const endings = new Endings()
    endings.follows('a', 'b')
    endings.follows('a', 'c')
    endings.follows('b', 'd')
    expect(endings.end('a', 'left', 'b')).toEqual(['c'])
    expect(['a', 'b', 'c', 'd'].map(key => endings.isOver(key))).toEqual([true, false, true, false])
    expect(endings.end('b', 'left', 'b')).toEqual([])
    expect(endings.isOver('b')).toBe(false)
  })

  it('ends no one twice where sessions lead to each other in a ring', () => {
    const endings = new Endings()
    endings.follows('a', 'b')
    endings.follows('b', 'a')
    endings.follows('a', 'b')
    expect(endings.end('a', 'left')).toEqual(['b'])
  })

  it('is a few of what one client began with one ID: the last eight', () => {
    const endings = new Endings()
    for (let made = 1; made <= 20; made += 1) endings.began('a', `b${made}`)
    expect(endings.end('a', 'left')).toEqual([13, 14, 15, 16, 17, 18, 19, 20].map(at => `b${at}`))
  })

  it('is not crowded out by a successor that each late request tells of', () => {
    const endings = new Endings()
    endings.began('a', 'b')
    for (let request = 1; request <= 20; request += 1) endings.moved('a', 'c')
    expect(endings.end('a', 'left')).toEqual(['b'])
  })

  it('costs a logout no more than some store calls, however long a chain a client made', () => {
    const endings = new Endings()
    for (let at = 0; at < 1000; at += 1) endings.follows(`s${at}`, `s${at + 1}`)
    const began = endings.end('s0', 'left')
    expect(began).toEqual(Array.from({ length: 32 }, (_, at) => `s${at + 1}`))
    expect(endings.isOver('s32')).toBe(true)
    expect(endings.isOver('s40')).toBe(false)
  })

  it('says whether its browser has something in its place: not where the last of a chain has ended', () => {
    for (const length of [1, 2, 8]) {
      const endings = new Endings()
      chain(endings, length)
      expect(endings.hasFollower('s0')).toBe(true)
      endings.end(`s${length}`, 'left')
      expect(endings.hasFollower('s0'), `${length}`).toBe(false)
      expect(endings.hasFollower(`s${length}`)).toBe(false)
    }
    const endings = new Endings()
    chain(endings, 30)
    endings.end('s30', 'left')
    // So long a chain is not looked through.
    expect(endings.hasFollower('s0')).toBe(true)
  })
})

it('the cookie of a session that stands in the place of another is sent while neither has ended', async () => {
  const sessions = new SessionManager({ store: new MemoryStore(), sweepInterval: false })
  const { secret } = await sessions.create({ user: { id: 1, name: 'ada' } })
  const visit = openVisit(sessions, {
    method: 'POST',
    secure: true,
    header: () => null,
    cookie: `session_id=${secret}`,
  })
  const instead = await visit.create()
  expect(visit.cookies.map(({ value }) => value)).toEqual([instead.secret])
})

it('nothing is known of what is no session', () => {
  const endings = new Endings()
  endings.end('a', 'left')
  expect(endings.has({ key: 'a' })).toBe(false)
})

describe('two logouts of all devices of a user at once, and a login', () => {
  it('each knows of it until it ends itself, and one that begins later does not', () => {
    const endings = new Endings()
    const [first, second] = [endings.watch('1'), endings.watch('1')]
    first.end()
    endings.loggedIn('1')
    expect([first.hasLoggedIn, second.hasLoggedIn]).toEqual([false, true])
    const third = endings.watch('1')
    endings.loggedIn('2')
    expect(third.hasLoggedIn).toBe(false)
    second.end()
    third.end()
    endings.loggedIn('1')
    expect(third.hasLoggedIn).toBe(false)
  })
})

describe('the cookie of a session whose user was logged out everywhere', () => {
  const setUp = () => new SessionManager({ store: new MemoryStore(), sweepInterval: false })
  const user = { id: 1, name: 'ada' }

  it('is held back where the session was seen before, and sent where it began after', async () => {
    const sessions = setUp()
    const endings = new Endings()
    const [before, other, visitor] = [
      await sessions.create({ user }),
      await sessions.create({ user: { id: 2, name: 'max' } }),
      await sessions.create(),
    ]
    endings.endUser('1', null)
    const after = await sessions.create({ user })
    expect([before, other, visitor, after].map(session => endings.has(session))).toEqual([true, false, false, false])
    endings.endUser('1', null)
    expect(endings.has(after)).toBe(true)
  })

  it('is sent where it is the excepted one, under whichever of its IDs', async () => {
    const sessions = setUp()
    const endings = new Endings()
    const [here, other] = [await sessions.create({ user }), await sessions.create({ user })]
    const next = (await sessions.regenerate(here))!
    const last = (await sessions.regenerate(next))!
    endings.moved(here.key, next.key)
    endings.moved(next.key, last.key)
    endings.began(here.key, other.key)
    endings.endUser('1', here.key)
    expect([last, other].map(session => endings.has(session))).toEqual([false, true])
    // What has a new ID by now is sent under that one alone.
    expect([here, next].map(session => endings.has(session))).toEqual([true, true])
    endings.endUser('1', last.key)
    expect([last, other].map(session => endings.has(session))).toEqual([false, true])
  })

  it('is held back where what is told of new IDs leads round in a circle, or further than a late request is behind', async () => {
    const endings = new Endings()
    const session = await setUp().create({ user })
    endings.moved('a', 'b')
    endings.moved('b', 'a')
    for (let at = 0; at < 30; at += 1) endings.moved(`s${at}`, at === 29 ? session.key : `s${at + 1}`)
    for (const except of ['a', 's0']) {
      endings.endUser('1', except)
      expect(endings.has(session)).toBe(true)
    }
    endings.endUser('1', 's23')
    expect(endings.has(session)).toBe(false)
  })
})

describe('a login beside a logout of all devices of its user, whose cookie is held back', () => {
  const user = { id: 1, name: 'ada' }
  const ways: [string, (sessions: SessionManager) => Promise<(sessions: SessionManager) => Promise<object>>][] = [
    ['in place of none', async () => sessions => sessions.create({ user })],
    [
      'in place of a visitor’s session',
      async before => {
        const visitor = await before.create()
        return sessions => sessions.logIn(visitor, { user })
      },
    ],
    [
      'in place of another user’s session',
      async before => {
        const other = await before.create({ user: { id: 2, name: 'max' } })
        return sessions => sessions.logIn(other, { user })
      },
    ],
    [
      'by a remember token of before',
      async before => {
        const token = await before.issueRememberToken(await before.create({ user }))
        return sessions => sessions.redeemRememberToken(token).then(answer => answer ?? {})
      },
    ],
  ]
  it.each(ways)('%s: leaves no session that no browser has', async (_, prepare) => {
    for (const when of ['before', 'after'] as const) {
      const store = BarrierStore.over(new MemoryStore())
      const sessions = new SessionManager({ store, rememberFor: '30d', sweepInterval: false })
      const logIn = await prepare(sessions)
      const pause = store.pause('deleteUser', when)
      const everywhere = sessions.invalidateUser(1)
      await pause.reached
      await logIn(sessions)
      pause.resume()
      await everywhere
      expect(await sessions.list(1), when).toEqual([])
    }
  })

  it('and a visitor’s new session beside it is no login: the store is asked once', async () => {
    const store = BarrierStore.over(new MemoryStore())
    const sessions = new SessionManager({ store, sweepInterval: false })
    await sessions.create({ user })
    const visit = openVisit(sessions, { method: 'POST', secure: true, cookie: null, header: () => null })
    await visit.create()
    const pause = store.pause('deleteUser', 'after')
    const everywhere = sessions.invalidateUser(1)
    await pause.reached
    await visit.create()
    pause.resume()
    expect(await everywhere).toBe(1)
    expect(store.counts().deleteUser).toBe(1)
    expect(await sessions.count()).toBe(1)
  })
})
