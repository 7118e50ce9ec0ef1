import { GlideClient, GlideClusterClient } from '@valkey/valkey-glide'
import { RedisStore } from 'coatcheck/stores/redis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { linkTo } from '../../../stores/redis/client.ts'
import { describeEngine } from '../../services/engines.ts'
import { until } from '../../services/process.ts'
import { type RedisCluster, type RedisServer, startRedis, startRedisCluster } from '../../services/redis.ts'
import { CLUSTER, STANDALONE } from '../../support/redis/clients.ts'
import { recordOf, soon, T0 } from '../../support/redis/records.ts'

describeEngine('redis', 'the client of Valkey', () => {
  let server: RedisServer
  let cluster: RedisCluster
  beforeAll(async () => {
    ;[server, cluster] = await Promise.all([startRedis(), startRedisCluster()])
  })
  afterAll(() => Promise.all([server.stop(), cluster.stop()]))
  const addresses = () => [{ host: '127.0.0.1', port: server.port }]

  it.each<[string, object, RegExp]>([
    ['replicas, perhaps', { readFrom: 'preferReplica' }, /reads from replicas \(readFrom: 'preferReplica'\)/],
    ['the nearest', { readFrom: 'AZAffinity', clientAz: 'a' }, /reads from replicas \(readFrom: 'AZAffinity'\)/],
    ['any node', { readOnly: true }, /reads from replicas \(readOnly: true\)/],
    [
      'memory',
      { clientSideCache: { cacheId: 'c', maxCacheKb: 100, entryTtlMs: 60_000 } },
      /keeps what it reads \(clientSideCache\)/,
    ],
  ])('is refused where it reads from %s', async (_, options, message) => {
    const client = await GlideClient.createClient({ addresses: addresses(), ...options } as never)
    const open = () => new RedisStore(client)
    expect(open).toThrow(TypeError)
    expect(open).toThrow(message)
    client.close()
  })

  it('is taken where it says that it reads from the master', async () => {
    const client = await GlideClient.createClient({ addresses: addresses(), readFrom: 'primary', requestTimeout: 5000 })
    const store = new RedisStore(client)
    const record = recordOf(store, '1')
    await store.create(record, {}, { now: T0, deadline: soon() })
    expect(await store.read(record.key, { now: T0, deadline: soon() })).toEqual(record)
    client.close()
  })

  it('is refused once it is closed, and fails at once where it is closed later', async () => {
    for (const { client, close } of [
      await STANDALONE['valkey-glide 2']!(server.url),
      await CLUSTER['valkey-glide 2 cluster']!(cluster.addresses),
    ]) {
      const store = new RedisStore(client)
      const record = recordOf(store, '1')
      await store.create(record, {}, { now: T0, deadline: soon() })
      await close()
      for (const call of [
        () => store.read(record.key, { now: T0, deadline: soon() }),
        () => store.delete(record.key, { now: T0, deadline: soon() }),
        () => store.scan(null, 10, { now: T0, deadline: performance.now() + 200 }),
      ])
        await expect(call()).rejects.toMatchObject({
          outcome: 'not-applied',
          cause: { message: expect.stringMatching(/is closed/) },
        })
      expect(() => new RedisStore(client)).toThrow(new TypeError('the Valkey client is closed: create a new one'))
    }
  })

  it('has to come itself, or in a wrapper that tells whether it is closed', () => {
    const open = () => new RedisStore({ customCommand: async () => null })
    expect(open).toThrow(
      /^client has customCommand\(\), and lacks isClosed: .*get isClosed\(\) \{ return client\.isClosed/,
    )
  })

  it('cannot wait for replicas in a cluster, and says so', async () => {
    const { client, close } = await CLUSTER['valkey-glide 2 cluster']!(cluster.addresses)
    expect(() => new RedisStore(client, { waitReplicas: 1 })).toThrow(
      /^waitReplicas: not with this client: GlideClusterClient follows redirections/,
    )
    await close()
  })

  it('does not take for replicated what a connection before wrote', { timeout: 60_000 }, async () => {
    const replica = await startRedis(['--replicaof', `127.0.0.1 ${server.port}`])
    await until('the replica following', async () =>
      expect(await replica.cli('INFO', 'replication')).toMatch(/master_link_status:up/),
    )
    const { client, close } = await STANDALONE['valkey-glide 2']!(server.url)
    const own = await linkTo(client).dedicate('abc')
    await own.send(['SET', 'written', '1'])
    expect(Number(await own.send(['WAIT', '1', '5000']))).toBe(1)
    expect(own.usable()).toBe(true)
    replica.pause()
    await own.send(['SET', 'written', '2'])
    const id = String(await own.send(['CLIENT', 'ID']))
    await server.cli('CLIENT', 'KILL', 'ID', id)
    // Redis counts the replicas that have what the asking connection wrote, and a new one has written nothing.
    await expect(own.send(['WAIT', '1', '100'])).rejects.toThrow(/anew|closed|disconnect|broken|reset/i)
    expect(own.usable()).toBe(false)
    replica.resume()
    own.close()
    await close()
    await replica.stop()
  })

  it('waits in an outage for its own time once, and fails at once from then on', async () => {
    const away = await startRedis()
    const client = await GlideClient.createClient({
      addresses: [{ host: '127.0.0.1', port: away.port }],
      requestTimeout: 300,
    })
    const store = new RedisStore(client)
    const record = recordOf(store, '1')
    await store.create(record, {}, { now: T0, deadline: soon() })
    away.pause()
    await expect(store.delete(record.key, { now: T0, deadline: soon() })).rejects.toMatchObject({ outcome: 'unknown' })
    for (let times = 0; times < 3; times++)
      await expect(store.delete(record.key, { now: T0, deadline: soon() })).rejects.toMatchObject({
        outcome: 'not-applied',
        cause: { message: 'the Valkey client gets no answer from its server' },
      })
    away.resume()
    await until('an answer', () => store.read(record.key, { now: T0, deadline: soon() }).then(() => true))
    client.close()
    await away.stop()
  })

  it('has room for a thousand commands: what comes beyond waits its turn', { timeout: 60_000 }, async () => {
    const client = await GlideClusterClient.createClient({
      addresses: [...cluster.addresses],
      requestTimeout: 5000,
      inflightRequestsLimit: 50,
    })
    const store = new RedisStore(client)
    const records = Array.from({ length: 400 }, (_, i) => recordOf(store, String(i)))
    await Promise.all(records.map(record => store.create(record, {}, { now: T0, deadline: soon() })))
    const found = await Promise.all(records.map(({ key }) => store.read(key, { now: T0, deadline: soon() })))
    expect(found).toEqual(records)
    client.close()
  })
})
