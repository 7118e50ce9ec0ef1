// A password version that the application compares at each look, and the minimum that a logout everywhere leaves in the store.
import { type SessionEvent, SessionStoreError } from 'coatcheck'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { grace, openWith, other, setUp, user } from '../support/manager-kit.ts'

it('invalidateUser tells the store the minimum password version and whom to spare only where it was told itself', async () => {
  const { sessions, store } = setUp()
  const session = await sessions.create({ user })
  const asked = async (...given: unknown[]) => {
    store.reset()
    await (sessions.invalidateUser as (...given: unknown[]) => Promise<number>)(1, ...given)
    return Object.keys(store.calls.find(({ verb }) => verb === 'deleteUser')!.args[1]).sort()
  }
  expect(await asked({ except: session })).toEqual(['exceptKey', 'minPasswordVersionUntil'])
  expect(await asked({ minPasswordVersion: 0 })).toEqual(['minPasswordVersion', 'minPasswordVersionUntil'])
  for (const nothing of [undefined, {}, { except: null, minPasswordVersion: undefined }])
    expect(await asked(nothing)).toEqual(['minPasswordVersionUntil'])
})
describe('the option getPasswordVersion, alone', () => {
  it('refuses an older session, and accepts the same and a newer one', async () => {
    let current = 2
    const { sessions } = setUp({ getPasswordVersion: async (id: bigint) => (id === 1n ? current : 0) })
    const [none, older, same, newer] = await Promise.all(
      [null, 1, 2, 3].map(passwordVersion => sessions.create({ user: { ...user, passwordVersion } })),
    )
    const others = await sessions.create({ user: { ...other, passwordVersion: null } })
    const anonymous = await sessions.create()
    for (const dead of [none!, older!]) {
      expect(await sessions.get(dead.secret)).toBeNull()
      expect(await sessions.regenerate(dead.secret)).toBeNull()
      expect(await sessions.regenerate(dead.secret, grace)).toBeNull()
    }
    for (const live of [same!, newer!, others, anonymous]) expect(await sessions.get(live.secret)).not.toBeNull()
    expect(new Set((await sessions.list(1)).map(({ key }) => key))).toEqual(new Set([same!.key, newer!.key]))
    current = 3
    expect(await sessions.get(same!.secret)).toBeNull()
    expect(await sessions.get(newer!.secret)).not.toBeNull()
  })

  it('a login that does not say the version is a TypeError that says what to give, and nothing is stored or ended', async () => {
    const { sessions, store } = setUp({ getPasswordVersion: (id: bigint) => (id === 1n ? 2 : 0) })
    const session = await sessions.create({ user: { ...user, passwordVersion: 2 } })
    store.reset()
    const told = 'user.passwordVersion: expected the version that was read with the password hash'
    const visit = openWith(sessions, session)
    for (const logIn of [
      () => sessions.create({ user }),
      () => sessions.create({ user: { ...user, passwordVersion: undefined } }),
      () => sessions.logIn(session, { user }),
      () => sessions.namespace('acme').create({ user }),
      () => visit.logIn({ user }),
    ])
      await expect(logIn()).rejects.toThrow(told)
    for (const verb of ['create', 'replace', 'delete']) expect(store.counts()).not.toHaveProperty(verb)
    expect(await sessions.get(session.secret)).not.toBeNull()
    // Of a user who has none: it lives while the application answers 0.
    const none = await sessions.create({ user: { ...other, passwordVersion: null } })
    expect(await sessions.get(none.secret)).not.toBeNull()
  })

  it('a login with an outdated session leaves nothing under the old ID', async () => {
    const { sessions, store } = setUp({ getPasswordVersion: () => 2 })
    const old = await sessions.create({ user: { ...user, passwordVersion: 1 } })
    await sessions.logIn(old.secret, { user: { ...user, passwordVersion: 2 } })
    expect(await store.inner.read(old.key, { now: 0 })).toBeNull()
  })

  it('that throws, or answers nonsense, is an error and no logout', async () => {
    let answer: () => unknown = () => 1
    const { sessions } = setUp({ getPasswordVersion: () => answer() })
    const session = await sessions.create({ user: { ...user, passwordVersion: 1 } })
    answer = () => {
      throw new Error('users are down')
    }
    await expect(sessions.get(session.secret)).rejects.toThrow('users are down')
    answer = () => Promise.reject(new Error('users are down'))
    await expect(sessions.get(session.secret)).rejects.toThrow('users are down')
    answer = () => '1'
    await expect(sessions.get(session.secret)).rejects.toThrow('getPasswordVersion(): expected a whole number')
    answer = () => 1
    expect(await sessions.get(session.secret)).not.toBeNull()
  })

  it('that never answers is an outage after storeTimeout, no logout and no hang', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    let answer: () => unknown = () => 1
    const errors: SessionStoreError[] = []
    const onEvent = (event: SessionEvent) => event.type === 'store-error' && errors.push(event.error)
    const { sessions, store } = setUp({
      getPasswordVersion: () => answer(),
      rememberFor: '30d',
      storeTimeout: '3s',
      onEvent,
    })
    const session = await sessions.create({ user: { ...user, passwordVersion: 1 } })
    const token = await sessions.issueRememberToken(session)
    let answerLate!: (error: Error) => void
    answer = () => new Promise((_, reject) => (answerLate = reject))
    for (const call of [
      () => sessions.get(session.secret),
      () => sessions.list(1),
      () => sessions.redeemRememberToken(token),
      () => sessions.regenerate(session.secret),
      () => sessions.regenerate(session.secret, grace),
      () => sessions.logIn(session.secret, { user: { ...user, passwordVersion: 1 } }),
    ]) {
      const settled = call().then(
        () => 'an answer',
        (error: unknown) => error,
      )
      await vi.advanceTimersByTimeAsync(2998)
      const early = await Promise.race([settled, Promise.resolve('nothing yet')])
      expect(early).toBe('nothing yet')
      await vi.advanceTimersByTimeAsync(4)
      const error = (await Promise.race([settled, Promise.resolve('a hang')])) as SessionStoreError
      expect(error).toBeInstanceOf(SessionStoreError)
      expect(error).toMatchObject({
        status: 503,
        operation: 'read',
        outcome: 'not-applied',
        message: 'read: getPasswordVersion() did not answer within storeTimeout',
      })
      answerLate(new Error('too late'))
    }
    expect(errors).toHaveLength(6)
    expect(store.counts()).not.toHaveProperty('delete')
    expect(store.counts()).not.toHaveProperty('replace')
    answer = () => 1
    expect(await sessions.get(session.secret)).not.toBeNull()
  })

  it('has what the store left of storeTimeout, not all of it once more', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const { sessions, store } = setUp({
      getPasswordVersion: () => new Promise(resolve => setTimeout(resolve, 1500, 1)),
      storeTimeout: '2s',
    })
    const session = await sessions.create({ user: { ...user, passwordVersion: 1 } })
    store.next('read', async proceed => {
      await new Promise(resolve => setTimeout(resolve, 1000))
      return proceed()
    })
    const call = sessions.get(session.secret).catch((error: unknown) => error)
    await vi.advanceTimersByTimeAsync(2002)
    expect(await Promise.race([call, Promise.resolve('still waiting')])).toBeInstanceOf(SessionStoreError)
  })

  it('is asked once by list, however many sessions the user has, and not where there is none', async () => {
    const asked: bigint[] = []
    const { sessions } = setUp({
      getPasswordVersion: (id: bigint) => {
        asked.push(id)
        return 2
      },
    })
    for (const passwordVersion of [1, 2, 2, 3, null]) await sessions.create({ user: { ...user, passwordVersion } })
    expect(await sessions.list(1)).toHaveLength(3)
    expect(asked).toEqual([1n])
    expect(await sessions.list(2)).toEqual([])
    expect(asked).toEqual([1n])
  })
})
