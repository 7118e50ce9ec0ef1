import { modelTest } from 'coatcheck/custom-store/testing'
import { RedisStore } from 'coatcheck/stores/redis'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { beforeAll, expect, it } from 'vitest'
import { call, HOUR, keyIn, recordOf, T0 } from '../support/records.ts'
import { STANDALONE } from '../support/redis/clients.ts'
import { redisForGroup } from '../support/redis/group.ts'
import { asCoats, RIGHTS, ROLE, WALKING } from '../support/redis/rights.ts'
import { describeEngine } from '../support/services/engines.ts'

describeEngine('redis', 'a Redis user who may do no more than the documentation allows', () => {
  const redis = redisForGroup()
  beforeAll(async () => {
    await redis.client.acl('SETUSER', 'coats', ...RIGHTS)
  })

  it('cannot reach other keys and commands', async () => {
    expect([RIGHTS[0], RIGHTS.includes('+zrandmember'), ROLE, WALKING]).toEqual(['reset', true, ['+role'], ['+scan']])
    const client = new Redis(asCoats(redis.server.url))
    for (const args of [['GET', 'other'], ['KEYS', '*'], ['FLUSHALL'], ['CONFIG', 'GET', '*'], ['SCAN', '0']])
      await expect(client.call(...(args as [string]))).rejects.toThrow(/NOPERM/)
    client.disconnect()
  })

  // With node-redis the whole suite runs as this user: test/contract/redis.test.ts.
  it('connects with ioredis, and keeps the contract', async () => {
    await redis.client.acl('SETUSER', 'coats', ...WALKING)
    const client = new Redis(asCoats(redis.server.url))
    await modelTest(fc, () => new RedisStore(client), undefined, { runs: 3 })
    client.disconnect()
  })

  it('is told what is missing where something is', async () => {
    await redis.client.acl('SETUSER', 'poor', 'reset', 'on', '>secret', '~coatcheck:*', '+@connection', '+get')
    const { client, close } = await STANDALONE['node-redis 6']!(redis.server.url.replace('//', '//poor:secret@'))
    await expect(new RedisStore(client).read(keyIn('abc'), call())).rejects.toMatchObject({
      code: 'ERR_SESSION_STORE',
      outcome: 'not-applied',
      cause: { message: expect.stringMatching(/may not ask INFO.*grant \+info/) },
    })
    const store = new RedisStore(client, { allowEviction: true })
    const cause = { message: expect.stringMatching(/NOPERM.*evalsha/) }
    await expect(store.create(recordOf(store, '1'), call())).rejects.toMatchObject({ outcome: 'not-applied', cause })
    await close()
  })
})

describeEngine('redis', 'a right that is missing for a moment', () => {
  const USED = 'get set del exists pttl pexpire type zadd zrem zrange zcard zrandmember'.split(' ')
  const redis = redisForGroup()
  let store: RedisStore
  beforeAll(async () => {
    store = redis.store
    await store.listUser('0', 'session', call())
  })
  /** Begins a session of the user; answers its key. */
  const begin = async (userId: string) => {
    const record = recordOf(store, userId)
    expect(await store.create(record, call())).toBe('created')
    return record
  }
  const isAlive = async ({ key }: { key: string }) => (await store.read(key, call())) !== null
  /** What a call answers without this right, or `refused`. */
  const without = async <T>(right: string, work: () => Promise<T>): Promise<T | 'refused'> => {
    await redis.server.cli('ACL', 'SETUSER', 'default', `-${right}`)
    try {
      return await work()
    } catch (error) {
      expect(error).toMatchObject({ cause: { message: expect.stringMatching(/NOPERM|can't run this command/) } })
      return 'refused'
    } finally {
      await redis.server.cli('ACL', 'SETUSER', 'default', '+@all')
      // A script that may not remove keys finds that out with a key that lives for a millisecond. No replica will answer.
      await redis.server.cli('WAIT', '1', '2')
    }
  }

  it.each(USED)('never lets logout-everywhere miss a session, nor a later one (%s)', async right => {
    const spared = await begin(`all-${right}`)
    const others = [await begin(`all-${right}`), await begin(`all-${right}`)]
    const options = { minPasswordVersionUntil: T0 + HOUR, minPasswordVersion: 5, exceptKey: spared.key }
    const answer = await without(right, () => store.deleteUser(`all-${right}`, options, call()))
    if (answer !== 'refused') {
      expect(await Promise.all(others.map(isAlive))).toEqual([false, false])
      const old = recordOf(store, `all-${right}`, { passwordVersion: 4 })
      expect(await store.create(old, call())).toBe('stale-login')
    }
    expect(await isAlive(spared)).toBe(true)
    await store.deleteUser(`all-${right}`, { minPasswordVersionUntil: T0 }, call())
    expect(await Promise.all([spared, ...others].map(isAlive))).toEqual([false, false, false])
  })

  it.each(USED)('never lets a login, refused or not, hide other sessions (%s)', async right => {
    const before = await begin(`in-${right}`)
    const old = await begin(`in-${right}`)
    const added = [recordOf(store, `in-${right}`), recordOf(store, `in-${right}`)] as const
    await without(right, () => store.create(added[0], call()))
    const moved = await without(right, () => store.replace(old.key, 1, added[1], {}, call()))
    expect([await isAlive(old), await isAlive(added[1])]).toEqual(moved === 'refused' ? [true, false] : [false, true])
    await store.deleteUser(`in-${right}`, { minPasswordVersionUntil: T0 }, call())
    expect(await Promise.all([before, old, ...added].map(isAlive))).toEqual([false, false, false, false])
  })

  it.each(USED)('never gives an anonymous session a new ID and leaves the old one alive (%s)', async right => {
    const [old, added] = [recordOf(store, null), recordOf(store, null)]
    await store.create(old, call())
    const replace = () => store.replace(old.key, 1, added, {}, call())
    await without(right, replace)
    expect(await replace()).toMatch(/^(created|gone)$/)
    expect([await isAlive(old), await isAlive(added)]).toEqual([false, true])
  })

  it.each(USED)('never lets an older password in (%s)', async right => {
    await store.deleteUser(`old-${right}`, { minPasswordVersionUntil: T0 + HOUR, minPasswordVersion: 5 }, call())
    const old = recordOf(store, `old-${right}`, { passwordVersion: 4 })
    const answer = await without(right, () => store.create(old, call()))
    expect(answer).toMatch(/^(refused|stale-login)$/)
    expect(await isAlive(old)).toBe(false)
  })
})
