import type { SessionManager } from 'coatcheck'
import { CLOCK_TOLERANCE } from 'coatcheck/custom-store'
import { describe, expect, it } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { grace, times, user } from '../support/manager-kit.ts'
import { MINUTE } from '../support/test-clock.ts'
import { DAY, device, redeemed, setUpRemember as setUp, WINDOW } from './devices.ts'

it('a token brings its user back, as remembered and never fresh', async () => {
  const at = setUp()
  const { session, token } = await device(at)
  expect(await at.sessions.get(session)).toBeNull()
  const recalled = (await at.sessions.redeemRememberToken(token))!
  expect(recalled.session.user).toEqual({ id: 1n, name: 'ada' })
  expect([recalled.session.remembered, session.remembered]).toEqual([true, false])
  // Stored as not yet used, and shown as seen when it began.
  expect(recalled.session.seenAt).toBe(recalled.session.createdAt)
  expect(at.sessions.isFresh(recalled.session, '1h')).toBe(false)
  expect(recalled.token).not.toBe(token)
  expect((await at.sessions.get(recalled.session.secret))?.remembered).toBe(true)
  expect(await at.sessions.redeemRememberToken(recalled.token)).not.toBeNull()
})

describe('a token is given', () => {
  const refused = (at: ReturnType<typeof setUp>) => at.events.filter(({ type }) => type === 'write-refused')

  it('with a series that ends when it says, and is told as nothing', async () => {
    const at = setUp()
    const session = await at.sessions.create({ user })
    at.events.length = 0
    await at.sessions.issueRememberToken(session)
    const [series] = await at.store.inner.listUser('1', 'remember', { now: at.clock() })
    const end = at.clock() + 30 * DAY
    expect(series).toMatchObject({ userName: 'ada', parent: session.key, expiresAt: end, absoluteExpiresAt: end })
    expect(at.events).toEqual([])
  })

  it('not to a session that has ended, nor to one whose password is older than the last logout everywhere', async () => {
    const at = setUp()
    const [ended, old] = [await at.sessions.create({ user }), await at.sessions.create({ user })]
    await at.sessions.destroy(ended)
    await expect(at.sessions.issueRememberToken(ended)).rejects.toMatchObject({ code: 'ERR_SESSION_UNAUTHENTICATED' })
    expect(refused(at).filter(({ reason }) => reason === 'stale-login')).toEqual([])
    await at.sessions.invalidateUser(1, { except: old, minPasswordVersion: 1 })
    await expect(at.sessions.issueRememberToken(old)).rejects.toMatchObject({ code: 'ERR_SESSION_STALE_LOGIN' })
    expect(refused(at).at(-1)).toMatchObject({ reason: 'stale-login', key: old.key, userId: 1n })
    expect(await at.store.inner.listUser('1', 'remember', { now: at.clock() })).toEqual([])
  })
})

describe('two processes that redeem one remember token', () => {
  const redeeming = async () => {
    const at = setUp()
    const token = await at.sessions.issueRememberToken(await at.sessions.create({ user }))
    const pause = at.store.pause('create', 'before')
    const slow = at.sessions.redeemRememberToken(token)
    await pause.reached
    return { ...at, token, slow, pause, node: at.manager() }
  }

  it('begin one session, whichever stores it', async () => {
    const { slow, pause, node, token, sessions } = await redeeming()
    const quick = (await node.redeemRememberToken(token))!
    pause.resume()
    const answer = (await slow)!
    expect([answer.session.secret, answer.token]).toEqual([quick.session.secret, quick.token])
    expect(answer.session.remembered).toBe(true)
    expect(await sessions.list(1)).toHaveLength(2)
  })

  it('begin no second one where the first got a new ID meanwhile, or ended', async () => {
    for (const end of [
      (node: SessionManager, session: any) => node.regenerate(session),
      (node: SessionManager, session: any) => node.regenerate(session, grace).then(next => node.regenerate(next)),
    ]) {
      const { slow, pause, node, token, sessions } = await redeeming()
      await end(node, (await node.redeemRememberToken(token))!.session)
      pause.resume()
      expect(await slow).toBeNull()
      expect(await sessions.list(1)).toHaveLength(2)
    }
  })
})

it('to the last moment of the six minutes a spent token writes nothing; after them it begins another session, with the same next token', async () => {
  for (const wait of [WINDOW, WINDOW + 1]) {
    const at = await redeemed()
    const { token, first } = at
    at.clock.advance(wait)
    at.store.reset()
    const again = (await at.sessions.redeemRememberToken(token))!
    expect(again.token).toBe(first.token)
    expect(again.session.secret === first.session.secret).toBe(wait === WINDOW)
    expect(at.store.counts()).toEqual(wait === WINDOW ? { read: 2 } : { read: 1, update: 1, delete: 1, create: 1 })
  }
})

