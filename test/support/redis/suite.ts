// Runs a suite on one kind of Redis, with one client: every other one is asked in test/redis/clients.test.ts.
import type { Store } from 'coatcheck'
import type { TestStoreOptions } from 'coatcheck/custom-store/testing'
import type { RedisClient } from 'coatcheck/stores/redis'
import { afterAll, beforeAll } from 'vitest'
import { type RedisServer, sharedRedisCluster, startRedis, startRedisSentinels } from '../services/redis.ts'
import { CLUSTER, type OpenClient, SENTINEL, STANDALONE } from './clients.ts'

interface Place {
  /** The server that has a key. */
  serverOf(name: string): Promise<RedisServer>
  /** The servers that are read from. */
  readonly servers: readonly RedisServer[]
  /** Opens the named client. */
  open(client: string): Promise<OpenClient>
  stop(): Promise<unknown>
}

const PLACES = {
  standalone: {
    async start(): Promise<Place> {
      const server = await startRedis()
      return {
        serverOf: async () => server,
        servers: [server],
        open: name => STANDALONE[name]!(server.url),
        stop: server.stop,
      }
    },
  },
  cluster: {
    async start(): Promise<Place> {
      const cluster = await sharedRedisCluster()
      return {
        serverOf: async name => cluster.masterOf(Number(await cluster.nodes[0]!.cli('CLUSTER', 'KEYSLOT', name))),
        servers: cluster.masters,
        open: name => CLUSTER[name]!(cluster.addresses),
        stop: cluster.stop,
      }
    },
  },
  sentinel: {
    async start(): Promise<Place> {
      const watched = await startRedisSentinels()
      return {
        serverOf: async () => watched.master,
        servers: [watched.master],
        open: name => SENTINEL[name]!(watched.name, watched.sentinels),
        stop: watched.stop,
      }
    },
  },
}

/** Calls `tests` with two clients of this kind; `open` makes a store of each, always of the same two. */
export function onRedis(
  kind: keyof typeof PLACES,
  client: string,
  tests: (
    open: <S extends Store>(of: (client: RedisClient) => S) => Promise<readonly [S, S]>,
    options: TestStoreOptions,
  ) => void,
): void {
  let place: Place
  let opened: Promise<[OpenClient, OpenClient]> | null = null
  beforeAll(async () => {
    place = await PLACES[kind].start()
  })
  afterAll(async () => {
    for (const { close } of (await opened) ?? []) await close()
    await place?.stop()
  })
  const open = async <S extends Store>(of: (client: RedisClient) => S) => {
    opened ??= Promise.all([place.open(client), place.open(client)])
    const [first, second] = await opened
    return [of(first.client), of(second.client)] as const
  }
  const corrupt = async (_store: Store, key: string) => {
    const redisKey = `coatcheck:{${key.slice(0, 3)}}:${key.slice(3)}`
    await (await place.serverOf(redisKey)).cli('SET', redisKey, 's 1 careless', 'PX', '600000')
  }
  const permit = (rights: string) =>
    Promise.all(place.servers.map(server => server.cli('ACL', 'SETUSER', 'default', rights)))
  const outage = async () => {
    await permit('-@read')
    return () => permit('+@all')
  }
  tests(open, { corrupt, outage })
}
