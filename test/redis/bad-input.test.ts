import { RedisStore } from 'coatcheck/stores/redis'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { createClient, createClientPool, createCluster, createSentinel } from 'redis'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { call, HOUR, keyIn, nameOf, recordOf, T0 } from '../support/records.ts'
import { CLUSTER } from '../support/redis/clients.ts'
import { redisForGroup } from '../support/redis/group.ts'
import { describeEngine } from '../support/services/engines.ts'
import { startRedisCluster } from '../support/services/redis.ts'

describe('a Redis store that cannot work', () => {
  const idle = createClient()
  const PREFIX = /^remove keyPrefix "app:" from the client and pass prefix to RedisStore$/
  it.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /client is undefined: expected a connected client of node-redis/],
    ['a URL', 'redis://:pw@localhost', /^client is a URL \(not shown.*expected a connected client/],
    ['an empty object', {}, /no call\(\) or sendCommand\(\).*node-redis 5 or 6.*ioredis 5 or 6/],
    ['the options of connect-redis', { client: {}, prefix: 'app:' }, /new RedisStore\(client, \{ … \}\)/],
    [
      'a wrapper around node-redis',
      { sendCommand: async () => null },
      /^client has sendCommand\(\), and lacks isOpen, isReady: pass the client itself, or a wrapper/,
    ],
    [
      'a wrapper around ioredis',
      { call: async () => null },
      /^client has call\(\), and lacks status: pass the client itself, or a wrapper/,
    ],
    ['a node-redis client before connect()', idle, /not connected: await its connect\(\)/],
    ['an ioredis client that waits for connect()', new Redis({ lazyConnect: true }), /status 'wait'.*connect\(\)/],
    [
      'a cluster client that reads from replicas',
      createCluster({ rootNodes: [{}], useReplicas: true }),
      /reads from replicas/,
    ],
    [
      'an ioredis cluster that reads from replicas',
      new Redis.Cluster([{ port: 1 }], { lazyConnect: true, scaleReads: 'slave' }),
      /reads from replicas/,
    ],
    [
      'an ioredis cluster with a choice of its own',
      new Redis.Cluster([{ port: 1 }], { lazyConnect: true, scaleReads: (nodes: unknown[]) => nodes[0] as never }),
      /reads from replicas/,
    ],
    ['a read-only connection', new Redis({ lazyConnect: true, readOnly: true }), /reads from replicas/],
    [
      'a connection to the replicas of a Sentinel',
      new Redis({ lazyConnect: true, sentinels: [{ port: 1 }], name: 'x', role: 'slave' }),
      /reads from replicas/,
    ],
    ['a key prefix of ioredis', new Redis({ lazyConnect: true, keyPrefix: 'app:' }), PREFIX],
    [
      'a key prefix of its cluster',
      new Redis.Cluster([{ port: 1 }], { lazyConnect: true, redisOptions: { keyPrefix: 'app:' } }),
      PREFIX,
    ],
    ['a key prefix that node-redis leaves out', createClient({ keyPrefix: 'app:' }), PREFIX],
    ['a key prefix that its pool leaves out', createClientPool({ keyPrefix: 'app:' }), PREFIX],
    ['a key prefix that its cluster leaves out', createCluster({ rootNodes: [{}], keyPrefix: 'app:' }), PREFIX],
    [
      'a key prefix that its Sentinel leaves out',
      createSentinel({ name: 'x', sentinelRootNodes: [{ host: 'h', port: 1 }], keyPrefix: 'app:' }),
      PREFIX,
    ],
  ])('says so for %s', (_, client, message) => {
    const open = () => new RedisStore(client as never)
    expect(open).toThrow(TypeError)
    expect(open).toThrow(message)
    expect(open).not.toThrow(/pw/)
  })

  it('works with a wrapper as it describes one, and believes what that says about its connection', async () => {
    const server = { isOpen: true, isReady: true, sendCommand: async () => null }
    const wrapper = {
      get isOpen() {
        return server.isOpen
      },
      get isReady() {
        return server.isReady
      },
      sendCommand: () => server.sendCommand(),
    }
    const store = new RedisStore(wrapper, { allowEviction: true })
    expect(await store.read(keyIn('abc'), call())).toBe(null)
    server.isReady = false
    await expect(store.read(keyIn('abc'), call())).rejects.toMatchObject({ outcome: 'not-applied' })
  })

  it.each<[object, RegExp]>([
    [{ prefx: 'a:' }, /^RedisStore: "prefx" is not an option \(there are: prefix, allowEviction, singleSlot\)$/],
    [{ ttl: 60 }, /"ttl" is not an option; .*idleTimeout/],
    [{ serializer: JSON }, /"serializer" is not an option; .*codec/],
    [{ disableTouch: true }, /"disableTouch" is not an option; .*touchInterval/],
    [{ client: null }, /"client" is not an option; .*first argument/],
    ['app:' as never, /RedisStore: expected an object of options, got "app:"/],
    [{ allowEviction: 'yes' as never }, /^allowEviction: expected true or false, got "yes"$/],
  ])('says so for the options %j', (options, message) => {
    const open = () => new RedisStore(fake, options)
    expect(open).toThrow(TypeError)
    expect(open).toThrow(message)
  })

  it.each(['{', 'a}', 'a b', 'a\u0000', 'x'.repeat(65), 7])('says so for the prefix %j', prefix => {
    const open = () => new RedisStore(fake, { prefix: prefix as string })
    expect(open).toThrow(TypeError)
    expect(open).toThrow(/^prefix: expected at most 64 characters without braces/)
  })

  const fake = { isOpen: true, isReady: true, sendCommand: async () => null }
})

