// The limit of sessions of one user: two looks around each login, at one node and at several.
import type { SessionOptions } from 'coatcheck'
import { connectStore } from 'coatcheck/connect'
import { describe, expect, it, vi } from 'vitest'
import { faults, type Handler } from '../support/barrier-store.ts'
import { setUp as memory, times, user } from '../support/manager-kit.ts'
import { HOUR, MINUTE } from '../support/test-clock.ts'

const POLICIES = ['refuse', 'end-oldest'] as const

function setUp(limit: SessionOptions['limit'] & object, options: object = {}) {
  const at = memory({ limit, storeTimeout: '20s', rememberFor: '30d', ...options })
  const { manager: node, events } = at
  const live = async () => (await node().list(1)).map(({ key }) => key).sort()
  const ended = () => events.filter(({ type }) => type === 'destroyed').map(({ key, reason }) => [key, reason])
  return { ...at, node, live, ended }
}

/** Lets every second look fail so. */
const secondLook = (fault: Handler): Handler => {
  let looks = 0
  return (proceed, args) => (++looks % 2 === 0 ? fault(proceed, args) : proceed())
}

describe.each(POLICIES)('with a limit of 3 that says %s', onLimit => {
  it('logins of one user wait for each other, and nobody else for them', async () => {
    const { sessions, store } = setUp({ max: 3, onLimit })
    const tenant = sessions.namespace('acme')
    const pause = store.pause('listUser', 'before')
    const logins = Promise.allSettled(times(50).map(() => tenant.create({ user })))
    await pause.reached
    await sessions.create({ user })
    await tenant.create({ user: { id: 2, name: 'max' } })
    expect(await tenant.list(1)).toEqual([])
    pause.resume()
    await logins
    expect(await tenant.list(1)).toHaveLength(3)
  })

  it('it counts what list shows: neither what has expired or is below the password version, nor series', async () => {
    let version = 1
    const { sessions, clock, live } = setUp({ max: 3, onLimit }, { getPasswordVersion: () => version })
    const logIn = () => sessions.create({ user: { ...user, passwordVersion: version } })
    await logIn()
    clock.advance(HOUR)
    for (const _ of times(3)) await logIn()
    version = 2
    for (const _ of times(3)) await sessions.issueRememberToken(await logIn())
    expect(await live()).toHaveLength(3)
  })

  it.each(['create', 'logIn'] as const)(
    '%s ends what it began where its second look takes all of its time, and has not been applied',
    async verb => {
      vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
      const { sessions, store, live } = setUp({ max: 3, onLimit })
      const visitor = await sessions.create()
      store.every('listUser', secondLook(faults.hang))
      const login = verb === 'create' ? sessions.create({ user }) : sessions.logIn(visitor, { user })
      const failed = login.catch(error => error)
      await vi.advanceTimersByTimeAsync(20_000)
      expect(await failed).toMatchObject({ operation: 'listUser', outcome: 'not-applied' })
      store.every('listUser', null)
      expect(await live()).toEqual([])
    },
  )

  it('a login says unknown if neither its second look nor the end of what it began succeeds', async () => {
    const { sessions, store, live } = setUp({ max: 3, onLimit })
    store.every('listUser', secondLook(faults.rejects))
    store.every('delete', faults.rejects)
    await expect(sessions.create({ user })).rejects.toMatchObject({ outcome: 'unknown' })
    store.every('listUser', null)
    expect(await live()).toHaveLength(1)
  })

  it('a session that is set by hand, as one of another store is, is no login: nobody is refused or ended for it', async () => {
    const { sessions, live, ended } = setUp({ max: 3, onLimit })
    for (const _ of times(3)) await sessions.create({ user })
    const kept = connectStore(sessions, { userOf: (data: any) => data.user })
    for (const sid of ['Zq3vX8kLm2NpR5tYw7Bc', 'aF6gH9jK4lQ1sD8fG2hJ'])
      await new Promise<void>((resolve, reject) =>
        kept.set(sid, { cookie: {}, user } as never, (error?: unknown) => (error ? reject(error) : resolve())),
      )
    expect(await live()).toHaveLength(5)
    expect(ended()).toEqual([])
  })
})

