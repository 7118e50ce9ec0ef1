import { type ChildProcess, fork } from 'node:child_process'
import { type SessionId, SessionManager } from 'coatcheck'
import { RedisStore } from 'coatcheck/stores/redis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type CompiledWorker, compileWorker } from '../../support/compile-worker.ts'
import { type OpenClient, STANDALONE } from '../../support/redis/clients.ts'
import type { Order } from '../../support/redis/worker.ts'
import { describeEngine } from '../../support/services/engines.ts'
import { type RedisServer, startRedis } from '../../support/services/redis.ts'

const LONG = process.env.COATCHECK_LONG === '1'
const ROUNDS = LONG ? 40 : 4
/** Half of the processes with each client, their clocks up to 5 minutes apart. */
const NODES = [
  ['node-redis', 0],
  ['ioredis', -150_000],
  ['node-redis', 150_000],
  ['ioredis', 0],
] as const
const FASTEST = 2

interface Worker {
  ask(order: Order): Promise<any>
  stop(): void
}

function launch(file: string, url: string, [kind, skew]: (typeof NODES)[number]): Promise<Worker> {
  const child: ChildProcess = fork(file, [url, kind, String(skew)])
  const waiting = new Map<number, { resolve(answer: unknown): void; reject(error: Error): void }>()
  let next = 0
  return new Promise((resolve, reject) => {
    child.on('exit', code => reject(new Error(`a worker ended with ${code}`)))
    child.on('message', (message: { ready?: true; id: number; answer?: unknown; error?: string }) => {
      if (message.ready)
        resolve({
          ask: order =>
            new Promise((resolveOne, rejectOne) => {
              const id = next++
              waiting.set(id, { resolve: resolveOne, reject: rejectOne })
              child.send({ id, order })
            }),
          stop: () => void child.kill('SIGKILL'),
        })
      else if (message.error === undefined) waiting.get(message.id)!.resolve(message.answer)
      else waiting.get(message.id)!.reject(new Error(message.error))
    })
  })
}

describeEngine('redis', 'several processes on one Redis, with clocks 5 minutes apart', () => {
  let server: RedisServer
  let open: OpenClient
  let sessions: SessionManager<{ n: number }>
  let workers: Worker[]
  let worker: CompiledWorker
  beforeAll(async () => {
    server = await startRedis()
    worker = await compileWorker('redis/worker')
    workers = await Promise.all(NODES.map(node => launch(worker.path, server.url, node)))
    open = await STANDALONE['node-redis 6']!(server.url)
    sessions = new SessionManager({
      store: new RedisStore(open.client),
      initial: () => ({ n: 0 }),
      storeTimeout: '20s',
    })
  }, 120_000)
  afterAll(async () => {
    for (const worker of workers ?? []) worker.stop()
    worker?.remove()
    await sessions?.close()
    await open?.close()
    await server.stop()
  })
  const all = (order: (index: number) => Order) => Promise.all(workers.map((worker, i) => worker.ask(order(i))))

  it('share a session: none ends it for the others', async () => {
    const { secret } = await sessions.create({ user: { id: 1, name: 'ada' } })
    for (let round = 0; round < 3; round++)
      for (const found of await all(() => ({ op: 'get', secret }))) expect(found).toMatchObject({ user: '1' })
    expect(await sessions.get(secret)).not.toBe(null)
  })

  it('lose no increment, not even while the ID is renewed under them', { timeout: 120_000 }, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { secret } = await sessions.create({ user: { id: 2, name: 'ada' } })
      // The fastest clock renews: by the others' the grace is longer still.
      const answers = await all(i =>
        i === FASTEST ? { op: 'rotate', secret, times: 4 } : { op: 'increment', secret, times: 20 },
      )
      const [last] = answers.splice(FASTEST, 1)
      expect(answers).toEqual(answers.map(() => 20))
      expect((await sessions.get(last))?.data.n).toBe(20 * (workers.length - 1))
    }
  })

  it('make one successor of one ID, or none', { timeout: 120_000 }, async () => {
    for (let round = 0; round < ROUNDS * 3; round++) {
      const user = { id: 1000 + round, name: 'ada' }
      const { secret } = await sessions.create({ user })
      const successors = (await all(() => ({ op: 'regenerate', secret, times: 5 }))).flat().filter(Boolean)
      expect(new Set(successors).size).toBeLessThanOrEqual(1)
      expect(await sessions.list(user.id)).toHaveLength(1)
      expect(await sessions.get(secret)).toBe(null)
    }
  })

  it('end what is renewed at the same moment: a logout wins', { timeout: 120_000 }, async () => {
    for (let round = 0; round < ROUNDS * 3; round++) {
      const user = { id: 2000 + round, name: 'ada' }
      const { secret } = await sessions.create({ user })
      await all(i =>
        i === 0
          ? { op: 'destroy', secret }
          : i === 1
            ? { op: 'rotate', secret, times: 2 }
            : { op: 'regenerate', secret, times: 3 },
      )
      expect(await sessions.list(user.id)).toEqual([])
    }
  })

  it('leave nothing of a user who was logged out everywhere in the middle of all that', {
    timeout: 300_000,
  }, async () => {
    for (let version = 1; version <= ROUNDS; version++) {
      const storms = all(() => ({ op: 'storm', user: 3, version, ms: 800 }))
      await new Promise(resolve => setTimeout(resolve, 200 + Math.random() * 300))
      await sessions.invalidateUser(3, { minPasswordVersion: version + 1 })
      // Complete when it resolves, not when the last straggler has ended.
      expect(await sessions.list(3)).toEqual([])
      const told: { secrets: string[]; destroyed: string[]; stale: number }[] = await storms
      expect(await sessions.list(3)).toEqual([])
      expect(told.reduce((sum, { secrets }) => sum + secrets.length, 0)).toBeGreaterThan(10)
      expect(told.reduce((sum, { stale }) => sum + stale, 0)).toBeGreaterThan(0)
      for (const { secrets } of told)
        for (const found of await Promise.all(secrets.map(secret => sessions.get(secret as SessionId))))
          expect(found).toBe(null)
    }
  })

  it('keep destroyed sessions destroyed', { timeout: 120_000 }, async () => {
    const told: { destroyed: string[] }[] = await all(i => ({ op: 'storm', user: 10 + i, version: 0, ms: 1500 }))
    for (const { destroyed } of told) {
      expect(destroyed.length).toBeGreaterThan(0)
      for (const found of await Promise.all(destroyed.map(secret => sessions.get(secret as SessionId))))
        expect(found).toBe(null)
    }
    for (const i of workers.keys()) {
      // Three people at each node, each in one browser: what was destroyed has left no successor either.
      expect((await sessions.list(10 + i)).length).toBeLessThanOrEqual(3)
      await sessions.invalidateUser(10 + i)
      expect(await sessions.list(10 + i)).toEqual([])
    }
  })
})
