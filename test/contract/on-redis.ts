// Runs tests on one kind of Redis, with two clients of one name: every other one is asked in test/redis/clients.test.ts.
import type { Store } from 'coatcheck'
import type { TestStoreOptions } from 'coatcheck/custom-store/testing'
import type { RedisClient } from 'coatcheck/stores/redis'
import { afterAll, beforeAll } from 'vitest'
import { CLUSTER, type OpenClient, STANDALONE } from '../support/redis/clients.ts'
import { asCoats, RIGHTS, WALKING } from '../support/redis/rights.ts'
import { type RedisServer, sharedRedisCluster, startRedis } from '../support/services/redis.ts'

interface Place {
  /** The server that has a key. */
  serverOf(name: string): Promise<RedisServer>
  /** The servers that are read from. */
  readonly servers: readonly RedisServer[]
  /** The user of the clients, with all that it may. */
  readonly user: readonly string[]
  open(client: string): Promise<OpenClient>
  stop(): Promise<unknown>
}

const PLACES = {
  async standalone(): Promise<Place> {
    const server = await startRedis()
    // No more than the page tells to allow; the suite also walks over all that is stored.
    const user = ['coats', ...RIGHTS, ...WALKING]
    await server.cli('ACL', 'SETUSER', ...user)
    const open = (client: string) => STANDALONE[client]!(asCoats(server.url))
    return { serverOf: async () => server, servers: [server], user, open, stop: server.stop }
  },
  async cluster(): Promise<Place> {
    const { nodes, masters, masterOf, addresses, stop } = await sharedRedisCluster()
    return {
      serverOf: async name => masterOf(Number(await nodes[0]!.cli('CLUSTER', 'KEYSLOT', name))),
      servers: masters,
      user: ['default', '+@all'],
      open: client => CLUSTER[client]!(addresses),
      stop,
    }
  },
}

/** `open` makes a store of each of the two clients. */
export function onRedis(
  kind: keyof typeof PLACES,
  client: string,
  tests: (
    open: <S extends Store>(of: (client: RedisClient) => S) => Promise<readonly [S, S]>,
    options: TestStoreOptions,
  ) => void,
): void {
  let place: Place
  let clients: [OpenClient, OpenClient]
  beforeAll(async () => {
    place = await PLACES[kind]()
    clients = await Promise.all([place.open(client), place.open(client)])
  })
  afterAll(async () => {
    for (const { close } of clients ?? []) await close()
    await place?.stop()
  })
  const open = async <S extends Store>(of: (client: RedisClient) => S) =>
    [of(clients[0].client), of(clients[1].client)] as const
  const corrupt = async (_: Store, key: string) => {
    const name = `coatcheck:{${key.slice(0, 3)}}:${key.slice(3)}`
    await (await place.serverOf(name)).cli('SET', name, 's 1 careless', 'PX', '600000')
  }
  const outage = async () => {
    const setUser = (...rules: readonly string[]) =>
      Promise.all(place.servers.map(({ cli }) => cli('ACL', 'SETUSER', ...rules)))
    await setUser(place.user[0]!, '-@read')
    return () => setUser(...place.user)
  }
  tests(open, { corrupt, outage })
}
