// The remember token of a browser: when its cookie comes, what it brings back, and what ends it.
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { ada, jar, loggedIn, makeSessions, setCookies, visitOf } from '../support/edge-service.ts'

const DAY = 24 * 3_600_000
const max = { user: { id: 7n, name: 'max' } }

const rememberMe = async () => {
  const made = makeSessions({ rememberFor: '30d' })
  const { session, cookie, token } = await loggedIn(made, { ...ada, remember: true })
  return { ...made, session, cookie, token, both: [cookie, token] }
}
const userOf = async ({ sessions }: ReturnType<typeof makeSessions>, token: string) =>
  (await visitOf(sessions, token).get())?.user?.name ?? null

describe('a remember token', () => {
  it('brings the user back after the browser lost the session, with two new cookies', async () => {
    const made = await rememberMe()
    made.clock.now += DAY
    const visit = visitOf(made.sessions, made.both)
    const session = await visit.get()
    expect([session?.user?.name, session?.remembered]).toEqual(['ada', true])
    const [id, token] = setCookies(visit)
    expect(id).toMatch(`session_id=${session?.secret}; Max-Age=43200`)
    expect(token).toMatch(/^remember_token=[^;]+; Max-Age=2505600;/)
    expect(jar([token!])).not.toBe(made.token)
    const next = visitOf(made.sessions, jar([id!, token!]))
    expect((await next.get())?.key).toBe(session?.key)
    await expect(next.requireUser({ freshWithin: '1h' })).rejects.toMatchObject({ code: 'ERR_SESSION_NOT_FRESH' })
  })

  it('is not asked while the session lives, and never where the answer could not be sent or HTTPS was missing', async () => {
    const made = await rememberMe()
    await visitOf(made.sessions, made.both).get()
    expect(await visitOf(made.sessions, made.token, { secure: false }).get()).toBeNull()
    expect(await visitOf(made.sessions, made.token, { canSend: () => false }).get()).toBeNull()
    expect(made.calls).toEqual(['read'])
  })

  it.each(['the same request', 'the next one', 'the next one, without HTTPS'])(
    'ends with the logout of a session that it began, by %s',
    async by => {
      const made = await rememberMe()
      const visit = visitOf(made.sessions, made.token)
      await visit.get()
      const [cookie, next] = visit.cookies.map(({ name, value }) => `${name}=${value}`)
      if (by === 'the same request') await visit.logOut()
      else await visitOf(made.sessions, cookie, { secure: by === 'the next one' }).logOut()
      for (const token of [next!, made.token]) expect(await userOf(made, token)).toBeNull()
      expect(await userOf(made, cookie!)).toBeNull()
    },
  )

  it.each(['logOut', 'logIn', 'logIn to be remembered'] as const)(
    'that no response has brought yet ends with what the same request does next: %s',
    async next => {
      const made = makeSessions({ rememberFor: '30d' })
      const visit = visitOf(made.sessions)
      await visit.logIn({ ...ada, remember: true })
      const token = visit.cookies[1]!.value
      if (next === 'logOut') await visit.logOut()
      else await visit.logIn({ ...ada, remember: next !== 'logIn' })
      expect(await made.sessions.redeemRememberToken(token)).toBeNull()
      expect(await made.sessions.list(42n)).toHaveLength(next === 'logOut' ? 0 : 1)
      expect(visit.cookies.map(({ name, value }) => [name, value !== ''])).toEqual([
        ['session_id', next !== 'logOut'],
        ['remember_token', next === 'logIn to be remembered'],
      ])
    },
  )

  it('that is dead hinders no login after an update of the same request', async () => {
    const made = await rememberMe()
    await makeSessions({ store: made.store, rememberFor: '30d' }).sessions.invalidateUser(42n)
    const visit = visitOf(made.sessions, made.token)
    await visit.update({ n: 1 })
    const session = await visit.logIn(ada)
    expect(visit.cookies.map(({ name, value }) => [name, value])).toEqual([
      ['session_id', session.secret],
      ['remember_token', ''],
    ])
    expect(await made.sessions.get(session.secret)).not.toBeNull()
  })

  it.each([
    // Its old ID is looked for, and then whether the new one lives.
    ['regenerate', true, ['read', 'read']],
    ['logIn', true, ['read']],
    ['logIn', false, []],
    ['logOut', false, []],
  ] as const)(
    'begins nothing after a parallel request did a %s, with its session: %s',
    async (verb, hasSession, calls) => {
      const made = await rememberMe()
      const cookies = hasSession ? made.both : made.token
      const first = visitOf(made.sessions, cookies)
      await (verb === 'logIn' ? first.logIn(ada) : first[verb]())
      made.calls.length = 0
      // Its cookie would be overwritten, or take the place of a newer one.
      const late = visitOf(made.sessions, cookies)
      expect([await late.get(), setCookies(late), made.calls]).toEqual([null, [], calls])
    },
  )

  it('is a TypeError where the manager has it off', async () => {
    const { sessions, calls } = makeSessions()
    await expect(visitOf(sessions).logIn({ ...ada, remember: true })).rejects.toThrow(/remember: is off/)
    expect(calls).toEqual([])
    expect(await visitOf(sessions, 'remember_token=x.y').get()).toBeNull()
  })
})

describe('a login to be remembered that fails leaves no session and no token', () => {
  const stored = (store: MemoryStore, kind: 'session' | 'remember', user = '42') =>
    store.listUser(user, kind, { now: Date.now() })

  it('where the token cannot be stored', async () => {
    const made = makeSessions({ rememberFor: '30d' })
    const visit = visitOf(made.sessions)
    made.sessions.issueRememberToken = () => Promise.reject(new Error('no'))
    await expect(visit.logIn({ ...ada, remember: true })).rejects.toThrow('no')
    expect([setCookies(visit), await made.sessions.list(42n)]).toEqual([[], []])
  })

  it('where the token of an earlier login cannot be ended, once for all of its failures', async () => {
    const made = await rememberMe()
    const forgotten: string[] = []
    made.sessions.revokeRememberToken = async token => {
      forgotten.push(token)
      throw new Error('the store is gone')
    }
    const visit = visitOf(made.sessions, made.token)
    await expect(visit.logIn({ ...max, remember: true })).rejects.toThrow('the store is gone')
    expect(forgotten).toHaveLength(1)
    expect([await made.sessions.list(7n), setCookies(visit)]).toEqual([[], []])
  })

  it.each(['the head went out', 'the store fails'] as const)('where %s after the token was made', async cause => {
    const store = new MemoryStore()
    const made = makeSessions({ store, rememberFor: '30d' })
    const before = await loggedIn(made, { ...ada, remember: true })
    const [token] = await stored(store, 'remember')
    let canSend = true
    const { create, delete: end } = { create: store.create.bind(store), delete: store.delete.bind(store) }
    store.create = async (...args) => {
      canSend = cause === 'the store fails' || args[0].kind !== 'remember'
      return create(...args)
    }
    store.delete = async (...args) => {
      if (cause === 'the store fails' && args[0] === token!.key) throw new Error('away for a moment')
      return end(...args)
    }
    const visit = visitOf(made.sessions, [before.cookie, before.token], { canSend: () => canSend })
    await expect(visit.logIn({ ...ada, remember: true })).rejects.toMatchObject({
      code: cause === 'the store fails' ? 'ERR_SESSION_STORE' : 'ERR_SESSION_HEADERS_SENT',
    })
    expect(await stored(store, 'session')).toEqual([])
    expect((await stored(store, 'remember')).filter(({ key }) => key !== token!.key)).toEqual([])
  })
})
