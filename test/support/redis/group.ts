import { RedisStore, type RedisStoreOptions } from 'coatcheck/stores/redis'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { anywhere, call } from '../records.ts'
import { type RedisServer, startRedis } from '../services/redis.ts'
import { type Tap, tapped } from './tapped.ts'

export interface OwnRedis {
  readonly server: RedisServer
  readonly client: Redis
  /** Over that client. */
  readonly store: RedisStore
}

/** A Redis of this group of tests, and an ioredis client that has reached it; both end with the group. */
export function redisForGroup(options: readonly string[] = []): OwnRedis {
  const own = {} as { -readonly [Part in keyof OwnRedis]: OwnRedis[Part] }
  beforeAll(async () => {
    own.server = await startRedis(options)
    own.client = new Redis(own.server.url)
    own.store = new RedisStore(own.client)
    // The server's clock and the scripts are known from here on.
    await own.store.delete(anywhere(), call())
  })
  afterAll(async () => {
    own.client?.disconnect()
    await own.server?.stop()
  })
  return own
}

/** What each command of a group's stores goes through, anew for each test, and what was sent. */
export interface OwnTap {
  on: Tap
  seen: string[][]
  /** The commands that were sent, without their arguments. */
  names(): string[]
  /** Lets this command fail. */
  fail(failing: string, message: string): void
  open(options?: RedisStoreOptions, isCluster?: boolean): RedisStore
  /** One that knows the server's clock and the scripts, new for each test. */
  store: RedisStore
}

/** Lets a test see and change what stores of this group send. */
export function tapForGroup(redis: OwnRedis): OwnTap {
  const own = {
    seen: [] as string[][],
    names: () => own.seen.map(([command]) => command!),
    fail(failing: string, message: string) {
      own.on = async ([command], send) => {
        if (command === failing) throw new Error(message)
        return send()
      }
    },
    open(options: RedisStoreOptions = {}, isCluster = false) {
      const tap: Tap = (command, send) => {
        own.seen.push(command)
        return own.on(command, send)
      }
      return new RedisStore(tapped(redis.client, tap, isCluster), options)
    },
  } as OwnTap
  beforeEach(async () => {
    own.on = (_, send) => send()
    own.store = own.open()
    await own.store.delete(anywhere(), call())
    own.seen = []
  })
  return own
}