describe('one token in a loop', () => {
  it('leaves three sessions of its device at most: that of the login, the last and the new one', async () => {
    const at = setUp({ idleTimeout: '12h' })
    const login = await at.sessions.create({ user })
    let token = await at.sessions.issueRememberToken(login)
    let last: string | null = null
    for (const _ of times(50)) {
      const begun = (await at.sessions.redeemRememberToken(token))!
      const live = (await at.sessions.list(1)).map(({ key }) => key).sort()
      expect(live).toEqual(
        [login.key, last ?? login.key, begun.session.key].filter((key, at, all) => all.indexOf(key) === at).sort(),
      )
      last = begun.session.key
      token = begun.token
    }
    expect(at.thefts()).toEqual([])
  })

  it('ends no session of another device, nor one that its next token began in a parallel request', async () => {
    const at = setUp()
    const [{ token }, other] = [await device(at), await device(at)]
    const others = (await at.sessions.redeemRememberToken(other.token))!
    const first = (await at.sessions.redeemRememberToken(token))!
    const second = (await at.sessions.redeemRememberToken(first.token))!
    const third = await Promise.all(times(5).map(() => at.sessions.redeemRememberToken(second.token)))
    expect(new Set(third.map(each => each!.session.key)).size).toBe(1)
    for (const { session } of [others, second, third[0]!])
      expect(await at.sessions.get(session.secret), session.key).not.toBeNull()
    expect(await at.sessions.get(first.session.secret)).toBeNull()
  })
})

it('each rotation begins a session later than the one before, also where the clock stands still or is set back', async () => {
  const at = await redeemed()
  const { first } = at
  const second = (await at.sessions.redeemRememberToken(first.token))!
  const third = (await at.manager({ now: at.clock.skewed(-5 * MINUTE) }).redeemRememberToken(second.token))!
  expect(first.session.createdAt).toBe(at.clock())
  expect(second.session.createdAt).toBeGreaterThan(first.session.createdAt)
  expect(third.session.createdAt).toBeGreaterThan(second.session.createdAt)
})

it('a token whose series ends while it is redeemed begins nothing, and asks the store no more', async () => {
  const at = setUp()
  const { token } = await device(at)
  at.store.next('update', async proceed => {
    await at.store.inner.deleteUser('1', { minPasswordVersionUntil: at.clock() }, { now: at.clock() })
    return proceed()
  })
  at.store.reset()
  expect(await at.sessions.redeemRememberToken(token)).toBeNull()
  expect(at.store.counts()).toEqual({ read: 1, update: 1 })
})

it('a token whose session ended under a new ID, before anybody came with it, begins another at once', async () => {
  const at = await redeemed()
  const { token, first } = at
  const renewed = (await at.sessions.regenerate(first.session))!
  // It may be on its way to the browser.
  for (const sessions of [at.sessions, at.manager()]) expect(await sessions.redeemRememberToken(token)).toBeNull()
  await at.store.inner.delete(renewed.key, { now: at.clock() })
  for (const sessions of [at.manager(), at.sessions]) {
    const next = (await sessions.redeemRememberToken(token))!
    expect(next.session.secret).not.toBe(first.session.secret)
    expect(next.token).toBe(first.token)
    expect(await sessions.get(next.session.secret, { touch: false })).not.toBeNull()
    expect(await at.sessions.list(1)).toHaveLength(1)
  }
  expect(at.thefts()).toEqual([])
})

