import { startProxy } from '../../../support/services/proxy.ts'
import { type RedisServer, startRedis } from '../../../support/services/redis.ts'
import { between, type Chance, held, killing, ofConnections, one, wait } from '../nemesis.ts'
import type { Engine } from './engine.ts'

const CLIENTS = ['node-redis 6', 'ioredis 6', 'node-redis 6 pool']

/** A server that refuses to store anything, for a while. */
export async function filling(chance: Chance, server: RedisServer): Promise<void> {
  await server.cli('CONFIG', 'SET', 'maxmemory', '1')
  await wait(between(chance, 50, 400))
  await server.cli('CONFIG', 'SET', 'maxmemory', '0')
}

/** A Redis that keeps what it acknowledged: each write is in the append-only file before it is answered. */
export const redis: Engine = {
  name: 'redis',
  needs: 'redis',
  clients: 3,
  hasProcesses: true,
  async start() {
    const server = await startRedis(['--appendonly', 'yes', '--appendfsync', 'always'])
    const proxies = await Promise.all(CLIENTS.map(() => startProxy(server.port)))
    return {
      openings: CLIENTS.map((client, i) => ({
        kind: 'redis' as const,
        client,
        url: `redis://127.0.0.1:${proxies[i]!.port}`,
      })),
      faults: {
        ...ofConnections(proxies, 'EVALSHA'),
        'requests delivered twice': async chance => {
          for (let times = 0; times < 4; times++) {
            void one(chance, proxies).deliverTwice('EVALSHA', between(chance, 0, 250))
            await wait(between(chance, 5, 60))
          }
          await Promise.all(proxies.map(proxy => proxy.heal()))
        },
        'engine killed': killing(server, 300),
        'engine paused': (chance, holds) => held(chance, holds, 'engine', server.pause, server.resume),
        'memory full': chance => filling(chance, server),
        'scripts forgotten': async () => void (await server.cli('SCRIPT', 'FLUSH')),
      },
      // ioredis sends again what was not answered when a connection broke, and the proxy delivers twice.
      rules: { resends: true, endsUserInSteps: true },
      async stop() {
        await Promise.all(proxies.map(proxy => proxy.stop()))
        await server.stop()
      },
    }
  },
}
