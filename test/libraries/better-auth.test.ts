// An unmodified better-auth on our storage. `COATCHECK_ROUNDS=1000 npx vitest run test/libraries/better-auth` tries each late write
// as often.
import { type SecondaryStorage, secondaryStorage } from 'coatcheck/better-auth'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it, vi } from 'vitest'
import { betterAuthOver } from './better-auth.ts'

const ROUNDS = Number(process.env.COATCHECK_ROUNDS ?? 2)
vi.setConfig({ testTimeout: ROUNDS > 100 ? 900_000 : 60_000 })

const ours = () => secondaryStorage(new MemoryStore())
/** As the documentation of better-auth shows it for Redis: it writes what it is given. */
function plain(): SecondaryStorage {
  const values = new Map<string, string>()
  const get = async (key: string) => values.get(key) ?? null
  const drop = async (key: string) => void values.delete(key)
  return {
    get,
    set: async (key, value) => void values.set(key, value),
    delete: drop,
    async getAndDelete(key) {
      const value = await get(key)
      await drop(key)
      return value
    },
    async increment(key) {
      const count = Number(values.get(key) ?? 0) + 1
      values.set(key, String(count))
      return count
    },
  }
}

/** How often it is undone in all rounds. */
async function undone(work: () => Promise<boolean | number>): Promise<number> {
  let count = 0
  for (let round = 0; round < ROUNDS; round += 1) count += Number(await work())
  return count
}

/** Sessions are rows of its database too. */
const inDatabase = { session: { expiresIn: 3600, updateAge: 0, storeSessionInDatabase: true } }

describe('a refresh that is written late', () => {
  const alone = ['sign-out', 'revoke', 'revoke others']
  const all = ['revoke all', 'a new password']
  it.each([...alone, ...all])('does not undo %s', async kind => {
    const { revivals } = betterAuthOver(ours())
    expect(await undone(async () => (await revivals[kind]!()) !== null)).toBe(0)
  })

  it.each(alone)('undoes %s on a storage that writes what it is given', async kind => {
    for (const options of [{}, inDatabase]) expect(await betterAuthOver(plain(), options).revivals[kind]!()).toBe('ada')
  })

  it.each(all)('does not undo %s there: better-auth keeps the instant', async kind => {
    for (const options of [{}, inDatabase]) expect(await betterAuthOver(plain(), options).revivals[kind]!()).toBeNull()
  })
})

describe('a role that is taken away while a session is refreshed', () => {
  const demoted = async (storage: SecondaryStorage) => {
    const { auth, hold, signUp, signIn, tokenOf } = betterAuthOver(storage, {
      user: { additionalFields: { role: { type: 'string', defaultValue: 'admin' } } },
    })
    const user = await signUp()
    const own = await signIn(user)
    const token = await tokenOf(own)
    const { internalAdapter } = await auth.$context
    const late = hold(new RegExp(`^${token}$`))
    const refresh = auth.api.getSession({ headers: own })
    await late.isThere
    await internalAdapter.updateUser(user.id, { role: 'user' })
    late.open()
    await refresh
    return (await internalAdapter.findSession(token)).user.role
  }

  it('stays so', async () => {
    expect(await undone(async () => (await demoted(ours())) !== 'user')).toBe(0)
    expect(await demoted(plain()), 'on a storage that writes what it is given').toBe('admin')
  })
})

describe('a clock that stands', () => {
  it('lets no login in that was under way when all sessions were revoked', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    expect(await undone(betterAuthOver(ours()).lateLogin)).toBe(0)
    expect(await betterAuthOver(plain()).lateLogin(), 'on a storage that writes what it is given').toBe(true)
  })
})