describe('theft', () => {
  const stolen: Record<string, (at: ReturnType<typeof setUp>, first: any) => Promise<unknown>> = {
    'came back with get': ({ sessions }, { session }) => sessions.get(session.secret),
    'saved something in the first request, then came back': async ({ sessions }, { session }) => {
      await sessions.update(session, { seen: 1 })
      await sessions.get(session.secret)
    },
    'got a new ID in the first request, then came back': async ({ sessions }, { session }) => {
      const next = await sessions.regenerate(session)
      await sessions.get(next!.secret)
    },
    'got a new ID with a grace, then came back': async ({ sessions }, { session }) => {
      const next = await sessions.regenerate(session.secret, grace)
      await sessions.get(next!.secret)
    },
  }
  it.each(Object.entries(stolen))('is a spent token after the window, where the browser %s', async (_, comeBack) => {
    const at = await redeemed()
    const { token, first } = at
    await comeBack(at, first)
    at.clock.advance(WINDOW + 1)
    // In another process, or after a restart.
    expect(await at.manager().redeemRememberToken(token)).toBeNull()
    expect(at.thefts()).toMatchObject([{ userId: 1n }])
    expect(await at.sessions.list(1)).toEqual([])
    expect(await at.sessions.redeemRememberToken(first.token)).toBeNull()
    expect(await at.sessions.redeemRememberToken(token)).toBeNull()
    expect(at.thefts()).toHaveLength(1)
  })

  it('a save in the request that started the session is no use: its response may be lost', async () => {
    const at = await redeemed()
    const { token, session } = at
    await at.sessions.update(session, { hello: 1 })
    at.clock.advance(2 * WINDOW)
    expect(await at.sessions.redeemRememberToken(token)).not.toBeNull()
    expect(at.thefts()).toEqual([])
  })

  it('ends this device alone, or everything of the user by option', async () => {
    for (const onTheft of ['end-device', 'invalidate-user'] as const) {
      const at = await redeemed({ onTheft })
      const { token, first } = at
      await at.sessions.get(first.session.secret)
      const other = await at.sessions.create({ user })
      const otherToken = await at.sessions.issueRememberToken(other)
      at.clock.advance(WINDOW + 1)
      expect(await at.sessions.redeemRememberToken(token)).toBeNull()
      expect((await at.sessions.get(other)) !== null).toBe(onTheft === 'end-device')
      expect((await at.sessions.redeemRememberToken(otherToken)) !== null).toBe(onTheft === 'end-device')
      expect(at.thefts()).toHaveLength(1)
    }
  })

  it('an old token of two rotations ago, and a verifier of another series, are theft; both users stay apart', async () => {
    const at = setUp()
    const { token } = await device(at)
    const second = (await at.sessions.redeemRememberToken(token))!
    at.clock.advance(DAY)
    const third = (await at.sessions.redeemRememberToken(second.token))!
    expect(await at.sessions.redeemRememberToken(token)).toBeNull()
    expect(await at.sessions.get(third.session.secret)).toBeNull()
    expect(at.thefts()).toHaveLength(1)

    const a = await device(at)
    const b = await device(at, { id: 2, name: 'max' })
    const spliced = `${a.token.slice(0, 43)}.${b.token.slice(44)}`
    expect(await at.sessions.redeemRememberToken(spliced)).toBeNull()
    expect(await at.sessions.redeemRememberToken(a.token)).toBeNull()
    expect((await at.sessions.redeemRememberToken(b.token))?.session.user.id).toBe(2n)
  })
})

it('a token expires with its series, however often it was rotated', async () => {
  const at = setUp()
  let { token } = await device(at)
  const end = at.clock() + 29 * DAY
  for (const _ of times(28)) {
    at.clock.advance(DAY)
    const recalled = (await at.sessions.redeemRememberToken(token))!
    expect(recalled.expiresAt).toBe(end)
    token = recalled.token
  }
  at.clock.advance(DAY)
  expect(await at.sessions.redeemRememberToken(token)).toBeNull()
  expect(at.thefts()).toEqual([])
})

it('an older password version is worth nothing, by the minimum in the store and by the option', async () => {
  const at = setUp()
  const old = await at.sessions.create({ user: { ...user, passwordVersion: 1 } })
  const token = await at.sessions.issueRememberToken(old)
  expect(
    (await at.manager({ getPasswordVersion: () => 1 }).redeemRememberToken(token))?.session.user.passwordVersion,
  ).toBe(1)
  expect(await at.manager({ getPasswordVersion: () => 2 }).redeemRememberToken(token)).toBeNull()
})

it('a token costs three calls at its first rotation, four and one for each session that ends later, and two once it is spent', async () => {
  const at = setUp()
  let { token } = await device(at)
  const costs = [
    { read: 1, update: 1, create: 1 },
    { read: 1, update: 1, listUser: 1, create: 1 },
    { read: 1, update: 1, listUser: 1, delete: 1, create: 1 },
  ]
  for (const cost of costs) {
    at.store.reset()
    const next = (await at.sessions.redeemRememberToken(token))!
    expect(at.store.counts()).toEqual(cost)
    at.store.reset()
    await at.sessions.redeemRememberToken(token)
    expect(at.store.counts()).toEqual({ read: 2 })
    token = next.token
  }
})

describe('revokeRememberToken tells what it ends as a logout', () => {
  it('the session that began with the token, though it was getting a new ID while the sessions were listed', async () => {
    for (const when of ['before', 'after'] as const) {
      const at = await redeemed()
      const { session, next } = at
      const list = at.store.pause('listUser', when)
      at.events.length = 0
      const forgetting = at.sessions.revokeRememberToken(next)
      await list.reached
      const renewed = (await at.manager().regenerate(session.secret, grace))!
      list.resume()
      await forgetting
      const key = when === 'before' ? renewed.key : session.key
      expect(at.events.at(-1)).toEqual({ type: 'destroyed', key, userId: 1n, reason: 'logout' })
      expect(await at.sessions.get(session.secret)).toBeNull()
      expect(await at.sessions.get(renewed.secret)).toBeNull()
    }
  })

  it('and where the list had it, once', async () => {
    const at = await redeemed()
    const { session, next } = at
    const other = await at.sessions.create({ user })
    at.store.reset()
    at.events.length = 0
    await at.sessions.revokeRememberToken(next)
    expect(at.events).toEqual([{ type: 'destroyed', key: session.key, userId: 1n, reason: 'logout' }])
    expect(at.store.counts().delete).toBe(2)
    expect(await at.sessions.get(other.secret)).not.toBeNull()
  })
})

