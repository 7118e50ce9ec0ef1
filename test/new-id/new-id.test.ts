// A new ID for the same session: who gets it, what it prolongs, and a remember token that is asked for with the old one.
import type { Session, SessionManager } from 'coatcheck'
import { describe, expect, it } from 'vitest'
import { grace, setUp, user } from '../support/manager-kit.ts'
import { MINUTE } from '../support/test-clock.ts'

type Renew = (sessions: SessionManager, of: Session | Session['secret']) => Promise<Session | null>
const WITH_GRACE: Renew = (sessions, of) => sessions.regenerate(of, grace)
const WITHOUT: Renew = (sessions, of) => sessions.regenerate(of)
const BOTH: [string, Renew][] = [
  ['with a grace', WITH_GRACE],
  ['without a grace', WITHOUT],
]

it('an old ID within its grace gets the same new cookie, by the ID and by the session that was found with it', async () => {
  const { sessions, store } = setUp()
  const old = await sessions.create({ user })
  const next = (await sessions.regenerate(old, grace))!
  const found = (await sessions.get(old.secret))!
  store.reset()
  expect((await sessions.regenerate(old.secret, grace))?.secret).toBe(next.secret)
  // What leads there, and what it leads to.
  expect(store.counts()).toEqual({ read: 2 })
  await sessions.update(next, { n: 1 })
  store.reset()
  // Not shown as it was, but as it is.
  expect(await sessions.regenerate(found, grace)).toMatchObject({ secret: next.secret, data: { n: 1 } })
  expect(store.counts()).toEqual({ read: 1 })
  await sessions.destroy(next)
  expect(await sessions.regenerate(found, grace)).toBeNull()
})

it('without a grace a session that an old ID leads to gets a new ID of its own', async () => {
  const { sessions } = setUp()
  const old = await sessions.create({ user })
  const next = (await sessions.regenerate(old, grace))!
  const last = (await sessions.regenerate(old.secret))!
  expect([old.secret, next.secret]).not.toContain(last.secret)
  expect(await sessions.get(next.secret)).toBeNull()
  expect((await sessions.list(1)).map(({ key }) => key)).toEqual([last.key])
})

it.each(BOTH)('where another process came before with a grace, one %s gives a session that lives', async (_, renew) => {
  const { sessions, store, manager } = setUp()
  const old = await sessions.create({ user })
  const pause = store.pause('replace', 'before')
  const renewing = renew(sessions, old)
  await pause.reached
  const next = (await manager().regenerate(old, grace))!
  pause.resume()
  const last = (await renewing)!
  expect(last.secret === next.secret).toBe(renew === WITH_GRACE)
  expect((await sessions.list(1)).map(({ key }) => key)).toEqual([last.key])
})

it.each(BOTH)(
  'a new ID %s is a use: the session lives on from then, in all no longer than it may',
  async (_, renew) => {
    const { sessions, clock } = setUp({ idleTimeout: '30m', absoluteTimeout: '1h' })
    const old = await sessions.create({ user })
    clock.advance(20 * MINUTE)
    const next = (await renew(sessions, old.secret))!
    expect([next.seenAt, next.expiresAt - next.createdAt]).toEqual([clock(), 50 * MINUTE])
    clock.advance(29 * MINUTE)
    const last = (await renew(sessions, next.secret))!
    expect([last.createdAt, last.expiresAt - last.createdAt]).toEqual([old.createdAt, 60 * MINUTE])
  },
)

describe.each(BOTH)('a new ID %s of a remembered session that was not used yet', (_, renew) => {
  const unused = async () => {
    const at = setUp({ rememberFor: '30d', idleTimeout: '30m' })
    const token = await at.sessions.issueRememberToken(await at.sessions.create({ user }))
    const { session } = (await at.sessions.redeemRememberToken(token))!
    return { ...at, session }
  }

  it.each([5, 29, 50])('from a snapshot of %i minutes ago sets back no use since', async minutes => {
    const { sessions, clock, session } = await unused()
    for (let minute = 0; minute < minutes; minute += 1) {
      clock.advance(MINUTE)
      await sessions.get(session.secret)
    }
    const next = (await renew(sessions, session))!
    const times = { seenAt: clock(), expiresAt: clock() + 30 * MINUTE }
    expect(next).toMatchObject(times)
    expect(await sessions.get(next.secret, { touch: false })).toMatchObject(times)
  })

  it('beside its first use ends it no earlier than that says', async () => {
    const { sessions, store, clock, session } = await unused()
    clock.advance(29 * MINUTE)
    const pause = store.pause('replace', 'before')
    const renewing = renew(sessions, session)
    await pause.reached
    const used = (await sessions.get(session.secret))!
    expect(used.expiresAt).toBe(clock() + 30 * MINUTE)
    pause.resume()
    const next = (await renewing)!
    expect((await sessions.get(next.secret, { touch: false }))?.expiresAt).toBe(used.expiresAt)
  })
})

describe('a remember token that is asked for with the session of before a new ID', () => {
  it('is given within the grace, and lives and ends with the session', async () => {
    for (const isBeside of [false, true]) {
      const { sessions, store, manager } = setUp({ rememberFor: '30d' })
      const old = await sessions.create({ user })
      const renewed = isBeside ? null : await manager().regenerate(old, grace)
      store.reset()
      const pause = store.pause('create', 'before')
      const asking = sessions.issueRememberToken(old)
      await pause.reached
      const next = renewed ?? (await manager().regenerate(old, grace))!
      pause.resume()
      const token = await asking
      expect(store.counts()).toMatchObject({ create: 2, read: 2 })
      expect((await sessions.redeemRememberToken(token))?.session.user.name).toBe('ada')
      await sessions.revoke(1, next.key)
      expect(await sessions.redeemRememberToken(token)).toBeNull()
    }
  })

  it('is given too where the session gets another new ID while it is looked for', async () => {
    const { sessions, store, manager } = setUp({ rememberFor: '30d' })
    const old = await sessions.create({ user })
    const next = (await manager().regenerate(old, grace))!
    store.next('create', proceed => proceed())
    store.next('create', async proceed => {
      await manager().regenerate(next, grace)
      return proceed()
    })
    expect(await sessions.redeemRememberToken(await sessions.issueRememberToken(old))).not.toBeNull()
  })

  it('is not given where the session has ended, or got a new ID that the old one does not lead to', async () => {
    for (const end of ['destroy', 'regenerate'] as const) {
      const { sessions } = setUp({ rememberFor: '30d' })
      const old = await sessions.create({ user })
      await sessions[end](old)
      await expect(sessions.issueRememberToken(old)).rejects.toMatchObject({ code: 'ERR_SESSION_UNAUTHENTICATED' })
      expect(await sessions.list(1)).toHaveLength(end === 'destroy' ? 0 : 1)
    }
  })
})
