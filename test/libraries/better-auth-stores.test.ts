// better-auth's storage on every kind of database: late writes, parallel logins, and keys that are no sessions.
import { type SecondaryStorage, secondaryStorage } from 'coatcheck/better-auth'
import { RedisStore } from 'coatcheck/stores/redis'
import { expect, it, vi } from 'vitest'
import { onRealStores } from '../support/real-stores.ts'
import { STANDALONE } from '../support/redis/clients.ts'
import { describeEngine } from '../support/services/engines.ts'
import { startRedis } from '../support/services/redis.ts'
import { started } from '../support/started.ts'
import { betterAuthOver } from './better-auth.ts'

const ROUNDS = Number(process.env.COATCHECK_ROUNDS ?? 1)
// Beside whatever else this machine does.
const TIMEOUT = 240_000 + 1000 * ROUNDS

onRealStores(
  store => `better-auth on ${store}`,
  open => {
    it(
      'keeps ended sessions ended, and lists parallel logins',
      async () => {
        const { revivals, parallelLogins, lostList, lateLogin } = betterAuthOver(secondaryStorage(open()))
        const undone = { revived: 0, lost: 0, outlived: 0 }
        for (let round = 0; round < ROUNDS; round += 1) {
          for (const revival of Object.values(revivals)) if ((await revival()) !== null) undone.revived += 1
          undone.lost += await parallelLogins(3)
          undone.outlived += (await lostList()) + Number(await lateLogin())
        }
        expect(undone).toEqual({ revived: 0, lost: 0, outlived: 0 })
      },
      TIMEOUT,
    )

    it('counts exactly, gives a value away once, and takes any text', async () => {
      const [one, two] = [secondaryStorage(open()), secondaryStorage(open())]
      const counts = Array.from({ length: 30 }, (_, at) => [one, two][at % 2]!.increment('ip|/path', 60))
      expect((await Promise.all(counts)).sort((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_, at) => at + 1))
      const text = '\0\ud800"é'.repeat(3000)
      await one.set('verification:a', text, 60)
      expect(await two.get('verification:a')).toBe(text)
      const taken = await Promise.all(
        Array.from({ length: 10 }, (_, at) => [one, two][at % 2]!.getAndDelete('verification:a')),
      )
      expect(taken.filter(value => value !== null)).toEqual([text])
      await one.set('brief', 'x', 0)
      expect(await two.get('brief')).toBeNull()
      await two.set('brief', 'y', 60)
      expect(await one.get('brief'), 'free at once').toBe('y')
    })

    it('makes few calls for the many requests of one client', async () => {
      const store = open()
      const calls = (['read', 'create', 'update'] as const).map(method => vi.spyOn(store, method))
      const storage = secondaryStorage(store)
      const first = storage.increment('ip|/many', 60)
      const others = Array.from({ length: 399 }, () => storage.increment('ip|/many', 60))
      expect(Math.max(...(await Promise.all([first, ...others])))).toBe(400)
      expect(calls.reduce((sum, { mock }) => sum + mock.calls.length, 0)).toBeLessThan(10)
      vi.restoreAllMocks()
    })
  },
)

describeEngine('redis', 'better-auth on a Redis that is full', () => {
  /** As the documentation of better-auth shows it. */
  const plain = (client: any) =>
    ({
      get: key => client.get(key),
      set: (key, value, ttl) => client.set(key, value, ttl ? { EX: ttl } : {}),
      delete: key => client.del(key),
    }) as Pick<SecondaryStorage, 'get' | 'set' | 'delete'> as SecondaryStorage
  const server = started(startRedis)
  const redis = started(() => STANDALONE['node-redis 6']!(server().url))

  /** Who the first and the third session of a user are after this end, while Redis refuses writes. */
  async function ended(end: string, storage: SecondaryStorage) {
    await server().cli('CONFIG', 'SET', 'maxmemory', '0')
    // A refresh would be refused.
    const session = { expiresIn: 3600, updateAge: 1800 }
    const { api, signUp, signIn, nameOf, tokenOf } = betterAuthOver(storage, { session })
    const user = await signUp()
    const [one, two, three] = [await signIn(user), await signIn(user), await signIn(user)]
    const token = await tokenOf(one)
    await server().cli('CONFIG', 'SET', 'maxmemory', '1')
    const act: Record<string, () => Promise<unknown>> = {
      'sign-out': () => api.signOut({ headers: one }),
      revoke: () => api.revokeSession({ headers: two, body: { token } }),
      'revoke others': () => api.revokeOtherSessions({ headers: two }),
      'revoke all': () => api.revokeSessions({ headers: two }),
    }
    await act[end]!().catch(() => {})
    return [await nameOf(one), await nameOf(three)]
  }

  it.each([
    ['sign-out', 'ada'],
    ['revoke', 'ada'],
    ['revoke others', undefined],
    ['revoke all', undefined],
  ])('%s ends sessions, and on a plain storage none', async (end, third) => {
    expect(await ended(end, secondaryStorage(new RedisStore(redis().client)))).toEqual([undefined, third])
    expect(await ended(end, plain(redis().client))).toEqual(['ada', 'ada'])
  })
})