describe('a login in place of a remembered session', () => {
  it('ends the series, tells it as a logout and keeps its own session', async () => {
    const at = await redeemed()
    const { token, session, next } = at
    const parallel = (await at.sessions.redeemRememberToken(token))!
    expect(parallel.session.key).toBe(session.key)
    at.events.length = 0
    const login = await at.sessions.logIn(session, { user })
    expect(at.events).toEqual([{ type: 'regenerated', key: login.key, oldKey: session.key, userId: 1n }])
    expect(await at.sessions.redeemRememberToken(next)).toBeNull()
    expect((await at.sessions.list(1)).map(({ key }) => key)).toEqual([login.key])
  })

  it('that cannot end the series is no login: its session ends, and the error is the caller’s', async () => {
    for (const fault of [faults.rejects, faults.throws]) {
      const at = await redeemed()
      const { session } = at
      at.store.next('delete', fault)
      at.events.length = 0
      await expect(at.sessions.logIn(session, { user })).rejects.toMatchObject({ operation: 'delete' })
      expect(await at.sessions.list(1)).toEqual([])
      expect(at.events.filter(({ type }) => type === 'destroyed')).toMatchObject([{ reason: 'logout', userId: 1n }])
    }
  })

  it('that can end nothing at all rejects with the first failure', async () => {
    const at = await redeemed()
    const { session } = at
    at.store.every('delete', faults.rejects)
    const error = await at.sessions.logIn(session, { user }).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ operation: 'delete' })
    expect(at.events.filter(({ type }) => type === 'store-error').map(each => each.error)[0]).toBe(error)
  })
})

describe('the first use of a session that a token began', () => {
  it('is an error at no moment in which its series ends', async () => {
    for (const isFinished of [true, false]) {
      const at = await redeemed()
      const { session, next } = at
      at.store.next('read', proceed => proceed())
      at.store.next('read', async proceed => {
        if (!isFinished) at.store.next('listUser', faults.rejects)
        await at
          .manager()
          .revokeRememberToken(next)
          .catch(() => {})
        return proceed()
      })
      at.events.length = 0
      await at.manager().get(session.secret)
      const unfinished = isFinished ? [] : [{ type: 'store-error', error: expect.any(Error) }]
      expect(at.events.filter(({ type }) => type === 'store-error')).toEqual(unfinished)
    }
  })

  it('is noted once, also where it could not be noted in the session', async () => {
    const at = await redeemed()
    const { session } = at
    at.store.next('touch', faults.rejects)
    await at.manager().get(session.secret)
    at.store.reset()
    await at.manager().get(session.secret)
    expect(at.store.counts()).toEqual({ read: 2, touch: 1 })
  })

  it('is not noted, and finds nothing, where another session took its place meanwhile', async () => {
    const at = await redeemed()
    const { token, session } = at
    at.clock.advance(WINDOW + 1)
    at.store.next('update', async proceed => {
      expect(await at.manager().redeemRememberToken(token)).not.toBeNull()
      return proceed()
    })
    expect(await at.manager().get(session.secret)).toBeNull()
    at.clock.advance(WINDOW + 1)
    expect(await at.sessions.redeemRememberToken(token)).not.toBeNull()
    expect(at.thefts()).toEqual([])
  })

  it('is noted once where two nodes do so at the same time', async () => {
    const at = await redeemed()
    const { token, session } = at
    at.store.next('update', async proceed => {
      expect(await at.manager().get(session.secret)).not.toBeNull()
      return proceed()
    })
    expect(await at.manager().get(session.secret)).not.toBeNull()
    at.clock.advance(WINDOW + 1)
    expect(await at.sessions.redeemRememberToken(token)).toBeNull()
    expect(at.thefts()).toHaveLength(1)
  })

  it('says nothing of a session that its token began before', async () => {
    const at = await redeemed()
    const { first } = at
    await at.sessions.redeemRememberToken(first.token)
    await at.manager().get(first.session.secret)
    at.clock.advance(WINDOW + CLOCK_TOLERANCE + 1)
    // The answer to it was lost.
    expect(await at.sessions.redeemRememberToken(first.token)).not.toBeNull()
    expect(at.thefts()).toEqual([])
  })
})
