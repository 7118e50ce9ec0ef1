// Which text leads to a session, and with what the IDs of a user's sessions begin.
import { type SessionId, type SessionManager, sessionId } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { faults } from '../support/barrier-store.ts'
import { grace, setUp, times, user } from '../support/manager-kit.ts'

it('a stored key has another shape than an ID: sent as a cookie it does not reach the store', async () => {
  const { store, sessions } = setUp()
  const { key } = await sessions.create()
  store.reset()
  expect(await sessions.get(key as unknown as SessionId)).toBeNull()
  await sessions.destroy(key as unknown as SessionId)
  for (const cut of [key.slice(0, 43), key.slice(3)]) expect(await sessions.get(cut as SessionId)).toBeNull()
  expect(store.counts()).toEqual({ read: 2 })
})

it('sessionId takes the value of a cookie, and nothing that is not an ID', async () => {
  const { sessions } = setUp()
  const { secret, key } = await sessions.create()
  expect(sessionId(secret)).toBe(secret)
  for (const value of [null, undefined, '', key, `session_id=${secret}`, ` ${secret}`, `${secret}\n`, secret.slice(1)])
    expect(sessionId(value)).toBeNull()
  for (const value of [42, [secret], { secret }]) expect(sessionId(value as never)).toBeNull()
})

it("a user's sessions begin with the shard that the store names, on every way to a session", async () => {
  const store = Object.assign(new MemoryStore(), { shard: (user: string) => `_-${user.at(-1)}` })
  const { sessions } = setUp({ rememberFor: '30d' }, store)
  const created = await sessions.create({ user })
  const login = await sessions.logIn((await sessions.create()).secret, { user })
  const next = (await sessions.regenerate(login))!
  const rotated = (await sessions.regenerate(next, grace))!
  const token = await sessions.issueRememberToken(created)
  const recalled = (await sessions.redeemRememberToken(token))!
  for (const text of [
    created.secret,
    login.secret,
    next.secret,
    rotated.secret,
    token,
    recalled.session.secret,
    recalled.token!,
  ])
    expect(text.slice(0, 3)).toBe('_-1')
  for (const session of [created, rotated, recalled.session]) expect(session.key.slice(0, 3)).toBe('_-1')
  // The shard travels with the ID: an anonymous session's stays.
  const anonymous = await sessions.create()
  expect((await sessions.regenerate(anonymous))!.secret.slice(0, 3)).toBe(anonymous.secret.slice(0, 3))
})

describe('IDs that collide', () => {
  const methods: [string, 'create' | 'replace', (sessions: SessionManager, session: any) => Promise<any>][] = [
    ['create', 'create', sessions => sessions.create({ user })],
    ['logIn', 'replace', (sessions, session) => sessions.logIn(session, { user })],
    ['regenerate', 'replace', (sessions, session) => sessions.regenerate(session)],
    ['issueRememberToken', 'create', (sessions, session) => sessions.issueRememberToken(session)],
  ]

  it.each(methods)(
    'those that %s draws are drawn again, five times; then the generator is broken, and nothing begins',
    async (_, verb, run) => {
      const { sessions, store } = setUp({ rememberFor: '30d' })
      const session = await sessions.create({ user })
      store.reset()
      for (const _ of times(5)) store.next(verb, faults.answers('collision'))
      expect(await run(sessions, session)).not.toBeNull()
      const keys = store.calls.filter(call => call.verb === verb).map(({ args }) => args[verb === 'create' ? 0 : 2].key)
      expect(new Set(keys).size).toBe(6)
      const other = await sessions.create({ user })
      store.reset()
      store.every(verb, faults.answers('collision'))
      await expect(run(sessions, other)).rejects.toMatchObject({
        code: 'ERR_SESSION_ID_COLLISION',
        message: 'new IDs collide: the random generator or the store is broken',
      })
      expect(store.counts()).toEqual({ [verb]: 6 })
      expect((await sessions.get(other.secret))?.key).toBe(other.key)
    },
  )
})
