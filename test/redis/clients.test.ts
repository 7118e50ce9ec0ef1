// What a client can change: how text, numbers and long answers come through, which server a command goes to, and how the reads
// of one turn share one. The rules in full are the suite's business (test/contract).
import type { IncomingMessage } from 'node:http'
import { createRequire } from 'node:module'
import { json } from 'node:stream/consumers'
import { SessionManager } from 'coatcheck'
import { modelTest } from 'coatcheck/custom-store/testing'
import { type RedisClient, RedisStore, upstash } from 'coatcheck/stores/redis'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { createClient, RESP_TYPES } from 'redis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { listening } from '../support/listening.ts'
import { call, recordOf } from '../support/records.ts'
import { CLUSTER, type OpenClient, SENTINEL, STANDALONE } from '../support/redis/clients.ts'
import { redisForGroup } from '../support/redis/group.ts'
import { describeEngine } from '../support/services/engines.ts'
import { freePort } from '../support/services/process.ts'
import {
  type RedisCluster,
  type RedisSentinels,
  type RedisServer,
  sharedRedisCluster,
  startRedis,
  startRedisSentinels,
} from '../support/services/redis.ts'
import { type Certificate, makeCertificate } from '../support/services/tls.ts'
import { started } from '../support/started.ts'

const drivers = createRequire(new URL('../support/drivers/package.json', import.meta.url))
const byKey = (a: { key: string }, b: { key: string }) => (a.key < b.key ? -1 : 1)

/** Each method answers as the model does, and text and long data come back as they were, alone and together. */
async function keepsTheContract(client: RedisClient, name: string): Promise<void> {
  const store = new RedisStore(client, { prefix: `${name.replaceAll(' ', '-')}:` })
  await modelTest(fc, () => store, undefined, { runs: 5 })
  const records = ['hé\n"x" 🧥', 'n'.repeat(70_000), '{}'].map(data =>
    recordOf(store, '42', { data, userName: 'ada l %', passwordVersion: 7 }),
  )
  for (const record of records) expect(await store.create(record, call())).toBe('created')
  expect(await Promise.all(records.map(({ key }) => store.read(key, call())))).toEqual(records)
  expect((await store.listUser('42', 'session', call())).sort(byKey)).toEqual([...records].sort(byKey))
}

describeEngine('redis', 'the Redis store', () => {
  let one: RedisServer
  let cluster: RedisCluster
  let watched: RedisSentinels
  beforeAll(async () => {
    ;[one, cluster, watched] = await Promise.all([startRedis(), sharedRedisCluster(), startRedisSentinels()])
  })
  afterAll(() => Promise.all([one?.stop(), cluster?.stop(), watched?.stop()]))

  type Shape = [name: string, open: () => Promise<OpenClient>]
  const shapes = [
    ...Object.entries(STANDALONE).map(([name, open]): Shape => [name, () => open(one.url)]),
    ...Object.entries(CLUSTER).map(([name, open]): Shape => [name, () => open(cluster.addresses)]),
    ...Object.entries(SENTINEL).map(([name, open]): Shape => [name, () => open(watched.name, watched.sentinels)]),
  ]
  it.concurrent.each(shapes)('keeps the contract with %s', async (name, open) => {
    const { client, close } = await open()
    await keepsTheContract(client, name)
    await close()
  })

  describeEngine('other clients', 'with iovalkey', () => {
    it.each(['iovalkey', 'iovalkey cluster'])('keeps the contract with %s', async name => {
      const { Redis } = drivers('iovalkey')
      const client = name === 'iovalkey' ? new Redis(one.url) : new Redis.Cluster([...cluster.addresses])
      await new Promise(resolve => client.once('ready', resolve))
      await keepsTheContract(client, name)
      client.disconnect()
    })
  })

  it('reads the Buffers that a type mapping of node-redis answers', async () => {
    const client = createClient({ url: one.url }).withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer })
    client.on('error', () => {})
    await client.connect()
    await keepsTheContract(client as never, 'buffers')
    client.destroy()
  })

  it('sends the reads of one turn as one command with an ioredis that makes pipelines by itself', async () => {
    const client = new Redis(one.url, { enableAutoPipelining: true })
    await keepsTheContract(client, 'pipelines')
    const store = new RedisStore(client)
    const records = Array.from({ length: 5 }, (_, i) => recordOf(store, `${i}`))
    for (const record of records) await store.create(record, call())
    await one.cli('CONFIG', 'RESETSTAT')
    expect(await Promise.all(records.map(({ key }) => store.read(key, call())))).toEqual(records)
    const { get = 0, mget } = await one.commandStats()
    expect([get, mget]).toEqual([0, 1])
    client.disconnect()
  })
})