describe('the list of sessions', () => {
  it.each<[string, (over: ReturnType<typeof betterAuthOver>) => Promise<number>]>([
    ['after parallel logins of one user', ({ parallelLogins }) => parallelLogins(3)],
    ['after somebody has removed it', ({ lostList }) => lostList()],
  ])('has all that live, so that they can be revoked, %s', async (_, lacking) => {
    expect(await undone(() => lacking(betterAuthOver(ours())))).toBe(0)
    expect(await lacking(betterAuthOver(plain())), 'on a storage that writes what it is given').toBeGreaterThan(0)
    expect(await lacking(betterAuthOver(plain(), inDatabase)), 'with sessions in the database too').toBe(0)
  })
})

describe('better-auth', () => {
  it('signs in, lists, revokes, revokes others and signs out', async () => {
    const { api, signUp, signIn, nameOf, tokenOf } = betterAuthOver(ours())
    const user = await signUp()
    const [one, two, three, four] = [await signIn(user), await signIn(user), await signIn(user), await signIn(user)]
    const listed = async () => (await api.listSessions({ headers: four })).map(({ token }: any) => token).sort()
    const tokens = await Promise.all([one, two, three, four].map(tokenOf))
    expect(await listed()).toEqual([...tokens].sort())
    await api.revokeSession({ headers: four, body: { token: tokens[0] } })
    expect([await nameOf(one), await nameOf(two)]).toEqual([undefined, 'ada'])
    await api.signOut({ headers: two })
    expect(await listed()).toEqual(tokens.slice(2).sort())
    await api.revokeOtherSessions({ headers: four })
    expect([await nameOf(three), await nameOf(four)]).toEqual([undefined, 'ada'])
    await api.revokeSessions({ headers: four })
    expect(await nameOf(four)).toBeUndefined()
    expect(await nameOf(await signIn(user)), 'a login after that').toBe('ada')
  })

  it('shows the new name of a user in all sessions', async () => {
    const { api, signUp, signIn, nameOf } = betterAuthOver(ours())
    const user = await signUp()
    const [one, two] = [await signIn(user), await signIn(user)]
    await api.updateUser({ headers: one, body: { name: 'max' } })
    expect([await nameOf(one), await nameOf(two)]).toEqual(['max', 'max'])
  })

  it('limits the rate of requests, of parallel ones too', async () => {
    const rateLimit = { enabled: true, window: 60, max: 5, customRules: { '/get-session': { window: 60, max: 5 } } }
    const { auth } = betterAuthOver(ours(), { rateLimit, advanced: { ipAddress: { ipAddressHeaders: ['x-ip'] } } })
    const headers = { 'x-ip': '192.0.2.1' }
    const ask = () => auth.handler(new Request('http://localhost/api/auth/get-session', { headers }))
    const statuses = (await Promise.all(Array.from({ length: 12 }, ask))).map(({ status }) => status)
    expect(statuses.filter(status => status === 429)).toHaveLength(7)
  })
})

