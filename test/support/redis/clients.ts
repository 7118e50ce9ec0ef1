// Every client and shape that the Redis store takes, opened against a private server.

import type { RedisClient } from 'coatcheck/stores/redis'
import { Redis as Redis6 } from 'ioredis'
import { Redis as Redis5 } from 'ioredis-5'
import * as nodeRedis6 from 'redis'
import * as nodeRedis5 from 'redis-5'

export interface OpenClient {
  readonly client: RedisClient
  close(): Promise<void> | void
}

type Address = { readonly host: string; readonly port: number }

const quiet = <T extends { on(event: 'error', listener: (error: Error) => void): unknown }>(client: T): T => {
  client.on('error', () => {})
  return client
}
const untilReady = (client: { status: string; once(event: 'ready', listener: () => void): unknown }) =>
  client.status === 'ready' ? null : new Promise<void>(resolve => client.once('ready', resolve))

const nodeRedis = async (library: typeof nodeRedis6, url: string): Promise<OpenClient> => {
  const client = quiet(library.createClient({ url }))
  await client.connect()
  return { client, close: () => client.destroy() }
}
/**
 * Longer than any test, in milliseconds. A pool that is destroyed while it connects anew takes those connections for
 * idle ones, and throws in a timer, outside of any test, when it would close what it no longer needs of them.
 */
const NEVER_CLEANED_UP = 2 ** 31 - 1
const nodeRedisPool = async (library: typeof nodeRedis6, url: string): Promise<OpenClient> => {
  const client = quiet(library.createClientPool({ url }, { minimum: 2, maximum: 8, cleanupDelay: NEVER_CLEANED_UP }))
  await client.connect()
  return { client, close: () => client.destroy() }
}
const ioredis = async (Redis: typeof Redis6, url: string): Promise<OpenClient> => {
  const client = quiet(new Redis(url))
  await untilReady(client)
  return { client, close: () => client.disconnect() }
}
const v5 = nodeRedis5 as unknown as typeof nodeRedis6
const io5 = Redis5 as unknown as typeof Redis6

/** Clients of one server, by name. */
export const STANDALONE: Record<string, (url: string) => Promise<OpenClient>> = {
  'node-redis 6': url => nodeRedis(nodeRedis6, url),
  'ioredis 6': url => ioredis(Redis6, url),
  'node-redis 5': url => nodeRedis(v5, url),
  'ioredis 5': url => ioredis(io5, url),
  'node-redis 6 pool': url => nodeRedisPool(nodeRedis6, url),
  'node-redis 5 pool': url => nodeRedisPool(v5, url),
}

/** Where the address that a server tells of itself is reached, by `host:port`: behind proxies. */
export type Ways = Record<string, Address>

const nodeRedisCluster = async (
  library: typeof nodeRedis6,
  nodes: readonly Address[],
  nodeAddressMap: Ways = {},
): Promise<OpenClient> => {
  const client = quiet(library.createCluster({ rootNodes: nodes.map(socket => ({ socket })), nodeAddressMap }))
  await client.connect()
  return { client, close: () => void client.destroy() }
}
const ioredisCluster = async (
  Redis: typeof Redis6,
  nodes: readonly Address[],
  natMap: Ways = {},
): Promise<OpenClient> => {
  const client = quiet(new Redis.Cluster([...nodes], { natMap }))
  await untilReady(client)
  return { client, close: () => client.disconnect() }
}

/** Clients of a Redis Cluster, by name. */
export const CLUSTER: Record<string, (nodes: readonly Address[], ways?: Ways) => Promise<OpenClient>> = {
  'node-redis 6 cluster': (...at) => nodeRedisCluster(nodeRedis6, ...at),
  'ioredis 6 cluster': (...at) => ioredisCluster(Redis6, ...at),
  'node-redis 5 cluster': (...at) => nodeRedisCluster(v5, ...at),
  'ioredis 5 cluster': (...at) => ioredisCluster(io5, ...at),
}

const nodeRedisSentinel = async (
  library: typeof nodeRedis6,
  name: string,
  nodes: readonly Address[],
  nodeAddressMap?: Ways,
) => {
  const sentinelRootNodes = nodes.map(node => ({ ...node }))
  // Where addresses are mapped it takes each scan for a failover, and makes all connections anew.
  const scanInterval = nodeAddressMap === undefined ? 500 : 0
  const options = { name, sentinelRootNodes, scanInterval, ...(nodeAddressMap && { nodeAddressMap }) }
  const client = quiet(library.createSentinel(options))
  await client.connect()
  return { client, close: () => client.destroy() }
}
const ioredisSentinel = async (
  Redis: typeof Redis6,
  name: string,
  nodes: readonly Address[],
  natMap: Ways = {},
): Promise<OpenClient> => {
  const client = quiet(new Redis({ name, sentinels: nodes.map(node => ({ ...node })), natMap }))
  await untilReady(client)
  return { client, close: () => client.disconnect() }
}

/** Clients behind Sentinel, by name. */
export const SENTINEL: Record<string, (name: string, nodes: readonly Address[], ways?: Ways) => Promise<OpenClient>> = {
  'node-redis 6 sentinel': (...at) => nodeRedisSentinel(nodeRedis6, ...at),
  'ioredis 6 sentinel': (...at) => ioredisSentinel(Redis6, ...at),
  'node-redis 5 sentinel': (...at) => nodeRedisSentinel(v5, ...at),
  'ioredis 5 sentinel': (...at) => ioredisSentinel(io5, ...at),
}
