// What an ID leads to, and what the first visit of an interval writes.

import { type Session, type SessionId, type SessionManager, SessionStoreError, type UserSession } from 'coatcheck'
import { CLOCK_TOLERANCE } from 'coatcheck/custom-store'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { barrierManagers } from '../support/barrier-managers.ts'
import { faults } from '../support/barrier-store.ts'
import { MINUTE, SECOND } from '../support/test-clock.ts'

const user = { id: 1, name: 'ada' }
const setUp = (options: object = {}) => barrierManagers(new MemoryStore(), options)

describe('an ID that was rotated', () => {
  it('leads on for its grace and five minutes more, and not a moment longer', async () => {
    const { sessions, clock } = setUp()
    const old = await sessions.create({ user })
    const next = (await sessions.regenerate(old, { grace: '1m' }))!
    clock.advance(MINUTE + CLOCK_TOLERANCE - 1)
    const found = (await sessions.get(old.secret, { touch: false }))!
    expect(found.secret).toBe(next.secret)
    clock.advance(1)
    expect(await sessions.get(old.secret, { touch: false })).toBeNull()
    expect(await sessions.get(next.secret)).not.toBeNull()
  })

  it('leads on over eight rotations that a late request has missed, and over no more', async () => {
    const { sessions } = setUp()
    const ids = [(await sessions.create()).secret]
    for (let times = 0; times < 9; times += 1)
      ids.push((await sessions.regenerate(ids.at(-1)! as SessionId, { grace: '1m' }))!.secret)
    expect((await sessions.get(ids[1]))?.secret).toBe(ids[9])
    expect(await sessions.get(ids[0])).toBeNull()
  })

  it('leads nowhere where the forward was not made from it: a reader of the store cannot write a way to a session', async () => {
    const { sessions, store, clock } = setUp()
    const old = await sessions.create()
    await sessions.regenerate(old, { grace: '1m' })
    const target = await sessions.create({ user })
    const forward: any = await store.inner.read(old.key, { now: clock() })
    store.every('read', async (proceed, [key]) => (key === old.key ? { ...forward, movedTo: target.key } : proceed()))
    store.reset()
    expect(await sessions.get(old.secret)).toBeNull()
    expect(store.counts()).toEqual({ read: 1 })
  })

  it('is dead at once where the new ID is of regenerate', async () => {
    const { sessions } = setUp()
    const old = await sessions.create({ user })
    const next = (await sessions.regenerate(old))!
    expect(await sessions.get(old.secret)).toBeNull()
    expect(await sessions.get(next.secret)).not.toBeNull()
  })

  it('is led on by its key too where one session is revoked', async () => {
    const { sessions, manager } = setUp()
    const old = await sessions.create({ user })
    const next = (await manager().regenerate(old))!
    expect(await sessions.revoke(1, old.key)).toBe(true)
    expect(await sessions.get(next.secret)).toBeNull()
  })
})

describe.each([8, 30])('a session that got %i new IDs since', count => {
  async function renewedOften(begin: (sessions: SessionManager) => Promise<Session>) {
    const { sessions, manager } = setUp({ rememberFor: '30d' })
    const old = await begin(sessions)
    let last = old
    for (let times = 0; times < count; times += 1) last = (await manager().regenerate(last))!
    return { sessions, manager, old, last }
  }

  it('is revoked by its first key', async () => {
    const { sessions, manager, old, last } = await renewedOften(at => at.create({ user }))
    expect(await sessions.revoke(1, old.key)).toBe(true)
    expect(await manager().get(last.secret)).toBeNull()
  })

  it('ends by its first ID, and the remember token that it began with', async () => {
    let token = ''
    const { sessions, manager, old, last } = await renewedOften(async at => {
      const recalled = await at.redeemRememberToken(
        await at.issueRememberToken((await at.create({ user })) as UserSession),
      )
      token = recalled!.token
      return recalled!.session
    })
    await sessions.destroy(old.secret)
    expect(await manager().get(last.secret)).toBeNull()
    expect(await manager().redeemRememberToken(token)).toBeNull()
  })
})

it('forwards that lead in a circle lead nowhere', async () => {
  const { sessions, store } = setUp()
  const [one, two] = [await sessions.create({ user }), await sessions.create({ user })]
  const forward = (movedTo: string) => ({ movedTo, salt: '', until: 0 })
  store.every('read', (_, [key]) => forward(key === one.key ? two.key : one.key))
  store.reset()
  expect(await sessions.revoke(1, one.key)).toBe(false)
  expect(store.counts()).toEqual({ read: 2 })
})

it('a session that has expired is neither revoked nor changed, though its store still has it', async () => {
  const { sessions, clock, store, events } = setUp()
  const session = await sessions.create({ user })
  clock.advance(30 * MINUTE)
  events.length = 0
  expect(await sessions.revoke(1, session.key)).toBe(false)
  expect(await sessions.updateUserSessions(1, { n: 1 })).toBe(0)
  expect(await store.inner.read(session.key, { now: 0 })).not.toBeNull()
  expect(events).toEqual([])
})

