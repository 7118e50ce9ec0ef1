// A pool of node-redis whose clients are away, all or some, and one that keeps no idle ones.
import { RedisStore } from 'coatcheck/stores/redis'
import { createClientPool } from 'redis'
import { createClientPool as createClientPool5 } from 'redis-5'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { NotReady } from '../../../stores/redis/link.ts'
import { ReadyClients } from '../../../stores/redis/pool.ts'
import { describeEngine } from '../../services/engines.ts'
import { until } from '../../services/process.ts'
import { type FaultProxy, startProxy } from '../../services/proxy.ts'
import { type RedisServer, startRedis } from '../../services/redis.ts'
import { recordOf, soon, T0 } from '../../support/redis/records.ts'

const VERSIONS = [
  ['node-redis 6', createClientPool],
  ['node-redis 5', createClientPool5 as unknown as typeof createClientPool],
] as const
/** A pool that is destroyed while one of its clients connects throws in its clean-up. */
const cleanupDelay = 2 ** 31 - 1

describeEngine('redis', 'a pool of clients', () => {
  let server: RedisServer
  let proxy: FaultProxy
  beforeAll(async () => {
    server = await startRedis()
    proxy = await startProxy(server.port)
  })
  afterAll(async () => {
    await proxy.stop()
    await server.stop()
  })

  it.each(VERSIONS)('may begin without any: %s', async (_, create) => {
    const pool = create({ url: server.url }, { minimum: 0, maximum: 4, cleanupDelay })
    pool.on('error', () => {})
    await pool.connect()
    const store = new RedisStore(pool)
    const record = recordOf(store, '1')
    expect(await store.create(record, {}, { now: T0, deadline: soon() })).toMatchObject({ outcome: 'created' })
    expect(await store.read(record.key, { now: T0, deadline: soon() })).toEqual(record)
    pool.destroy()
  })

  it.each(VERSIONS)('is listened to once, however many stores use it: %s', async (_, create) => {
    const pool = create({ url: server.url }, { minimum: 1, maximum: 1, cleanupDelay })
    pool.on('error', () => {})
    await pool.connect()
    const listeners = () => pool.execute(async client => client.listenerCount('reconnecting'))
    const before = await listeners()
    for (let each = 0; each < 12; each++) {
      const store = new RedisStore(pool)
      expect(await store.read(recordOf(store, '1').key, { now: T0, deadline: soon() })).toBe(null)
    }
    expect(await listeners()).toBe(before + 1)
    pool.destroy()
  })

  it.each(VERSIONS)('is used as long as one of them is connected: %s', async (_, create) => {
    const socket = { host: '127.0.0.1', port: proxy.port }
    const pool = create({ socket }, { minimum: 3, maximum: 3, cleanupDelay })
    pool.on('error', () => {})
    await pool.connect()
    const store = new RedisStore(pool)
    const record = recordOf(store, '1')
    await store.create(record, {}, { now: T0, deadline: soon() })
    // No new connection succeeds from now on.
    proxy.redirect(1)
    const id = await pool.sendCommand(['CLIENT', 'ID'])
    await server.cli('CLIENT', 'KILL', 'ID', `${id}`)
    await until('one being away', async () => {
      const ready = await Promise.all([1, 2, 3].map(() => pool.execute(async client => client.isReady)))
      expect(ready.filter(isReady => !isReady)).toHaveLength(1)
    })
    const reads = Array.from({ length: 60 }, () => store.read(record.key, { now: T0, deadline: soon() }))
    for (let turn = 0; turn < 30; turn++) {
      await new Promise(resolve => setImmediate(resolve))
      for (let times = 0; times < 4; times++) reads.push(store.read(record.key, { now: T0, deadline: soon() }))
      reads.push(store.touch(record.key, T0 + turn, T0 + 1000, { now: T0, deadline: soon() }).then(() => null))
    }
    const failed = (await Promise.allSettled(reads)).filter(({ status }) => status === 'rejected')
    expect(failed).toEqual([])
    await server.cli('CLIENT', 'KILL', 'TYPE', 'normal')
    await until('all being away', async () => {
      const ready = await Promise.all([1, 2, 3].map(() => pool.execute(async client => client.isReady)))
      expect(ready).toEqual([false, false, false])
    })
    await expect(store.read(record.key, { now: T0, deadline: soon() })).rejects.toMatchObject({
      outcome: 'not-applied',
      cause: { message: 'the Redis client is not connected to its server' },
    })
    pool.destroy()
    proxy.redirect(server.port)
  })
})

