// Clients that few applications have: each keeps the contract in its reduced form.
import { createServer, type IncomingMessage } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { SessionManager } from 'coatcheck'
import { testStore } from 'coatcheck/custom-store/testing'
import { type RedisClient, RedisStore, upstash } from 'coatcheck/stores/redis'
import type { Cluster, Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { clientCases } from '../support/client-cases.ts'
import { failure } from '../support/failure.ts'
import { redisForGroup } from '../support/redis/group.ts'
import { describeEngine } from '../support/services/engines.ts'
import { type RedisCluster, startRedisCluster } from '../support/services/redis.ts'

const drivers = createRequire(new URL('../support/drivers/package.json', import.meta.url))
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
  const server = createServer(async (request, response) => {
    const [status, body] = (await answer(request)) as [number, unknown]
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
  }).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}

describeEngine('redis', 'the Redis store with other clients', () => {
  const redis = redisForGroup()
  const suite = (
    prefix: string,
    client: () => RedisClient,
    { long = true, on = (): Redis | Cluster => redis.client } = {},
  ) => {
    const corrupt = async (_: unknown, key: string) => {
      await on().set(`${prefix}{${key.slice(0, 3)}}:${key.slice(3)}`, 's 1 careless', 'PX', 600_000)
    }
    const open = () => new RedisStore(client(), { prefix })
    testStore(clientCases(it, { long }), () => [open(), open()], undefined, { corrupt, runs: 5 })
  }

  describeEngine('other clients', 'iovalkey', () => {
    let client: Redis
    beforeAll(() => {
      client = new (drivers('iovalkey').Redis)(redis.server.url)
    })
    afterAll(() => client?.disconnect())
    suite('iovalkey:', () => client)
  })

  describeEngine('other clients', "iovalkey's Cluster", () => {
    let cluster: RedisCluster
    let client: Cluster
    beforeAll(async () => {
      cluster = await startRedisCluster()
      client = new (drivers('iovalkey').Cluster)([...cluster.addresses])
    })
    afterAll(async () => {
      client?.disconnect()
      await cluster?.stop()
    })
    suite('iovalkey-cluster:', () => client, { on: () => client })
  })

  describe('the REST API of Upstash', () => {
    let face: Awaited<ReturnType<typeof restFace>>
    beforeAll(async () => {
      face = await restFace(redis.client)
    })
    afterAll(() => face?.stop())
    suite('upstash:', () => upstash({ url: face.url, token: TOKEN }), { long: false })

    it('sends one request for reads that come together, and each write once', async () => {
      const sessions = new SessionManager({
        store: new RedisStore(upstash({ url: face.url, token: TOKEN })),
        storeTimeout: '20s',
      })
      const begun = await Promise.all(
        [1, 2, 3].map(id => sessions.create({ user: { id, name: 'ü "ada" 1' }, data: { note: '1e3 ü \ud83e\udde5' } })),
      )
      face.asked.length = 0
      const found = await Promise.all(begun.map(({ secret }) => sessions.get(secret)))
      expect(found.map(session => [session?.user, session?.data])).toEqual(begun.map(({ user, data }) => [user, data]))
      await sessions.destroy(begun[0]!)
      expect(face.asked).toEqual(['MGET', 'EVALSHA'])
      expect(await sessions.get(begun[0]!.secret)).toBeNull()
      await sessions.close()
    })

    it.each([
      ['an error of Redis', { token: 'wrong' }, 'not-applied', /^WRONGPASS/],
      ['no server', { url: 'http://127.0.0.1:1' }, 'unknown', /^fetch failed/],
    ])('fails for %s', async (_, wrong, outcome, cause) => {
      const store = new RedisStore(upstash({ url: face.url, token: TOKEN, ...wrong }), { allowEviction: true })
      const sessions = new SessionManager({ store, storeTimeout: '20s' })
      const failed = await failure(sessions.create({ user: { id: 1, name: 'ada' } }))
      expect([failed.status, failed.outcome, `${(failed.cause as Error).message}`]).toEqual([
        503,
        outcome,
        expect.stringMatching(cause),
      ])
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
})
