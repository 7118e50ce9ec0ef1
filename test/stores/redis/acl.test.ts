import { readFileSync } from 'node:fs'
import { RedisStore } from 'coatcheck/stores/redis'
import { testStore } from 'coatcheck/testing'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeEngine } from '../../services/engines.ts'
import { type RedisServer, startRedis } from '../../services/redis.ts'
import { keyIn, recordOf, soon, T0 } from '../../support/redis/records.ts'

/** What docs/stores/redis.md tells to allow, and nothing more: the suite runs as this user. */
const PAGE = readFileSync(new URL('../../../docs/stores/redis.md', import.meta.url), 'utf8')
const [RULES = [], WAITING = [], WALKING = []] = [
  ...PAGE.matchAll(/redis-cli ACL SETUSER coats ((?:[^\n#\\]|\\\n)+)/g),
].map(([, rules]) => rules!.split(/[\s\\']+/).filter(Boolean))

describeEngine('redis', 'a Redis user who may do no more than the documentation allows', () => {
  let server: RedisServer
  const url = () => server.url.replace('//', '//coats:secret@')
  beforeAll(async () => {
    server = await startRedis()
    await server.cli('ACL', 'SETUSER', 'coats', ...RULES)
  })
  afterAll(() => server.stop())

  it('cannot reach other keys and commands', async () => {
    expect([RULES[0], RULES.includes('+zrandmember'), WAITING, WALKING]).toEqual(['reset', true, ['+wait'], ['+scan']])
    const client = createClient({ url: url() }).on('error', () => {})
    await client.connect()
    for (const args of [['GET', 'other'], ['KEYS', '*'], ['FLUSHALL'], ['CONFIG', 'GET', '*'], ['SCAN', '0']])
      await expect(client.sendCommand(args)).rejects.toThrow(/NOPERM/)
    client.destroy()
  })

  describe('with node-redis', () => {
    let client: ReturnType<typeof createClient>
    beforeAll(async () => {
      // The suite also walks over all that is stored.
      await server.cli('ACL', 'SETUSER', 'coats', ...WALKING)
      client = createClient({ url: url() })
      client.on('error', () => {})
      await client.connect()
    })
    afterAll(() => client.destroy())
    testStore(it, () => new RedisStore(client), undefined, { runs: 10, rounds: 3 })
  })

  describe('with ioredis', () => {
    let client: Redis
    beforeAll(async () => {
      client = new Redis(url())
      await client.ping()
    })
    afterAll(() => client.disconnect())
    testStore(it, () => new RedisStore(client), undefined, { runs: 10, rounds: 3 })
  })

  it('needs one command more for waitReplicas', async () => {
    const replica = await startRedis(['--replicaof', `127.0.0.1 ${server.port}`])
    await server.cli('ACL', 'SETUSER', 'coats', ...WAITING)
    const client = new Redis(url())
    const store = new RedisStore(client, { waitReplicas: 1 })
    const record = recordOf(store, '1')
    await store.create(record, {}, { now: T0, deadline: soon() })
    expect(await store.delete(record.key, { now: T0, deadline: soon() })).toBe(true)
    await store.close()
    client.disconnect()
    await replica.stop()
  })

  it('is told what is missing where something is', async () => {
    await server.cli('ACL', 'SETUSER', 'poor', 'reset', 'on', '>secret', '~coatcheck:*', '+@connection', '+get')
    const client = createClient({ url: server.url.replace('//', '//poor:secret@') }).on('error', () => {})
    await client.connect()
    await expect(new RedisStore(client).read(keyIn('abc'), { now: T0 })).rejects.toMatchObject({
      code: 'ERR_SESSION_STORE',
      outcome: 'not-applied',
      cause: { message: expect.stringMatching(/may not ask INFO.*grant \+info/) },
    })
    await expect(
      new RedisStore(client, { allowEviction: true }).create(recordOf(new RedisStore(client), '1'), {}, { now: T0 }),
    ).rejects.toMatchObject({ outcome: 'not-applied', cause: { message: expect.stringMatching(/NOPERM.*evalsha/) } })
    client.destroy()
  })
})
