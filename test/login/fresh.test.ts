// Whether a password was verified lately: by this login, or elsewhere and earlier.
import { describe, expect, it } from 'vitest'
import { grace, openWith, setUp, user } from '../support/manager-kit.ts'
import { HOUR, MINUTE } from '../support/test-clock.ts'

it('isFresh: a password, verified lately, by this person', async () => {
  const { sessions, clock } = setUp()
  const session = await sessions.create({ user })
  expect(sessions.isFresh(session, '10m')).toBe(true)
  clock.advance(10 * MINUTE)
  const next = (await sessions.regenerate(session))!
  expect([sessions.isFresh(next, '10m'), sessions.isFresh(next, '9m')]).toEqual([true, false])
  expect(sessions.isFresh(await sessions.create(), '10m')).toBe(false)
  expect(sessions.isFresh(null, '10m')).toBe(false)
})

describe('verifiedAt: a login whose password was verified elsewhere, earlier or never', () => {
  it('counts for isFresh from then on, or never, and says nothing about when the session ends', async () => {
    const { sessions, clock } = setUp()
    const now = clock()
    const earlier = await sessions.create({ user, verifiedAt: now - 8 * MINUTE })
    const never = await sessions.create({ user, verifiedAt: null })
    const unsaid = await sessions.create({ user, verifiedAt: undefined })
    expect([earlier, never, unsaid].map(session => sessions.isFresh(session, '9m'))).toEqual([true, false, true])
    expect(sessions.isFresh(never, '400d')).toBe(false)
    clock.advance(2 * MINUTE)
    expect([earlier, never, unsaid].map(session => sessions.isFresh(session, '9m'))).toEqual([false, false, true])
    for (const session of [earlier, never]) {
      expect(session.createdAt).toBe(now)
      expect(session.absoluteExpiresAt).toBe(unsaid.absoluteExpiresAt)
    }
  })

  it('is honoured by requireUser', async () => {
    const { sessions, clock } = setUp()
    const { secret } = await sessions.create({ user, verifiedAt: clock() - HOUR })
    const visit = openWith(sessions, { secret })
    expect((await visit.requireUser({ freshWithin: '1h' })).user.id).toBe(1n)
    await expect(visit.requireUser({ freshWithin: '59m' })).rejects.toMatchObject({ code: 'ERR_SESSION_NOT_FRESH' })
  })

  it('survives each change of the session but the next login, and is no part of the data', async () => {
    for (const verifiedAt of [null, 8]) {
      const { sessions, clock } = setUp({ initial: () => ({ n: 1, flash: 'hi' }), rememberFor: '30d' })
      const given = verifiedAt === null ? null : clock() - verifiedAt * MINUTE
      const freshness = (session: any) => ['9m', '7m'].map(within => sessions.isFresh(session, within as '9m'))
      const anonymous = await sessions.create({ data: { n: 5 } })
      let session: any = await sessions.logIn(anonymous, {
        user,
        verifiedAt: given,
        data: (d: any) => ({ n: d.n }),
      })
      const expected = [verifiedAt !== null, false]
      const steps: (() => Promise<any>)[] = [
        () => sessions.get(session.secret),
        () => sessions.update(session, { n: 2 } as object),
        () =>
          sessions.update(session, (draft: any) => {
            draft.n += 1
          }),
        () => sessions.take(session, 'flash' as never).then(() => sessions.get(session.secret)),
        () => sessions.regenerate(session, grace),
        () => sessions.regenerate(session),
        () => sessions.regenerate(session.secret),
      ]
      for (const step of steps) {
        session = await step()
        expect(freshness(session)).toEqual(expected)
      }
      expect(session.data).toEqual({ n: 3, flash: 'hi' })
      const remembered = await sessions.redeemRememberToken(await sessions.issueRememberToken(session))
      expect(freshness(remembered!.session)).toEqual([false, false])
      const again = await sessions.logIn(session, { user, data: (before: any) => before })
      expect(freshness(again)).toEqual([true, true])
      expect(again.data).toEqual({ n: 3, flash: 'hi' })
    }
  })

  it('costs a session without it nothing, and does not count in maxDataBytes', async () => {
    const { sessions, store, clock } = setUp({ maxDataBytes: 9 })
    await sessions.create({ user, data: { a: '1' } })
    await sessions.create({ user, data: { a: '1' }, verifiedAt: clock() - 1 })
    expect(store.calls.map(({ args }) => args[0].data)).toEqual(['{"a":"1"}', `@v${clock() - 1}@{"a":"1"}`])
  })

  it('may be ahead of this clock by what clocks may differ, which is now', async () => {
    const { sessions, store, clock } = setUp()
    const session = await sessions.create({ user, verifiedAt: clock() + 5 * MINUTE })
    expect(store.calls[0]!.args[0].data).toBe('{}')
    clock.advance(MINUTE)
    expect(sessions.isFresh(session, '59s')).toBe(false)
  })

  it('a copy of a session is not fresh, but an error: it does not know when the password was verified', async () => {
    const { sessions } = setUp()
    const session = await sessions.create({ user, verifiedAt: null })
    expect(() => sessions.isFresh({ ...session } as never, '1h')).toThrow(
      /^session: expected the object that get\(\) or logIn\(\) returned/,
    )
  })
})
