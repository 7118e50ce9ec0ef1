// Runs a suite with every client of one kind of Redis: in full with the newest, shorter with the others.
import type { Store } from 'coatcheck'
import type { TestStoreOptions } from 'coatcheck/custom-store/testing'
import { afterAll, beforeAll, describe } from 'vitest'
import { type RedisServer, startRedis, startRedisCluster, startRedisSentinels } from '../services/redis.ts'
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
    clients: Object.keys(STANDALONE),
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
    clients: Object.keys(CLUSTER),
    async start(): Promise<Place> {
      const cluster = await startRedisCluster()
      return {
        serverOf: async name => cluster.masterOf(Number(await cluster.nodes[0]!.cli('CLUSTER', 'KEYSLOT', name))),
        servers: cluster.masters,
        open: name => CLUSTER[name]!(cluster.addresses),
        stop: cluster.stop,
      }
    },
  },
  sentinel: {
    clients: Object.keys(SENTINEL),
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

/** Calls `tests` once per client of this kind; `open` gives the same connected client each time. */
export function onRedis(
  kind: keyof typeof PLACES,
  tests: (open: () => Promise<OpenClient>, options: TestStoreOptions) => void,
): void {
  const { clients: all, start } = PLACES[kind]
  // A seeded mistake is the same one with each client: the newest is asked.
  const isSeeded = process.env.COATCHECK_MUTANTS_TESTS !== undefined
  const clients = isSeeded ? all.slice(0, 1) : all
  let place: Place
  beforeAll(async () => {
    place = await start()
  })
  afterAll(() => place.stop())
  describe.each(clients)('with %s', name => {
    let opened: Promise<OpenClient> | null = null
    // What the clients before have left makes each walk longer.
    beforeAll(async () => void (await Promise.all(place.servers.map(server => server.cli('FLUSHALL')))))
    afterAll(async () => (await opened)?.close())
    const open = () => {
      opened ??= place.open(name)
      return opened
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
    const full = !isSeeded && / 6( cluster)?$/.test(name)
    tests(open, { corrupt, outage, ...(full ? {} : { runs: 10, rounds: 3 }) })
  })
}
