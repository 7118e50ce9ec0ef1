import { randomBytes } from 'node:crypto'
import { type SessionId, SessionManager } from 'coatcheck'
import { RedisStore } from 'coatcheck/stores/redis'
import { expect, it } from 'vitest'
import { collectGarbage } from '../support/collect-garbage.ts'
import { STANDALONE } from '../support/redis/clients.ts'
import { describeEngine } from '../support/services/engines.ts'
import { until } from '../support/services/process.ts'
import { startRedis } from '../support/services/redis.ts'

const GETS = 16_000
/** For each visit. A client keeps its commands until their answers come, and again while it makes a new connection. */
const MOST = 2048

describeEngine('redis', 'a Redis that is silent for a while', () => {
  const held = () => {
    for (let times = 0; times < 3; times++) collectGarbage()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }

  // Both families: what a call that was given up leaves behind is the client's business.
  it.each(['node-redis 6', 'ioredis 6'])(
    'costs little memory for 16,000 visits that were given up, and none afterwards, with %s',
    async name => {
      const server = await startRedis()
      const { client, close } = await STANDALONE[name]!(server.url)
      const store = new RedisStore(client)
      const sessions = new SessionManager({ store, storeTimeout: '250ms' })
      const patient = new SessionManager({ store, storeTimeout: '30s', sweepInterval: false })
      const { secret } = await patient.create({ user: { id: 42, name: 'ada' } })
      const outcomes = new Map<string, number>()
      const count = (outcome: string) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      const shard = secret.slice(0, 3)
      const before = held()
      server.pause()
      for (let made = 0; made < GETS; made += 1000) {
        const visits = Array.from({ length: 1000 }, () =>
          sessions.get((shard + randomBytes(30).toString('base64url')) as SessionId).then(
            () => count('answered'),
            error => count(error.outcome),
          ),
        )
        await Promise.all(visits)
      }
      expect(Object.fromEntries(outcomes)).toEqual({ 'not-applied': GETS })
      expect((held() - before) / GETS).toBeLessThan(MOST)
      server.resume()
      expect(await until('the session being found again', () => sessions.get(secret))).not.toBe(null)
      // A client needs a while to let go of what it gave up.
      await until('what the visits held being free', () => expect((held() - before) / GETS).toBeLessThan(MOST / 8))
      await sessions.close()
      await close()
      await server.stop()
    },
  )
})
