import { SessionManager, SessionStoreError } from 'coatcheck'
import { RedisStore } from 'coatcheck/stores/redis'
import { describe, expect, it, type TestContext } from 'vitest'
import { within } from '../support/deadlines.ts'
import { managerCalls } from '../support/manager-calls.ts'
import { STANDALONE } from '../support/redis/clients.ts'
import { describeEngine } from '../support/services/engines.ts'
import { until } from '../support/services/process.ts'
import { startRedis } from '../support/services/redis.ts'

const ada = { user: { id: 42, name: 'ada' } }
type Manager = SessionManager<Record<string, unknown>>
type Session = Awaited<ReturnType<Manager['create']>>

const everywhere = { minPasswordVersion: 1 }

/** A server of the test's own, and two managers over one client of it. */
async function setUp(name: string, { onTestFinished }: TestContext) {
  const server = await startRedis(['--save', '3600 1', '--enable-debug-command', 'yes'])
  const { client, close } = await STANDALONE[name]!(server.url)
  const clock = { now: Date.now() }
  const events: string[] = []
  const store = new RedisStore(client)
  const options = {
    store,
    rememberFor: '30d' as const,
    now: () => clock.now,
    onEvent: (event: { type: string }) => void events.push(event.type),
  }
  const sessions: Manager = new SessionManager({ ...options, storeTimeout: '30s' })
  /** Of the same sessions: gives up soon what is not to be answered. */
  const hasty: Manager = new SessionManager({ ...options, storeTimeout: '500ms' })
  onTestFinished(async () => {
    await Promise.all([sessions.close(), hasty.close()])
    await close()
    await server.stop()
  })
  return {
    server,
    client,
    clock,
    events,
    sessions,
    hasty,
    /** Each verb ends with an error that says that the store failed. */
    async allFail(session: Session, which = /./) {
      const failures = managerCalls(which).map(async ([verb, , run]) => {
        const error = await run(hasty, { session: session as never, everywhere }).then(
          answer => ({ verb, answer }),
          failure => failure,
        )
        expect(error, verb).toBeInstanceOf(SessionStoreError)
        expect(error).toMatchObject({ code: 'ERR_SESSION_STORE', status: 503 })
      })
      await Promise.all(failures)
    },
    back: (session: Session) => until('the session being found again', () => sessions.get(session.secret)),
  }
}