describe('the clients of a pool', () => {
  class Client {
    isOpen = true
    isReady = true
    readonly listeners: (() => void)[] = []
    readonly back: (() => void)[] = []
    on(event: string, listener: () => void) {
      if (event === 'ready') this.back.push(listener)
      else this.listeners.push(listener)
    }
    leave() {
      this.isReady = false
      for (const listener of this.listeners) listener()
    }
    comeBack() {
      this.isReady = true
      for (const listener of this.back) listener()
    }
  }
  /** As node-redis does it: idle ones in turn, then a queue. */
  class Pool {
    readonly idle: Client[]
    readonly queue: ((client: Client) => void)[] = []
    constructor(...idle: Client[]) {
      this.idle = idle
    }
    get idleClients() {
      return this.idle.length
    }
    execute<T>(task: (client: Client) => Promise<T>): Promise<T> {
      return new Promise((resolve, reject) => {
        const begin = (client: Client) => {
          task(client)
            .then(resolve, reject)
            .finally(() => {
              const next = this.queue.shift()
              if (next) next(client)
              else this.idle.push(client)
            })
        }
        const client = this.idle.shift()
        if (client) begin(client)
        else this.queue.push(begin)
      })
    }
  }
  const REASON = 'away'
  const later = () => {
    let resolve!: (value: string) => void
    const promise = new Promise<string>(done => {
      resolve = done
    })
    return { promise, resolve }
  }
  const settled = () => new Promise(resolve => setImmediate(resolve))

  it('are waited for while one is in use, and no longer once it has broken', async () => {
    const [ready, away] = [new Client(), new Client()]
    away.isReady = false
    const pool = new Pool(ready, away)
    const clients = new ReadyClients(pool, REASON)
    const long = later()
    const first = clients.run(() => long.promise)
    const ran: string[] = []
    const others = ['a', 'b'].map(name => clients.run(async () => ran.push(name)).catch(error => error))
    await settled()
    expect([ran, pool.idle, pool.queue.length]).toEqual([[], [], 2])
    ready.leave()
    expect(await Promise.all(others)).toEqual([new NotReady(REASON), new NotReady(REASON)])
    long.resolve('done')
    expect(await first).toBe('done')
    await settled()
    // Nothing runs late, and all are back.
    expect([ran, new Set(pool.idle), pool.queue]).toEqual([[], new Set([ready, away]), []])
  })

  it('serve the calls that wait once they are back, however long another one is in use', async () => {
    const [ready, away] = [new Client(), new Client()]
    away.isReady = false
    const pool = new Pool(ready, away)
    const clients = new ReadyClients(pool, REASON)
    const first = clients.run(() => new Promise(() => {}))
    const others = ['a', 'b'].map(name => clients.run(async () => name))
    await settled()
    expect([pool.idle, pool.queue.length]).toEqual([[], 2])
    away.comeBack()
    expect(await Promise.all(others)).toEqual(['a', 'b'])
    await settled()
    expect([pool.idle, pool.queue]).toEqual([[away], []])
    void first
  })

  it('are given back as soon as one was found', async () => {
    const [away, ready] = [new Client(), new Client()]
    away.isReady = false
    const pool = new Pool(away, ready)
    const long = later()
    const clients = new ReadyClients(pool, REASON)
    const first = clients.run(() => long.promise)
    await settled()
    expect(pool.idle).toEqual([away])
    const second = clients.run(async () => 'second')
    await settled()
    long.resolve('first')
    expect(await Promise.all([first, second])).toEqual(['first', 'second'])
  })

  it('tell why none could be had, and pass on how a task fails', async () => {
    const closed = { execute: () => Promise.reject(new Error('closed')), idleClients: 0, totalClients: 0 }
    await expect(new ReadyClients(closed, REASON).run(async () => 1)).rejects.toEqual(
      new NotReady(REASON, { cause: new Error('closed') }),
    )
    const failing = new ReadyClients(new Pool(new Client()), REASON).run(() => Promise.reject(new Error('failed')))
    await expect(failing).rejects.toEqual(new Error('failed'))
  })

  it('are forgotten once they are closed', async () => {
    const [closed, away] = [new Client(), new Client()]
    const pool = new Pool(closed)
    const clients = new ReadyClients(pool, REASON)
    expect(await clients.run(async () => 1)).toBe(1)
    Object.assign(closed, { isOpen: false, isReady: false })
    away.isReady = false
    pool.idle.splice(0, 1, away)
    await expect(clients.run(async () => 1)).rejects.toEqual(new NotReady(REASON))
    away.isReady = true
    expect(await clients.run(async () => 1)).toBe(1)
  })
})
