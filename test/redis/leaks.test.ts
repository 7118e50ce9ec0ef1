import { SessionManager } from 'coatcheck'
import { RedisStore } from 'coatcheck/stores/redis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { STANDALONE } from '../support/redis/clients.ts'
import { describeEngine } from '../support/services/engines.ts'
import { type RedisServer, startRedis } from '../support/services/redis.ts'

const LONG = process.env.COATCHECK_LONG === '1'

describeEngine('redis', 'what is left behind in Redis', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.stop())

  const keysWithoutTtl = () =>
    server.cli(
      'EVAL',
      `local n = 0 for _, k in ipairs(redis.call('KEYS', '*')) do if redis.call('PTTL', k) < 0 then n = n + 1 end end return n`,
      '0',
    )

  it('is nothing, once the sessions have expired and all clients are gone', { timeout: 900_000 }, async () => {
    const total = LONG ? 100_000 : 3000
    const { client, close } = await STANDALONE['node-redis 6']!(server.url)
    const sessions = new SessionManager({
      store: new RedisStore(client),
      idleTimeout: '1s',
      absoluteTimeout: '2s',
      rememberFor: '2s',
      limit: { max: 3 },
      storeTimeout: '30s',
    })
    for (let done = 0; done < total; done += 250) {
      await Promise.all(
        Array.from({ length: 250 }, async (_, i) => {
          const user = { id: (done + i) % 997, name: 'ada', passwordVersion: 4_000_000_000 }
          if (i % 5 === 0) return sessions.create()
          const session = await sessions.create({ user })
          if (i % 5 === 1) await sessions.regenerate(session)
          if (i % 5 === 2) await sessions.update(session, { seen: i })
          if (i % 50 === 3) await sessions.issueRememberToken(session).catch(() => null)
          if (i % 50 === 4) await sessions.invalidateUser(user.id, { minPasswordVersion: 1 })
          return session
        }),
      )
      if (done % 2500 === 0) expect(await keysWithoutTtl()).toBe('0')
    }
    await sessions.close()
    await close()
    expect(Number(await server.cli('DBSIZE'))).toBeGreaterThan(total / 10)
    expect(await keysWithoutTtl()).toBe('0')
    expect(await server.cli('CONFIG', 'GET', 'notify-keyspace-events')).toBe('notify-keyspace-events')

    // Records are kept 5 minutes longer than they are valid, an index 10, forwards 12, and a floor holds for a day. The long form waits for the first; otherwise time is moved.
    if (LONG) await new Promise(resolve => setTimeout(resolve, 723_500))
    else await shift(723_000)
    const rest = (await server.cli('KEYS', '*')).split('\n').filter(Boolean)
    expect(rest.filter(key => !/:v:/.test(key))).toEqual([])
    await shift(25 * 3_600_000)
    expect(await server.cli('DBSIZE')).toBe('0')
  })

  /** Takes so many ms from every key's life. */
  const shift = (ms: number) =>
    server.cli(
      'EVAL',
      `for _, k in ipairs(redis.call('KEYS', '*')) do redis.call('PEXPIRE', k, redis.call('PTTL', k) - ARGV[1]) end`,
      '0',
      `${ms}`,
    )

  it('is no key under a user who logged in and out all day, once it is over', async () => {
    const { client, close } = await STANDALONE['ioredis 6']!(server.url)
    const sessions = new SessionManager({ store: new RedisStore(client), storeTimeout: '20s' })
    for (let i = 0; i < 200; i++) {
      const session = await sessions.create({ user: { id: 1007, name: 'ada' } })
      await (i % 2 ? sessions.destroy(session) : sessions.invalidateUser(1007))
    }
    await sessions.invalidateUser(1007)
    const { length } = (await server.cli('KEYS', '*')).split('\n').filter(Boolean)
    expect(length).toBe(0)
    await close()
  })
})