describe.each(POLICIES)('two nodes, one clock three minutes ahead, with a limit of 1 that says %s', onLimit => {
  it.each([-3 * MINUTE, 3 * MINUTE])(
    'leave one session of two logins that both looked before either wrote',
    async skew => {
      const { sessions, node, clock, store, live, ended } = setUp({ max: 1, onLimit })
      const pauses = [store.pause('create', 'before'), store.pause('create', 'before')]
      const looks = [store.pause('listUser', 'before'), store.pause('listUser', 'before')]
      const logins = [sessions, node({ now: clock.skewed(skew) })].map(each => each.create({ user }))
      for (const { reached } of looks) await reached
      for (const { resume } of looks) resume()
      for (const { reached } of pauses) await reached
      // Both are written before either looks again.
      const again = [store.pause('listUser', 'before'), store.pause('listUser', 'before')]
      for (const { resume } of pauses) resume()
      for (const { reached } of again) await reached
      for (const { resume } of again) resume()
      const begun = (await Promise.allSettled(logins)).flatMap(login =>
        login.status === 'fulfilled' ? [login.value.key] : [],
      )
      expect(await live()).toHaveLength(1)
      expect(begun).toEqual(onLimit === 'refuse' ? await live() : expect.arrayContaining(await live()))
      expect(ended()).toHaveLength(onLimit === 'refuse' ? 0 : 1)
    },
  )

  it('let the next login put it right where they left one too many', async () => {
    const { sessions, node, live } = setUp({ max: 1, onLimit })
    const [one, other] = [
      await node({ limit: undefined }).create({ user }),
      await node({ limit: undefined }).create({ user }),
    ]
    if (onLimit === 'refuse') {
      await expect(sessions.create({ user })).rejects.toMatchObject({ code: 'ERR_SESSION_LIMIT' })
      await sessions.destroy(one)
      await expect(sessions.create({ user })).rejects.toMatchObject({ code: 'ERR_SESSION_LIMIT' })
      await sessions.destroy(other)
    }
    const { key } = await sessions.create({ user })
    expect(await live()).toEqual([key])
  })
})

describe('the older sessions of a device', () => {
  it.each(POLICIES)('end first when its token begins one at a limit that says %s', async onLimit => {
    const { sessions, clock, live, ended } = setUp({ max: 2, onLimit })
    const other = await sessions.create({ user })
    clock.advance(MINUTE)
    const first = await sessions.create({ user })
    const token = await sessions.issueRememberToken(first)
    const second = await sessions.redeemRememberToken(token)
    expect(await live()).toEqual([other.key, second!.session.key].sort())
    await sessions.get(second!.session.secret)
    clock.advance(MINUTE)
    const third = await sessions.redeemRememberToken(second!.token)
    expect(await live()).toEqual([other.key, third!.session.key].sort())
    expect(ended()).toEqual([first, second!.session].map(({ key }) => [key, 'limit']))
  })

  it.each(POLICIES)('are known under a new ID too, at a limit that says %s', async onLimit => {
    const { sessions, live, ended } = setUp({ max: 2, onLimit })
    const other = await sessions.create({ user })
    const first = await sessions.create({ user })
    const token = await sessions.issueRememberToken(first)
    const renewed = await sessions.regenerate(first)
    const second = await sessions.redeemRememberToken(token)
    expect(await live()).toEqual([other.key, second!.session.key].sort())
    expect(ended()).toEqual([[renewed!.key, 'limit']])
  })

  it('live on when its token begins one below the limit', async () => {
    const { sessions, live } = setUp({ max: 3, onLimit: 'refuse' })
    const first = await sessions.create({ user })
    const second = await sessions.redeemRememberToken(await sessions.issueRememberToken(first))
    expect(await live()).toEqual([first.key, second!.session.key].sort())
  })
})

it('a login that fails to end the oldest ends what it began, and every session of before lives', async () => {
  const { sessions, store, live } = setUp({ max: 1, onLimit: 'end-oldest' })
  const { key } = await sessions.create({ user })
  store.next('delete', faults.rejects)
  await expect(sessions.create({ user })).rejects.toMatchObject({ operation: 'delete', outcome: 'not-applied' })
  expect(await live()).toEqual([key])
})
