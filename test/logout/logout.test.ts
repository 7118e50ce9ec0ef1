// What the end of one session means: for its device, for later requests of its browser, and where the store fails on the way.
import { describe, expect, it } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { cookiesSent, open, openWith, other, setUp, user } from '../support/manager-kit.ts'
import { SECOND } from '../support/test-clock.ts'

const CONFLICT = { code: 'ERR_SESSION_CONFLICT' }
const OUTAGE = { code: 'ERR_SESSION_STORE' }

it('revoke answers whether it ended a session of this user, and ends nothing else', async () => {
  const { sessions, store, clock, events } = setUp({ rememberFor: '30d' })
  const mine = await sessions.create({ user })
  const [theirs, visitor] = [await sessions.create({ user: other }), await sessions.create()]
  clock.advance(SECOND)
  await sessions.issueRememberToken(mine)
  const remembered = () => store.inner.listUser('1', 'remember', { now: clock() })
  const [series] = await remembered()
  events.length = 0
  for (const key of [theirs.key, visitor.key, series!.key]) expect(await sessions.revoke(1, key)).toBe(false)
  expect(await remembered()).toEqual([series])
  store.reset()
  for (const key of ['', 'x', mine.secret, `${mine.key}x`]) expect(await sessions.revoke(1, key)).toBe(false)
  expect([store.calls, events]).toEqual([[], []])
  expect(await sessions.revoke(1, mine.key)).toBe(true)
  expect(events).toEqual([{ type: 'destroyed', key: mine.key, userId: 1n, reason: 'revoked' }])
  // The device is not remembered either.
  expect(await remembered()).toEqual([])
  expect(await sessions.revoke(1, mine.key)).toBe(false)
})

it('a session that has expired is neither revoked nor changed, though its store still has it', async () => {
  const { sessions, clock, store, events } = setUp()
  const session = await sessions.create({ user })
  clock.advance(30 * 60 * SECOND)
  events.length = 0
  expect(await sessions.revoke(1, session.key)).toBe(false)
  expect(await sessions.updateUserSessions(1, { n: 1 })).toBe(0)
  expect(await store.inner.read(session.key, { now: 0 })).not.toBeNull()
  expect(events).toEqual([])
})

describe('a logout that fails', () => {
  const begun = async () => {
    const at = setUp({ rememberFor: '30d' })
    const login = open(at.sessions)
    return { ...at, login, session: await login.logIn({ user }) }
  }

  it.each(['read', 'delete'] as const)(
    'at the %s is one all the same for what comes late: nothing begins in its place, and its cookie is not sent',
    async verb => {
      const { sessions, store, login, session } = await begun()
      store.next(verb, faults.rejectsAfter)
      await expect(sessions.destroy(session.secret)).rejects.toMatchObject(OUTAGE)
      expect(cookiesSent(login)).toEqual([])
      await sessions.destroy(session.secret)
      const late = openWith(sessions, session)
      await expect(late.create()).rejects.toMatchObject(CONFLICT)
      expect(cookiesSent(late)).toEqual([])
    },
  )

  it('before it was done lets nothing begin in its place either', async () => {
    const { sessions, store, session } = await begun()
    store.next('read', faults.rejects)
    await expect(sessions.destroy(session.secret)).rejects.toMatchObject(OUTAGE)
    // Ended by another node meanwhile.
    await store.inner.delete(session.key, { now: session.createdAt })
    await expect(openWith(sessions, session).create()).rejects.toMatchObject(CONFLICT)
  })

  it('after the remember token has ended lets nothing begin with that token either', async () => {
    const { sessions, store } = setUp({ rememberFor: '30d' })
    const token = await sessions.issueRememberToken(await sessions.create({ user }))
    const { session } = (await sessions.redeemRememberToken(token))!
    store.next('delete', proceed => proceed())
    store.next('delete', faults.rejects)
    await expect(sessions.destroy(session)).rejects.toMatchObject(OUTAGE)
    await expect(open(sessions, `remember_token=${token}`).create()).rejects.toMatchObject(CONFLICT)
  })
})

it('a session that others ended: its cookie is sent and finds nothing, and its browser may begin anew', async () => {
  const { sessions } = setUp({ limit: { max: 1 } })
  const ends: ((key: string) => Promise<unknown>)[] = [
    key => sessions.revoke(1, key),
    () => sessions.invalidateUser(1),
    () => sessions.create({ user }),
  ]
  for (const end of ends) {
    const login = open(sessions)
    const session = await login.logIn({ user })
    await end(session.key)
    expect(cookiesSent(login)).toEqual([session.secret])
    expect(await openWith(sessions, session).get()).toBeNull()
    expect(await openWith(sessions, session).update({ n: 1 })).toMatchObject({ user: null, data: { n: 1 } })
  }
})