describeEngine('redis', 'strange things in the Redis of the sessions', () => {
  const redis = redisForGroup()
  let store: RedisStore
  beforeAll(() => {
    store = redis.store
  })
  const change = { data: 'x', seenAt: T0, expiresAt: T0, writeId: 'writeid124' }

  it('is removed where the key has another type, and no verb fails on it', async () => {
    for (const verb of [
      (key: string) => store.read(key, call()),
      (key: string) => store.update(key, 1, change, call()),
      (key: string) => store.touch(key, T0, T0, call()),
      (key: string) => store.delete(key, call()),
      (key: string) => store.replace(key, 1, recordOf(store, '42'), {}, call()),
    ]) {
      const key = keyIn(store.shard('42'))
      await redis.client.lpush(nameOf(key), 'a', 'b')
      expect([{ corrupt: expect.any(String) }, 'gone', false, 'gone']).toContainEqual(await verb(key))
    }
    const key = keyIn(store.shard('42'))
    await redis.client.hset(nameOf(key), 'a', 'b')
    expect(await store.create(recordOf(store, '42', { key }), call())).toBe('collision')
    expect(await store.read(key, call())).toEqual({ corrupt: 'the key is not a string' })
    expect(await redis.client.exists(nameOf(key))).toBe(0)
  })

  it('does not keep a user out: an index or a minimum password version of another type is replaced', async () => {
    const index = `coatcheck:{${store.shard('50')}}:u:50`
    const minimum = `coatcheck:{${store.shard('50')}}:v:50`
    for (const [command, ...rest] of [
      ['SET', 'x'],
      ['LPUSH', 'x'],
      ['HSET', 'x', 'y'],
    ] as const) {
      await redis.client.del(index, minimum)
      await redis.client.call(command, index, ...rest)
      await redis.client.call(command, minimum, ...rest)
      expect(await store.listUser('50', 'session', call())).toEqual([])
      const record = recordOf(store, '50')
      expect(await store.create(record, call())).toBe('created')
      expect(await store.listUser('50', 'session', call())).toEqual([record])
      await redis.client.del(index)
      await redis.client.call(command, index, ...rest)
      expect(await store.deleteUser('50', { minPasswordVersion: 2, minPasswordVersionUntil: T0 + HOUR }, call())).toBe(
        0,
      )
      expect(await store.create(recordOf(store, '50'), call())).toBe('stale-login')
    }
  })

  it('never makes a read fail, whatever byte of a record changed', async () => {
    const record = recordOf(store, '80', { userName: 'ada l', passwordVersion: 3, parent: null })
    await store.create(record, call())
    const { client } = redis
    const sound = (await client.getBuffer(nameOf(record.key)))!
    await fc.assert(
      fc.asyncProperty(
        fc.nat(sound.length - 1),
        fc.integer({ min: 0, max: 255 }),
        fc.boolean(),
        async (at, byte, cut) => {
          const bytes = Buffer.from(sound)
          bytes[at] = byte
          await client.set(nameOf(record.key), cut ? bytes.subarray(0, at) : bytes, 'PX', 100_000)
          const found = await store.read(record.key, call())
          const sane =
            found === null || 'corrupt' in found || ('key' in found && found.key === record.key && found.expiresAt > T0)
          expect(sane).toBe(true)
          if (found && 'corrupt' in found) expect(await client.exists(nameOf(record.key))).toBe(0)
          expect(['updated', 'conflict', 'gone']).toContain(await store.update(record.key, 1, change, call()))
        },
      ),
      { numRuns: 100 },
    )
  })

  it('is nothing of another application, which has a prefix of its own: neither its sessions nor its logouts', async () => {
    const other = new RedisStore(redis.client, { prefix: 'other:' })
    const record = recordOf(store, '90')
    await store.create(record, call())
    expect(await other.read(record.key, call())).toBe(null)
    const everywhere = { minPasswordVersion: 2, minPasswordVersionUntil: T0 + HOUR }
    expect(await other.deleteUser('90', everywhere, call())).toBe(0)
    expect(await store.listUser('90', 'session', call())).toEqual([record])
    expect(await store.create(recordOf(store, '90'), call())).toBe('created')
    expect(await other.create(recordOf(other, '90'), call())).toBe('stale-login')
  })
})

