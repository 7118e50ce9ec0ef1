// What an ID leads to, and what the first visit of an interval writes.

import type { Session, SessionId, SessionManager, UserSession } from 'coatcheck'
import { describe, expect, it } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { grace, setUp, user } from '../support/manager-kit.ts'

describe('an ID that was rotated', () => {
  it('leads on over eight rotations that a late request has missed, and over no more', async () => {
    const { sessions } = setUp()
    const ids = [(await sessions.create()).secret]
    for (let times = 0; times < 9; times += 1)
      ids.push((await sessions.regenerate(ids.at(-1)! as SessionId, grace))!.secret)
    expect((await sessions.get(ids[1]))?.secret).toBe(ids[9])
    expect(await sessions.get(ids[0])).toBeNull()
  })

  it('leads nowhere where the forward was not made from it: a reader of the store cannot write a way to a session', async () => {
    const { sessions, store, clock } = setUp()
    const old = await sessions.create()
    await sessions.regenerate(old, grace)
    const target = await sessions.create({ user })
    const forward: any = await store.inner.read(old.key, { now: clock() })
    store.every('read', async (proceed, [key]) => (key === old.key ? { ...forward, movedTo: target.key } : proceed()))
    store.reset()
    expect(await sessions.get(old.secret)).toBeNull()
    expect(store.counts()).toEqual({ read: 1 })
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
    ['regenerate with a grace', (sessions, session) => sessions.regenerate(session, grace)],
    ['destroy', (sessions, session) => sessions.destroy(session)],
    ['issueRememberToken', (sessions, session) => sessions.issueRememberToken(session)],
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
