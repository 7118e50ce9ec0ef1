// Two failures that no client notices by itself: the primary behind an address is another one now, and a connection falls
// silent without being closed.

import { until } from '../services/process.ts'
import { type FaultProxy, startProxy } from '../services/proxy.ts'
import { startRedis, startRedisCluster, startRedisSentinels } from '../services/redis.ts'
import { CLUSTER, type OpenClient, SENTINEL, STANDALONE, type Ways } from './clients.ts'

const host = '127.0.0.1'

/** The servers that a client asks for, each behind a proxy. */
export async function startBehindProxies(client: string) {
  const begun = await (client in STANDALONE
    ? startRedis()
    : client in CLUSTER
      ? startRedisCluster()
      : startRedisSentinels())
  const servers = 'nodes' in begun ? begun.nodes : 'master' in begun ? [begun.master, begun.replica] : [begun]
  const proxies: FaultProxy[] = await Promise.all(servers.map(({ port }) => startProxy(port)))
  const waysOf = (): Ways =>
    Object.fromEntries(servers.map(({ port }, i) => [`${host}:${port}`, { host, port: proxies[i]!.port }]))
  const open = async (): Promise<OpenClient> => {
    if ('nodes' in begun) return CLUSTER[client]!(Object.values(waysOf()), waysOf())
    if ('master' in begun) return SENTINEL[client]!(begun.name, begun.sentinels, waysOf())
    return STANDALONE[client]!(`redis://${host}:${proxies[0]!.port}`)
  }
  return {
    ...(await open()),
    servers,
    /** Nothing comes through the connections that are open now; new ones work. */
    silence() {
      for (const proxy of proxies) proxy.silence()
    },
    connections: () => proxies.reduce((sum, proxy) => sum + proxy.connections(), 0),
    stop: () => Promise.all([begun.stop(), ...proxies.map(proxy => proxy.stop())]),
  }
}

/** A primary and its replica behind one address. */
export async function startPair() {
  const options = ['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1']
  const [old, next] = await Promise.all([startRedis(options), startRedis(options)])
  const address = await startProxy(old.port)
  await next.cli('REPLICAOF', host, `${old.port}`)
  await until('the replica following', async () => {
    const info = await next.cli('INFO', 'replication')
    if (!info.includes('master_link_status:up')) throw new Error(info)
  })
  return {
    old,
    next,
    address,
    /** From now on `next` is the primary. The connections there are lead to the old one, and new ones until `address` is redirected. */
    async failOver() {
      await until('the replica having all', async () => {
        const [there, here] = await Promise.all([next.cli('DBSIZE'), old.cli('DBSIZE')])
        if (there !== here) throw new Error(`${there} of ${here}`)
      })
      await next.cli('REPLICAOF', 'NO', 'ONE')
      // A replica that has lost its primary: it goes on answering what it had.
      await old.cli('REPLICAOF', host, '1')
    },
    stop: () => Promise.all([address.stop(), old.stop(), next.stop()]),
  }
}
