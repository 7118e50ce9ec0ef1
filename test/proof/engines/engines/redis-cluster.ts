import { until } from '../../../support/services/process.ts'
import { type RedisServer, startRedisCluster } from '../../../support/services/redis.ts'
import { between, held, killing, one } from '../nemesis.ts'
import type { Engine } from './engine.ts'
import { filling } from './redis.ts'

const CLIENTS = ['node-redis 6 cluster', 'ioredis 6 cluster']
const SHARD = 3

/**
 * Three masters and three replicas. A master that dies comes back with its append-only file before it is given up; a
 * replica takes over when it has all. What a forced failover loses is shown in test/redis/failover.test.ts.
 */
export const redisCluster: Engine = {
  name: 'redis-cluster',
  needs: 'redis',
  clients: 3,
  hasProcesses: true,
  async start() {
    const cluster = await startRedisCluster(['--appendonly', 'yes', '--appendfsync', 'always'])
    const { nodes } = cluster
    const roleOf = async (node: RedisServer) => (await node.cli('ROLE')).split('\n')[0]
    const withRole = async (role: string) => {
      const roles = await Promise.all(nodes.map(node => roleOf(node).catch(() => '')))
      return nodes.filter((_, i) => roles[i] === role)
    }
    const isWhole = async () => {
      for (const node of nodes) {
        const info = await node.cli('CLUSTER', 'INFO')
        if (!info.includes('cluster_state:ok')) throw new Error(info)
      }
    }
    return {
      openings: CLIENTS.map(client => ({ kind: 'redis-cluster' as const, client, nodes: cluster.addresses })),
      faults: {
        'connections cut': async chance => {
          const node = one(chance, nodes)
          await node.cli('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
        },
        'engine killed': async chance => {
          const node = one(chance, await withRole('master'))
          await killing(node, 300)(chance, [])
          await until('the cluster being whole', isWhole)
        },
        'engine paused': async (chance, holds) => {
          const { pause, resume } = one(chance, nodes)
          await held(chance, holds, 'engine', pause, resume)
        },
        'slots moved': async chance => {
          // A slot that has keys: those of the users of this history.
          const from = one(chance, await withRole('master'))
          const to = one(
            chance,
            (await withRole('master')).filter(node => node !== from),
          )
          const key = await from.cli('RANDOMKEY')
          const shard = /\{(.{3})\}/.exec(key)?.[1]
          if (shard === undefined || shard.length !== SHARD) return
          const slot = Number(await from.cli('CLUSTER', 'KEYSLOT', key))
          await cluster.migrate(slot, from, to, Math.round(between(chance, 1, 40)))
        },
        'master failed over': async chance => {
          const replica = one(chance, await withRole('slave'))
          if ((await replica.cli('CLUSTER', 'FAILOVER')) !== 'OK') return
          await until('the replica being the master', async () => {
            if ((await roleOf(replica)) !== 'master') throw new Error(await replica.cli('ROLE'))
          }).catch(() => {})
          await until('the cluster being whole', isWhole)
        },
        'memory full': chance => filling(chance, one(chance, nodes)),
      },
      rules: {
        crosses: (oldKey, newKey) => oldKey.slice(0, SHARD) !== newKey.slice(0, SHARD),
        resends: true,
        endsUserInSteps: true,
      },
      stop: () => cluster.stop(),
    }
  },
}