describe('a key', () => {
  const recordsIn = async (store: MemoryStore) => (await store.scan(null, 1000, { now: Date.now() })).records
  const at = (seconds: number) => vi.setSystemTime(1_800_000_000_000 + seconds * 1000)
  const TOKEN = 'abcdefghijklmnopqrstuvwxyzABCDEF'
  const session = (token = TOKEN, userId = 'u') => JSON.stringify({ session: { token, userId }, user: {} })

  it('has what was set for as long as it was said, and is free at once when that is over', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const storage = ours()
    at(0)
    await storage.set('verification:a', 'one', 10)
    await storage.set('endless', 'x')
    expect(await storage.increment('ip|/path', 10)).toBe(1)
    at(9.999)
    expect(await storage.get('verification:a')).toBe('one')
    expect(await storage.increment('ip|/path', 10)).toBe(2)
    at(10)
    expect(await storage.get('verification:a')).toBeNull()
    expect(await storage.increment('ip|/path', 10), 'the window began with the first').toBe(1)
    await storage.set('verification:a', 'two', 10)
    at(19)
    expect(await storage.get('verification:a')).toBe('two')
    at(86_400)
    expect(await storage.get('endless')).toBe('x')
    expect(await storage.getAndDelete('endless')).toBe('x')
    expect(await storage.getAndDelete('endless')).toBeNull()
    await storage.set('endless', 'y')
    expect(await storage.get('endless'), 'no session: it may be set again').toBe('y')
  })

  it('of a session that has ended takes no value any more', async () => {
    const storage = ours()
    for (const token of [TOKEN, 'a-token-of-another-form']) {
      await storage.set(token, session(token), 60)
      await storage.delete(token)
      await storage.set(token, session(token), 60)
      expect(await storage.get(token)).toBeNull()
    }
  })

  it('that never had a value takes none for ten minutes after its end if a list that was read here names it', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const store = new MemoryStore()
    const storage = secondaryStorage(store)
    at(0)
    const list = JSON.stringify([{ token: TOKEN, expiresAt: Date.now() + 3_600_000 }])
    await storage.set('active-sessions-u', list, 3600)
    await storage.get('active-sessions-u')
    await storage.delete(TOKEN)
    at(599)
    await store.sweep(1000, { now: Date.now(), deadline: Number.POSITIVE_INFINITY })
    await storage.set(TOKEN, session(), 60)
    expect(await storage.get(TOKEN)).toBeNull()
    const [mark] = (await recordsIn(store)).filter(({ data }) => data.includes('hasEnded'))
    expect(mark!.expiresAt).toBe(Date.now() + 1000)
  })

  it('that others keep writing to is given up in time, and a session under it ends all the same', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
    const store = new MemoryStore()
    const storage = secondaryStorage(store)
    await storage.set(TOKEN, session(), 60)
    store.update = async () => 'conflict'
    const [setting] = await Promise.all([
      storage.set(TOKEN, session(), 60).catch(error => error.message),
      vi.advanceTimersByTimeAsync(5000),
    ])
    expect(setting).toBe('update: others kept writing to the same key')
    await Promise.all([storage.delete(TOKEN), vi.advanceTimersByTimeAsync(5000)])
    expect(await storage.get(TOKEN)).toBeNull()
  })

  it('of a stranger leaves nothing, and what is used up is kept for no longer than it was to be', async () => {
    const store = new MemoryStore()
    const storage = secondaryStorage(store)
    for (let n = 0; n < 50; n += 1) await storage.delete(`${n}`.padStart(32, 'a'))
    expect(await recordsIn(store)).toEqual([])
    await storage.set('verification:state', 'x', 600)
    const [before] = await recordsIn(store)
    expect(await storage.getAndDelete('verification:state')).toBe('x')
    expect((await recordsIn(store)).map(({ expiresAt }) => expiresAt)).toEqual([before!.expiresAt])
  })

  it('of a session keeps the user who was changed last', async () => {
    const storage = ours()
    const withRole = (role: string, updatedAt?: string) =>
      JSON.stringify({ session: { token: TOKEN, userId: 'u' }, user: { role, updatedAt } })
    const role = async () => JSON.parse((await storage.get(TOKEN))!).user.role
    await storage.set(TOKEN, withRole('admin', '2026-01-01T00:00:00.000Z'), 60)
    await storage.set(TOKEN, withRole('user', '2026-01-01T00:00:00.001Z'), 60)
    await storage.set(TOKEN, withRole('admin', '2026-01-01T00:00:00.000Z'), 60)
    expect(await role()).toBe('user')
    await storage.set(TOKEN, withRole('editor', '2026-01-01T00:00:00.001Z'), 60)
    expect(await role(), 'of two of one instant the one that is written last').toBe('editor')
    await storage.set(TOKEN, withRole('unknown'), 60)
    expect(await role(), 'without an instant as it is written').toBe('unknown')
  })

  it('takes any text, of keys and values', async () => {
    const storage = ours()
    for (const text of ['', 'null', '{', '\0', '\ud800', '"', 'é'.repeat(5000), '__proto__']) {
      await storage.set(`key ${text}`, text, 60)
      expect(await storage.get(`key ${text}`)).toBe(text)
    }
    expect(await storage.get('__proto__')).toBeNull()
  })

  it('of the end of all sessions of a user only rises', async () => {
    const storage = ours()
    for (const instant of ['1000', '3000', '2000']) await storage.set('revoked-sessions-before-u', instant, 60)
    expect(await storage.get('revoked-sessions-before-u')).toBe('3000')
  })

  it('of a list lasts as long as the longest of its logins, also if a shorter one is written last', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const storage = ours()
    at(0)
    const add = (token: string, seconds: number) => {
      const list = JSON.stringify([{ token, expiresAt: Date.now() + seconds * 1000 }])
      return storage.set('active-sessions-u', list, seconds)
    }
    await add('long', 50)
    await add('short', 20)
    at(30)
    expect(JSON.parse((await storage.get('active-sessions-u'))!)).toMatchObject([{ token: 'long' }])
  })

  it('of a list drops what has expired or ended, and nothing else, and is not written without a new login', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const store = new MemoryStore()
    const storage = secondaryStorage(store)
    at(0)
    const listed = (token: string, seconds: number) => ({ token, expiresAt: Date.now() + seconds * 1000 })
    const tokens = async () =>
      JSON.parse((await storage.get('active-sessions-u')) ?? '[]').map((each: any) => each.token)
    await storage.set('active-sessions-u', JSON.stringify([listed(TOKEN, 50), listed('short', 5)]), 50)
    await storage.set(TOKEN, session(), 50)
    await storage.set('active-sessions-u', JSON.stringify([listed('other', 20)]), 20)
    expect(await tokens()).toEqual(['short', 'other', TOKEN])
    await storage.delete('active-sessions-u')
    at(6)
    const full = vi.spyOn(store, 'update').mockRejectedValue(new Error('full'))
    await storage.set('active-sessions-u', '[]', 1)
    full.mockRestore()
    expect(await tokens()).toEqual(['other', TOKEN])
    await storage.delete(TOKEN)
    expect(await tokens()).toEqual(['other'])
    at(30)
    await storage.set('active-sessions-u', JSON.stringify([listed('last', 5)]), 5)
    expect(await tokens()).toEqual(['last'])
  })
})

