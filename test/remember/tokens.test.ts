// Which text is a remember token, and what counts as its series.
import type { SessionId } from 'coatcheck'
import { describe, expect, it } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { user } from '../support/manager-kit.ts'
import { device, setUpRemember as setUp } from './devices.ts'

describe('what is no token does not reach the store', () => {
  it.each([
    ['truncated', (token: string) => token.slice(0, -1)],
    ['doubled', (token: string) => token + token],
    ['only the selector', (token: string) => token.slice(0, 43)],
    ['without the dot', (token: string) => token.replace('.', '')],
    ['with a line end', (token: string) => `${token}\n`],
    ['1 MB', () => 'x'.repeat(1_000_000)],
    ['a list of one', (token: string) => [token] as never],
    ['what says that it is one', (token: string) => ({ length: 87, toString: () => token }) as never],
    ['undefined', () => undefined as never],
  ])('%s', async (_, mangle) => {
    const at = setUp()
    const { token } = await device(at)
    at.store.reset()
    expect(await at.sessions.redeemRememberToken(mangle(token))).toBeNull()
    await at.sessions.revokeRememberToken(mangle(token))
    expect(at.store.calls).toEqual([])
    expect(await at.sessions.redeemRememberToken(token)).not.toBeNull()
  })
})

it('a session ID is no token, and a token no session ID', async () => {
  const at = setUp()
  const { token } = await device(at)
  const session = await at.sessions.create({ user })
  expect(await at.sessions.get(token as SessionId)).toBeNull()
  expect(await at.sessions.get(token.slice(0, 43) as SessionId)).toBeNull()
  expect(await at.sessions.get(token.slice(44) as SessionId)).toBeNull()
  expect(await at.sessions.redeemRememberToken(session.secret)).toBeNull()
  expect(await at.sessions.redeemRememberToken(`${session.secret}.${session.secret}`)).toBeNull()
  expect(await at.sessions.redeemRememberToken(`${session.secret}.${token.slice(44)}`)).toBeNull()
  expect(
    await at.sessions.revoke(1, (await at.store.inner.listUser('1', 'remember', { now: at.clock() }))[0]!.key),
  ).toBe(false)
  expect(await at.sessions.redeemRememberToken(token)).not.toBeNull()
  expect(at.thefts()).toEqual([])
})

it('a token of one tenant is nothing to another, nor where remember is off', async () => {
  const at = setUp()
  const [blue, green] = [at.sessions.namespace('blue'), at.sessions.namespace('green')]
  const token = await blue.issueRememberToken(await blue.create({ user }))
  expect(await green.redeemRememberToken(token)).toBeNull()
  expect(await at.sessions.redeemRememberToken(token)).toBeNull()
  const off = at.manager({ rememberFor: undefined })
  expect(await off.namespace('blue').redeemRememberToken(token)).toBeNull()
  expect((await blue.redeemRememberToken(token))?.session.user.id).toBe(1n)
  await expect(off.issueRememberToken(await off.create({ user }))).rejects.toThrow(
    "issueRememberToken: is off: give the manager { rememberFor: '30d' }",
  )
  await expect(at.sessions.issueRememberToken((await at.sessions.create()) as never)).rejects.toThrow(
    'got an anonymous one',
  )
  await expect(at.sessions.issueRememberToken({} as never)).rejects.toThrow(TypeError)
})