it('what is no session at all is refused by the verbs that need one', async () => {
  const { sessions, store } = setUp({ rememberFor: '30d' })
  const secret = (await sessions.create({ user })).secret
  store.reset()
  for (const wrong of [null, undefined, 7, true, secret])
    for (const run of [
      () => sessions.update(wrong as never, { n: 1 }),
      () => sessions.take(wrong as never, 'n'),
      () => sessions.issueRememberToken(wrong as never),
    ])
      await expect(run()).rejects.toThrow('session: expected the object that get() or logIn() returned')
  expect(store.calls).toEqual([])
})

describe('what a store answers to a read', () => {
  const answering = async (change: (record: any, clock: () => number) => unknown, options: object = {}) => {
    const at = setUp(options)
    const session = await at.sessions.create({ user })
    const record = await at.store.inner.read(session.key, { now: 0 })
    at.store.every('read', faults.answers(change(record, at.clock)))
    at.store.reset()
    return { ...at, session }
  }

  it('is told as corrupt, with its key and the reason, where the store found it so', async () => {
    const { sessions, session, events } = await answering(() => ({ corrupt: 'data is no text' }))
    expect(await sessions.get(session.secret)).toBeNull()
    expect(events.slice(1)).toEqual([{ type: 'corrupt-record', key: session.key, cause: 'data is no text' }])
  })

  it('is an outage, and no logout and no one else’s session, where it is another record', async () => {
    const { sessions, session } = await answering(record => ({ ...record, key: `${record.key.slice(0, -1)}-` }))
    const error = await sessions.get(session.secret).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(SessionStoreError)
    expect(error).toMatchObject({
      operation: 'read',
      outcome: 'not-applied',
      message: 'the store returned an invalid result for `read` (object)',
    })
  })

  it('is no session where it is a remember-me series, or has expired by the clock of the manager', async () => {
    for (const [change, isFound] of [
      [(record: any) => record, true],
      [(record: any) => ({ ...record, kind: 'remember' }), false],
      [(record: any, clock: () => number) => ({ ...record, expiresAt: clock() }), false],
      [(record: any, clock: () => number) => ({ ...record, expiresAt: clock() + 1 }), true],
    ] as const) {
      const { sessions, session } = await answering(change)
      expect((await sessions.get(session.secret)) !== null).toBe(isFound)
    }
  })

  it('is told, and stays, where its user ID is of another kind: a deployment with wrong `userIds` deletes no session', async () => {
    const { sessions, store, events, manager } = setUp()
    const session = await manager({ userIds: 'string' }).create({
      user: { id: 'ada@example.com', name: 'ada' },
    } as never)
    events.length = 0
    store.reset()
    expect(await sessions.get(session.secret)).toBeNull()
    expect(events).toEqual([{ type: 'corrupt-record', key: session.key, cause: "user ID is not of kind 'bigint'" }])
    expect(store.counts()).toEqual({ read: 1 })
    expect(await manager({ userIds: 'string' }).get(session.secret)).not.toBeNull()
  })
})

describe('what is handed to a verb in place of a session', () => {
  const verbs: [string, (sessions: SessionManager, session: never) => Promise<unknown>][] = [
    ['get', (sessions, session) => sessions.get(session)],
    ['update', (sessions, session) => sessions.update(session, { n: 1 })],
    ['take', (sessions, session) => sessions.take(session, 'n')],
    ['regenerate', (sessions, session) => sessions.regenerate(session)],
    ['a login', (sessions, session) => sessions.logIn(session, { user })],
    ['rotate', (sessions, session) => sessions.regenerate(session, { grace: '1m' })],
    ['destroy', (sessions, session) => sessions.destroy(session)],
    ['remember', (sessions, session) => sessions.issueRememberToken(session)],
    ['invalidateUser', (sessions, session) => sessions.invalidateUser(1, { except: session })],
  ]
  it.each(verbs)(
    '%s refuses a copy, an entry of a list and another tenant’s, and asks the store nothing',
    async (...given) => {
      const [, run] = given
      const { sessions, store } = setUp({ rememberFor: '30d' })
      const session = await sessions.create({ user })
      const [listed] = await sessions.list(1)
      const theirs = await sessions.namespace('acme').create({ user })
      store.reset()
      for (const wrong of [{ ...session }, listed, Object.create(session), {}])
        await expect(run(sessions, wrong as never)).rejects.toThrow(
          'session: expected the object that get() or logIn() returned, not a copy and not an entry of list() (if it is that, two versions of coatcheck are installed: check `npm ls coatcheck`)',
        )
      await expect(run(sessions, theirs as never)).rejects.toThrow('session: belongs to another namespace')
      expect(store.calls).toEqual([])
      expect(await sessions.get(session.secret)).not.toBeNull()
    },
  )
})