describe('the storage', () => {
  it('is made of a store alone', () => {
    for (const other of [undefined, null, {}, 'redis://localhost', { get() {}, set() {} }])
      expect(() => secondaryStorage(other as never)).toThrow(
        'secondaryStorage: expected a store, such as new RedisStore(client)',
      )
  })

  it('removes what has expired, every five minutes at most', async () => {
    // A sweep of the memory store ends early on a machine that stands still.
    vi.useFakeTimers({ toFake: ['Date', 'performance'] })
    const store = new MemoryStore()
    const sweep = vi.spyOn(store, 'sweep')
    const storage = secondaryStorage(store)
    for (const key of ['a', 'b']) await storage.set(key, 'x', 60)
    expect(sweep).not.toHaveBeenCalled()
    vi.setSystemTime(Date.now() + 11 * 60_000)
    for (const key of ['c', 'd']) await storage.set(key, 'x', 60)
    expect(sweep).toHaveBeenCalledTimes(1)
    expect(await sweep.mock.results[0]!.value).toBe(2)
  })

  it('fails if its store fails: no user is logged out by it', async () => {
    const store = new MemoryStore()
    const storage = secondaryStorage(store)
    await storage.set('k', 'v', 60)
    store.read = () => Promise.reject(new Error('ECONNREFUSED'))
    for (const call of [() => storage.get('k'), () => storage.set('k', 'w', 60), () => storage.delete('k')])
      await expect(call()).rejects.toMatchObject({ code: 'ERR_SESSION_STORE', cause: { message: 'ECONNREFUSED' } })
    store.read = () => undefined as never
    await expect(storage.get('k'), 'no answer is no absence').rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
  })
})