describe('a series that no manager of ours wrote', () => {
  const broken: [string, (series: any) => unknown][] = [
    ['is no JSON', () => undefined],
    ['is null', () => null],
    ['is a list', () => []],
    ['has no hash of the token', ({ current, ...rest }) => rest],
    ['has something else in its place', series => ({ ...series, current: {} })],
  ]
  it.each(broken)('%s: is worth nothing, is removed and is told, and the session goes on', async (_, change) => {
    const at = setUp()
    const session = await at.sessions.create({ user })
    const token = await at.sessions.issueRememberToken(session)
    const [record] = await at.store.inner.listUser('1', 'remember', { now: at.clock() })
    const data = JSON.stringify(change(JSON.parse(record!.data))) ?? '{'
    at.store.next('read', faults.answers({ ...record, data }))
    at.events.length = 0
    expect(await at.sessions.redeemRememberToken(token)).toBeNull()
    expect(at.events).toEqual([{ type: 'corrupt-record', key: record!.key, cause: 'not a remember-me series' }])
    expect(await at.store.inner.listUser('1', 'remember', { now: at.clock() })).toEqual([])
    expect(await at.sessions.get(session.secret)).not.toBeNull()
  })

  it('is told with the reason that the store has', async () => {
    const at = setUp()
    const { token } = await device(at)
    const [record] = await at.store.inner.listUser('1', 'remember', { now: at.clock() })
    at.store.next('read', faults.answers({ corrupt: 'data is no text' }))
    at.events.length = 0
    expect(await at.sessions.redeemRememberToken(token)).toBeNull()
    expect(at.events).toEqual([{ type: 'corrupt-record', key: record!.key, cause: 'data is no text' }])
  })

  it('is nothing where the store answers a session, or one that has expired', async () => {
    const changes: ((record: any, now: number) => object)[] = [
      record => ({ ...record, kind: 'session' }),
      (record, now) => ({ ...record, expiresAt: now }),
    ]
    for (const change of changes) {
      const at = setUp()
      const { token } = await device(at)
      const [record] = await at.store.inner.listUser('1', 'remember', { now: at.clock() })
      at.store.next('read', faults.answers(change(record, at.clock())))
      expect(await at.sessions.redeemRememberToken(token)).toBeNull()
      expect(at.thefts()).toEqual([])
      // It was no answer about this token.
      expect(await at.sessions.redeemRememberToken(token)).not.toBeNull()
    }
  })

  it('nor is a token stolen where the store answers the series of another device: that is a failure of the store', async () => {
    const at = setUp()
    const one = await device(at)
    const [mine] = await at.store.inner.listUser('1', 'remember', { now: at.clock() })
    const two = await device(at)
    at.store.next('read', faults.answers(mine))
    await expect(at.sessions.redeemRememberToken(two.token)).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
    expect(at.thefts()).toEqual([])
    for (const { token } of [one, two]) expect(await at.sessions.redeemRememberToken(token)).not.toBeNull()
  })

  it('is told where its user is of another kind, and stays: a deployment with wrong `userIds` deletes none', async () => {
    const at = setUp()
    const { token } = await device(at)
    const [record] = await at.store.inner.listUser('1', 'remember', { now: at.clock() })
    at.store.next('read', faults.answers({ ...record, userId: 'ada' }))
    at.events.length = 0
    expect(await at.sessions.redeemRememberToken(token)).toBeNull()
    const cause = "user ID is not of kind 'bigint'"
    expect(at.events).toEqual([{ type: 'corrupt-record', key: record!.key, cause }])
    expect(await at.sessions.redeemRememberToken(token)).not.toBeNull()
  })
})

it('a token of the series that is not its own is a stolen one, whatever stands in the series as its hash', async () => {
  for (const hash of [undefined, 'short', '']) {
    const at = setUp()
    const { token } = await device(at)
    if (hash !== undefined) {
      const [record] = await at.store.inner.listUser('1', 'remember', { now: at.clock() })
      const data = JSON.stringify({ ...JSON.parse(record!.data), current: hash, previous: hash })
      at.store.next('read', faults.answers({ ...record, data }))
    }
    const presented = hash === undefined ? `${token.slice(0, 44)}${'x'.repeat(43)}` : token
    expect(await at.sessions.redeemRememberToken(presented)).toBeNull()
    expect(at.thefts()).toHaveLength(1)
    expect(await at.sessions.redeemRememberToken(token)).toBeNull()
  }
})