describeEngine('redis', 'a Redis over TLS', () => {
  let server: RedisServer
  let certificate: Certificate
  let stranger: Certificate
  let clients: Record<string, (ca: string) => Promise<OpenClient>>
  beforeAll(async () => {
    ;[certificate, stranger] = [makeCertificate(['localhost']), makeCertificate(['localhost'])]
    const port = await freePort()
    const { certFile, keyFile } = certificate
    const files = ['--tls-cert-file', certFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', certFile]
    server = await startRedis(['--tls-port', `${port}`, '--tls-auth-clients', 'no', ...files])
    const url = `rediss://localhost:${port}`
    clients = {
      async 'node-redis'(ca) {
        const client = createClient({ url, socket: { tls: true, ca } })
        client.on('error', () => {})
        const connecting = client.connect().catch(() => {})
        await Promise.race([connecting, new Promise(resolve => client.once('error', resolve))])
        return { client, close: () => client.destroy() }
      },
      async ioredis(ca) {
        const client = new Redis(url, { tls: { ca } })
        await new Promise(resolve => client.once('ready', resolve).once('error', resolve))
        client.on('error', () => {})
        return { client, close: () => client.disconnect() }
      },
    }
  })
  afterAll(async () => {
    await server?.stop()
    certificate?.remove()
    stranger?.remove()
  })

  it.each(['node-redis', 'ioredis'])(
    'keeps the contract with %s, to which a certificate of another authority is an outage',
    async name => {
      const good = await clients[name]!(certificate.cert)
      await keepsTheContract(good.client, name)
      const store = new RedisStore(good.client)
      const record = recordOf(store, '7')
      await store.create(record, call())
      const bad = await clients[name]!(stranger.cert)
      const mistaken = new RedisStore(bad.client)
      const short = { ...call(), deadline: performance.now() + 500 }
      await expect(mistaken.read(record.key, short)).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' })
      await expect(mistaken.delete(record.key, short)).rejects.toMatchObject({ outcome: 'not-applied' })
      expect(await store.read(record.key, call())).toMatchObject({ key: record.key })
      await bad.close()
      await good.close()
    },
  )
})

const TOKEN = 'a token'

/** The REST API of Upstash, before a Redis: a command is an array in the body of a POST. */
async function restFace(redis: Redis) {
  const asked: string[] = []
  const answer = async (request: IncomingMessage) => {
    if (request.headers.authorization !== `Bearer ${TOKEN}`)
      return [401, { error: 'WRONGPASS invalid or missing auth token' }]
    const [command, ...args] = (await json(request)) as string[]
    asked.push(command!)
    return redis.call(command!, args).then(
      result => [200, { result }],
      error => [400, { error: error.message }],
    )
  }
  const { url, close } = await listening(async (request, response) => {
    const [status, body] = (await answer(request)) as [number, unknown]
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
  })
  return { url, asked, stop: close }
}

describeEngine('redis', 'the REST API of Upstash', () => {
  const redis = redisForGroup()
  const face = started(() => restFace(redis.client))
  const client = (more = {}) => upstash({ url: face().url, token: TOKEN, ...more })

  it('keeps the contract', () => keepsTheContract(client(), 'upstash'))

  it('sends one request for reads that come together, and each write once', async () => {
    const store = new RedisStore(client())
    const records = ['1', '2', '3'].map(user => recordOf(store, user))
    for (const record of records) await store.create(record, call())
    face().asked.length = 0
    expect(await Promise.all(records.map(({ key }) => store.read(key, call())))).toEqual(records)
    await store.delete(records[0]!.key, call())
    expect(face().asked).toEqual(['MGET', 'EVALSHA'])
  })

  it.each([
    ['an error of Redis', { token: 'wrong' }, 'not-applied', /^WRONGPASS/],
    ['no server', { url: 'http://127.0.0.1:1' }, 'unknown', /^fetch failed/],
  ])('fails for %s', async (_, wrong, outcome, cause) => {
    const store = new RedisStore(client(wrong), { allowEviction: true })
    const sessions = new SessionManager({ store, storeTimeout: '20s' })
    await expect(sessions.create({ user: { id: 1, name: 'ada' } })).rejects.toMatchObject({
      status: 503,
      outcome,
      cause: { message: expect.stringMatching(cause) },
    })
    await sessions.close()
  })

  it.each([
    { url: 'redis://localhost', token: TOKEN },
    { url: 'https://example.com', token: '' },
    { url: 'https://default:hunter2@example.com', token: TOKEN },
    { url: 'https://example.com/?_token=hunter2', token: TOKEN },
  ])('refuses %j, and shows no secret in it', options => {
    expect(() => upstash(options)).toThrow(TypeError)
    expect(() => upstash(options)).not.toThrow(/hunter2/)
  })
})
