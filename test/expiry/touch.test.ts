// The use of a session that is written down: once per interval.
import { describe, expect, it } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { grace, setUp, user } from '../support/manager-kit.ts'
import { HOUR, MINUTE, SECOND } from '../support/test-clock.ts'

it('a get writes the use down when the touch interval is over, unless it is told not to', async () => {
  const { sessions, store, clock } = setUp()
  const { secret } = await sessions.create({ user })
  clock.advance(3 * MINUTE - 1)
  await sessions.get(secret)
  clock.advance(1)
  await sessions.get(secret, { touch: false })
  expect(store.counts().touch).toBeUndefined()
  await sessions.get(secret, { touch: true })
  expect(store.counts().touch).toBe(1)
})

describe('the use in an interval', () => {
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

  it('of a session that got a new ID just before it is written leads on to that', async () => {
    const { sessions, store, session, manager } = await due()
    const pause = store.pause('touch', 'before')
    const visit = sessions.get(session.secret)
    await pause.reached
    const next = (await manager().regenerate(session.secret, grace))!
    pause.resume()
    const found = (await visit)!
    expect(found.secret).toBe(next.secret)
    // Known as one that was led on: it gets no other new ID.
    expect((await sessions.regenerate(found, grace))?.secret).toBe(next.secret)
  })

  it('of a session that was led on and got another new ID leads on to that', async () => {
    const { sessions, store, session, manager, clock } = await due()
    const node = manager()
    const between = (await node.regenerate(session, grace))!
    clock.advance(3 * MINUTE)
    const pause = store.pause('touch', 'before')
    const visit = sessions.get(session.secret)
    await pause.reached
    const last = (await node.regenerate(between, grace))!
    pause.resume()
    const found = (await visit)!
    expect(found.secret).toBe(last.secret)
  })

  it('of a session that the store calls gone and shows all the same is no reason to end it', async () => {
    const { sessions, store, session } = await due()
    store.next('touch', faults.answers('gone'))
    const found = (await sessions.get(session.secret))!
    expect(found.secret).toBe(session.secret)
    // It was not led on: it gets a new ID.
    expect((await sessions.regenerate(found, grace))?.secret).not.toBe(session.secret)
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

  it('tells of a clock that fails while it is written down', async () => {
    let looks = Number.POSITIVE_INFINITY
    const { sessions } = setUp({ rememberFor: '30d', now: () => (looks-- > 0 ? HOUR : Number.NaN) })
    const token = await sessions.issueRememberToken(await sessions.create({ user }))
    const { session } = (await sessions.redeemRememberToken(token))!
    looks = 1
    await expect(sessions.get(session.secret)).rejects.toThrow(/^now: expected epoch milliseconds/)
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
