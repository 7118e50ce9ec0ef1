export type {
  IoredisClient,
  NodeRedisClient,
  NodeRedisCluster,
  NodeRedisSentinel,
  RedisClient,
} from './redis/client.ts'
export { RedisStore, type RedisStoreOptions } from './redis/store.ts'
export { type UpstashOptions, upstash } from './redis/upstash.ts'