describeEngine('redis', 'a Redis that evicts', () => {
  const redis = redisForGroup(['--maxmemory', '100mb'])

  it.each(['allkeys-lru', 'volatile-ttl'])('is refused under %s', async policy => {
    await redis.client.config('SET', 'maxmemory-policy', policy)
    const store = new RedisStore(redis.client)
    const calls = [() => store.read(keyIn('abc'), call()), () => store.create(recordOf(store, '1'), call())]
    for (const refused of calls)
      await expect(refused()).rejects.toMatchObject({
        code: 'ERR_SESSION_STORE',
        outcome: 'not-applied',
        message: expect.not.stringContaining('maxmemory'),
        cause: {
          message: expect.stringMatching(
            `maxmemory-policy ${policy}.*set maxmemory-policy noeviction.*allowEviction: true`,
          ),
        },
      })
    const brave = new RedisStore(redis.client, { allowEviction: true })
    expect(await brave.create(recordOf(brave, '1'), call())).toBe('created')
    // Works by itself once it is set right.
    await redis.client.config('SET', 'maxmemory-policy', 'noeviction')
    expect(await store.create(recordOf(store, '1'), call())).toBe('created')
  })

  it('is refused where one of the masters of a cluster evicts', async () => {
    const cluster = await startRedisCluster()
    onTestFinished(() => cluster.stop())
    const { client, close } = await CLUSTER['ioredis 6 cluster']!(cluster.addresses)
    const read = () => new RedisStore(client).read(keyIn('abc'), call())
    expect(await read()).toBe(null)
    for (const [name, value] of Object.entries({ maxmemory: '100mb', 'maxmemory-policy': 'allkeys-lru' }))
      await cluster.masters[2]!.cli('CONFIG', 'SET', name, value)
    await expect(read()).rejects.toMatchObject({
      cause: { message: expect.stringContaining('maxmemory 104857600, ') },
    })
    await close()
  })
})

// No Redis of our own answers so.
describe('a Redis of others that tells', () => {
  const reasonOf = (...lines: string[]) => {
    const said = ['# Memory', 'used_memory:1', ...lines, 'x:y', ''].join('\r\n')
    const sendCommand = async ([name]: string[]) => (name === 'INFO' ? said : null)
    const store = new RedisStore({ isOpen: true, isReady: true, sendCommand } as never)
    return store.read(keyIn('abc'), call()).then(
      () => null,
      error => error.cause.message as string,
    )
  }
  it('no limit or no policy is worked on if what it tells is enough, and is refused otherwise', async () => {
    expect(await reasonOf('maxmemory:0')).toBe(null)
    expect(await reasonOf('maxmemory_policy:noeviction')).toBe(null)
    expect(await reasonOf('maxmemory:100')).toContain('(maxmemory 100, maxmemory-policy undefined)')
    expect(await reasonOf('maxmemory_policy:volatile-ttl')).toContain('(maxmemory undefined, ')
    expect(await reasonOf('my_maxmemory:0', 'maxmemory:7', 'maxmemory_policy:volatile-lru')).toContain('(maxmemory 7, ')
  })

  it('nothing of it is away: a proxy that is starting answers so', async () => {
    expect(await reasonOf()).toBe('INFO memory was not understood')
  })
})
