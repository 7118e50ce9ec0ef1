// Every client and shape that the Redis store takes, each with the servers that it needs.
import { afterAll, beforeAll } from 'vitest'
import {
  type RedisCluster,
  type RedisSentinels,
  type RedisServer,
  sharedRedisCluster,
  startRedis,
  startRedisSentinels,
} from '../services/redis.ts'
import { CLUSTER, type OpenClient, SENTINEL, STANDALONE } from './clients.ts'

/** The name of a client, what opens one, and the servers that it talks to. */
export type Shape = [name: string, open: () => Promise<OpenClient>, servers: () => readonly RedisServer[]]

/** A server, a cluster and sentinels for the tests of this file; the cluster is shared with other files unless told. */
export function everyShape(startCluster = sharedRedisCluster): Shape[] {
  let one: RedisServer
  let many: RedisCluster
  let watched: RedisSentinels
  beforeAll(async () => {
    ;[one, many, watched] = await Promise.all([startRedis(), startCluster(), startRedisSentinels()])
  })
  afterAll(() => Promise.all([one.stop(), many.stop(), watched.stop()]))
  return [
    ...Object.entries(STANDALONE).map(([name, open]): Shape => [name, () => open(one.url), () => [one]]),
    ...Object.entries(CLUSTER).map(([name, open]): Shape => [name, () => open(many.addresses), () => many.nodes]),
    ...Object.entries(SENTINEL).map(
      ([name, open]): Shape => [
        name,
        () => open(watched.name, watched.sentinels),
        () => [watched.master, watched.replica],
      ],
    ),
  ]
}