describe('the visit of an interval', () => {
  const due = async (options: object = {}) => {
    const at = setUp(options)
    const session = await at.sessions.create({ user: { ...user, passwordVersion: null } })
    at.clock.advance(5 * MINUTE)
    at.store.reset()
    return { ...at, session }
  }

  it('is written once, however many requests run in parallel and whatever they are answered', async () => {
    const { sessions, store, session, clock } = await due()
    const pause = store.pause('touch', 'before')
    const visits = Array.from({ length: 5 }, () => sessions.get(session.secret))
    await pause.reached
    await Promise.all(visits.slice(1))
    pause.resume()
    const seen = await Promise.all(visits)
    expect(store.counts().touch).toBe(1)
    expect(seen.map(each => each?.seenAt === clock())).toEqual([true, false, false, false, false])
    expect([seen[0]?.seenAt, seen[0]?.expiresAt]).toEqual([clock(), session.expiresAt + 5 * MINUTE])
    clock.advance(3 * MINUTE - 1)
    await sessions.get(session.secret)
    expect(store.counts().touch).toBe(1)
    clock.advance(1)
    await sessions.get(session.secret)
    expect(store.counts().touch).toBe(2)
  })

  it('of a session that was rotated just before it is written leads on, and the new cookie is due', async () => {
    const { sessions, store, session, manager } = await due()
    const pause = store.pause('touch', 'before')
    const visit = sessions.get(session.secret)
    await pause.reached
    const next = (await manager().regenerate(session.secret, { grace: '1m' }))!
    pause.resume()
    const found = (await visit)!
    expect(found.secret).toBe(next.secret)
    // Known as one that was led on: it is not rotated again.
    expect((await sessions.regenerate(found, { grace: '1m' }))?.secret).toBe(next.secret)
  })

  it('of a session that was led on and rotated once more stays one that was led on', async () => {
    const { sessions, store, session, manager, clock } = await due()
    const node = manager()
    const between = (await node.regenerate(session, { grace: '1m' }))!
    clock.advance(3 * MINUTE)
    const pause = store.pause('touch', 'before')
    const visit = sessions.get(session.secret)
    await pause.reached
    const last = (await node.regenerate(between, { grace: '1m' }))!
    pause.resume()
    const found = (await visit)!
    expect(found.secret).toBe(last.secret)
  })

  it('of a session that ended meanwhile finds nothing', async () => {
    const { sessions, store, session, manager } = await due()
    const pause = store.pause('touch', 'before')
    const visit = sessions.get(session.secret)
    await pause.reached
    await manager().destroy(session)
    pause.resume()
    expect(await visit).toBeNull()
  })

  it('of a session that the store calls gone and shows all the same is no reason to end it', async () => {
    const { sessions, store, session } = await due()
    store.next('touch', faults.answers('gone'))
    const found = (await sessions.get(session.secret))!
    expect(found.secret).toBe(session.secret)
    // It was not led on: a rotation gives it a new ID.
    expect((await sessions.regenerate(found, { grace: '1m' }))?.secret).not.toBe(session.secret)
  })

  it('tells what fails beside the store: it hides no defect of the application', async () => {
    let fails = false
    const getPasswordVersion = () => {
      if (fails) throw new RangeError('a defect of the application')
      return 0
    }
    const { sessions, store, session } = await due({ getPasswordVersion })
    store.next('touch', async () => {
      fails = true
      return 'gone'
    })
    await expect(sessions.get(session.secret)).rejects.toThrow('a defect of the application')
  })

  it('is told to the store with the time by this clock, and until when it waits', async () => {
    const { sessions, store, session, clock } = await due()
    await sessions.get(session.secret)
    const { args } = store.calls.find(({ verb }) => verb === 'touch')!
    expect(args).toEqual([
      session.key,
      clock(),
      session.expiresAt + 5 * MINUTE,
      { now: clock(), deadline: expect.any(Number) },
    ])
  })

  it('of a session that a remember token began is noted in its series once, at the first', async () => {
    const { sessions, store, clock } = setUp({ rememberFor: '30d' })
    const { session } = (await sessions.redeemRememberToken(
      await sessions.issueRememberToken(await sessions.create({ user })),
    ))!
    store.reset()
    await sessions.get(session.secret)
    expect(store.counts()).toEqual({ read: 2, update: 1, touch: 1 })
    clock.advance(5 * MINUTE)
    store.reset()
    await sessions.get(session.secret)
    expect(store.counts()).toEqual({ read: 1, touch: 1 })
  })

  it('that could not be written is no reason to refuse, and is tried again after a tenth of the interval', async () => {
    const { sessions, store, session, clock } = await due()
    store.next('touch', faults.rejects)
    const seen = (await sessions.get(session.secret))!
    expect(seen.expiresAt).toBe(session.expiresAt)
    clock.advance(18 * SECOND - 1)
    await sessions.get(session.secret)
    expect(store.counts().touch).toBe(1)
    clock.advance(1)
    expect((await sessions.get(session.secret))?.seenAt).toBe(clock())
    expect(store.counts().touch).toBe(2)
  })

  it('is written where the clock was set back since another one failed', async () => {
    const { sessions, store, session, clock } = await due()
    clock.advance(15 * MINUTE)
    store.next('touch', faults.rejects)
    await sessions.get(session.secret)
    clock.advance(-10 * MINUTE)
    expect((await sessions.get(session.secret))?.seenAt).toBe(clock())
    expect(store.counts().touch).toBe(2)
  })
})