describeEngine('redis', 'an outage of Redis is not a logout', () => {
  describe.each(Object.keys(STANDALONE))('with %s', name => {
    it.concurrent('killed and started again: errors meanwhile, at once, and the same session afterwards', async test => {
      const { server, sessions, hasty, events, allFail, back } = await setUp(name, test)
      const session = await sessions.create(ada)
      await server.cli('SAVE')
      await server.kill()
      await until('the client noticing', async () => {
        const began = performance.now()
        await hasty.get(session.secret).then(
          () => Promise.reject(new Error('still there')),
          () => null,
        )
        if (performance.now() - began > 100) throw new Error('waited')
      })
      await allFail(session)
      await expect(sessions.destroy(session)).rejects.toMatchObject({ outcome: 'not-applied' })
      await server.restart()
      expect(await back(session)).toMatchObject({ user: { id: 42n, name: 'ada' } })
      expect(await sessions.list(42)).toHaveLength(1)
      expect(events.filter(type => type === 'destroyed' || type === 'invalidated')).toEqual([])
      // The script cache went with the server.
      expect(await sessions.update(session, { n: 2 })).toMatchObject({ data: { n: 2 } })
    })

    it.concurrent('paused: errors in time, and nothing that was given up runs when it goes on', async test => {
      const { server, sessions, allFail, back } = await setUp(name, test)
      const session = await sessions.create(ada)
      server.pause()
      await allFail(session)
      server.resume()
      expect(await back(session)).toMatchObject({ user: { id: 42n, name: 'ada' }, data: {} })
      expect(await sessions.list(42)).toHaveLength(1)
      await sessions.update(session, { n: 3 })
      expect(await sessions.get(session.secret)).toMatchObject({ data: { n: 3 } })
    })
  })

  // What these ask, the server says, and each client hands on. A release with a successor was asked for enough.
  describe.each(['node-redis 6', 'ioredis 6'])('with %s', name => {
    it.concurrent('restarted empty: the sessions are gone, which is an answer, and new ones work', async test => {
      const { server, sessions } = await setUp(name, test)
      const session = await sessions.create(ada)
      await server.cli('CONFIG', 'SET', 'save', '')
      await server.kill()
      await server.restart()
      await until('an answer', async () => expect(await sessions.get(session.secret)).toBe(null))
      expect(await sessions.update(session, { n: 1 })).toBe(null)
      const next = await sessions.create(ada)
      expect(await sessions.get(next.secret)).not.toBe(null)
    })

    it.concurrent('out of memory: reads and revocations still work, and writes say that nothing was written', async test => {
      const { server, sessions, clock, events } = await setUp(name, test)
      const [first, second, third] = [
        await sessions.create(ada),
        await sessions.create(ada),
        await sessions.create(ada),
      ]
      await sessions.invalidateUser(43, { minPasswordVersion: 1 })
      await server.cli('CONFIG', 'SET', 'maxmemory', '1')
      for (const [verb, , run] of managerCalls(/create|update|regen|login/))
        await expect(run(sessions, { session: first }), verb).rejects.toMatchObject({
          code: 'ERR_SESSION_STORE',
          outcome: 'not-applied',
        })
      // A touch that fails is an event.
      events.length = 0
      clock.now += 10 * 60_000
      expect(await sessions.get(first.secret)).not.toBe(null)
      expect(events).toContain('store-error')
      expect(await sessions.list(42)).toHaveLength(3)
      await sessions.destroy(first)
      expect(await sessions.get(first.secret)).toBe(null)
      expect(await sessions.invalidateUser(42, { except: second, minPasswordVersion: 2 })).toBe(1)
      expect(await sessions.get(third.secret)).toBe(null)
      expect(await sessions.invalidateUser(44, { minPasswordVersion: 2 })).toBe(0)
      await server.cli('CONFIG', 'SET', 'maxmemory', '0')
      expect(await sessions.get(second.secret)).not.toBe(null)
      for (const id of [42, 44])
        await expect(sessions.create({ user: { id, name: 'ada', passwordVersion: 1 } })).rejects.toMatchObject({
          code: 'ERR_SESSION_STALE_LOGIN',
        })
    })

    it.concurrent('out of memory: who has a remember token logs out', async test => {
      const { server, client } = await setUp(name, test)
      const remembering = new SessionManager({ store: new RedisStore(client), rememberFor: '30d', storeTimeout: '20s' })
      const token = await remembering.issueRememberToken(await remembering.create(ada))
      const begun = (await remembering.redeemRememberToken(token))!
      await server.cli('CONFIG', 'SET', 'maxmemory', '1')
      await remembering.revokeRememberToken(begun.token)
      await server.cli('CONFIG', 'SET', 'maxmemory', '0')
      expect(await remembering.redeemRememberToken(begun.token)).toBe(null)
      expect(await remembering.get(begun.session.secret)).toBe(null)
      await remembering.close()
    })

    it.concurrent('read-only and without a master: writes say that nothing was written, and reads fail', async test => {
      const { server, client, clock, sessions, allFail, back } = await setUp(name, test)
      const session = await sessions.create(ada)
      await server.cli('REPLICAOF', '127.0.0.1', '1')
      await allFail(session, /^(?!get|list|revoke|recall)/)
      // What it says may be out of date, from the first write on that it refused.
      await allFail(session)
      const call = { now: clock.now, deadline: within(500) }
      await expect(new RedisStore(client).delete(session.key, call)).rejects.toMatchObject({
        outcome: 'not-applied',
        cause: { message: expect.stringMatching(/READONLY/) },
      })
      await server.cli('REPLICAOF', 'NO', 'ONE')
      expect(await back(session)).not.toBe(null)
      expect(await sessions.update(session, { n: 1 })).toMatchObject({ data: { n: 1 } })
    })

    it.concurrent('loading its data: errors in time, and the session afterwards', async test => {
      const { server, sessions, allFail, back } = await setUp(name, test)
      const session = await sessions.create(ada)
      await server.cli('DEBUG', 'POPULATE', '4000', 'fill', '100')
      await server.cli('SAVE')
      await server.kill()
      await server.restart(['--key-load-delay', '500', '--loading-process-events-interval-bytes', '1024'])
      await allFail(session)
      await server.cli('CONFIG', 'SET', 'key-load-delay', '0')
      expect(await back(session)).toMatchObject({ user: { id: 42n } })
    })
  })
})
