import { SessionManager, SessionStoreError } from 'coatcheck'
import { RedisStore } from 'coatcheck/stores/redis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { within } from '../support/deadlines.ts'
import { type OpenClient, STANDALONE } from '../support/redis/clients.ts'
import { describeEngine } from '../support/services/engines.ts'
import { until } from '../support/services/process.ts'
import { type RedisServer, startRedis } from '../support/services/redis.ts'

const CLIENTS = ['node-redis 6', 'ioredis 6', 'node-redis 6 pool', 'node-redis 5', 'ioredis 5', 'node-redis 5 pool']
/** A release whose successor is asked for more. */
const isOlder = (name: string) => /5/.test(name) && process.env.COATCHECK_LONG !== '1'

describeEngine('redis', 'an outage of Redis is not a logout', () => {
  describe.each(CLIENTS)('with %s', name => {
    let server: RedisServer
    let open: OpenClient
    type Manager = SessionManager<Record<string, unknown>>
    let sessions: Manager
    /** Of the same sessions: gives up soon what is not to be answered. */
    let hasty: Manager
    let now: number
    const events: string[] = []
    beforeEach(async () => {
      server = await startRedis(['--save', '3600 1', '--enable-debug-command', 'yes'])
      open = await STANDALONE[name]!(server.url)
      now = Date.now()
      events.length = 0
      const store = new RedisStore(open.client)
      const onEvent = (event: { type: string }) => void events.push(event.type)
      sessions = new SessionManager({ store, storeTimeout: '30s', now: () => now, onEvent })
      hasty = new SessionManager({ store, storeTimeout: '500ms', now: () => now, onEvent })
    })
    afterEach(async () => {
      await Promise.all([sessions.close(), hasty.close()])
      await open.close()
      await server.stop()
    })
    const ada = { user: { id: 42, name: 'ada' } }
    type Session = Awaited<ReturnType<typeof sessions.create>>
    const verbs = (session: Session, sessions: Manager): Record<string, () => Promise<unknown>> => ({
      get: () => sessions.get(session.secret),
      create: () => sessions.create(ada),
      'anonymous create': () => sessions.create(),
      update: () => sessions.update(session, { n: 1 }),
      regenerate: () => sessions.regenerate(session),
      login: () => sessions.logIn(session, ada),
      list: () => sessions.list(42),
      invalidateUser: () => sessions.invalidateUser(42, { minPasswordVersion: 1 }),
      destroy: () => sessions.destroy(session.secret),
    })

    /** Each verb ends with an error that says that the store failed. */
    async function allFail(session: Session, which = /./) {
      const chosen = Object.entries(verbs(session, hasty)).filter(([verb]) => which.test(verb))
      await Promise.all(
        chosen.map(async ([verb, call]) => {
          const error = await call().then(
            answer => ({ verb, answer }),
            failure => failure,
          )
          expect(error, verb).toBeInstanceOf(SessionStoreError)
          expect(error).toMatchObject({ code: 'ERR_SESSION_STORE', status: 503 })
        }),
      )
    }
    const back = (session: Session) =>
      until('the session being found again', () => sessions.get(session.secret), { timeout: 30_000 })

    it('killed and started again: errors meanwhile, at once, and the same session afterwards', async () => {
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

    it('paused: errors in time, and nothing that was given up runs when it goes on', async () => {
      const session = await sessions.create(ada)
      server.pause()
      await allFail(session)
      server.resume()
      expect(await back(session)).toMatchObject({ user: { id: 42n, name: 'ada' }, data: {} })
      expect(await sessions.list(42)).toHaveLength(1)
      await sessions.update(session, { n: 3 })
      expect(await sessions.get(session.secret)).toMatchObject({ data: { n: 3 } })
    })

    if (isOlder(name)) return

    it('restarted empty: the sessions are gone, which is an answer, and new ones work', async () => {
      const session = await sessions.create(ada)
      await server.cli('CONFIG', 'SET', 'save', '')
      await server.kill()
      await server.restart()
      await until('an answer', async () => expect(await sessions.get(session.secret)).toBe(null))
      expect(await sessions.update(session, { n: 1 })).toBe(null)
      const next = await sessions.create(ada)
      expect(await sessions.get(next.secret)).not.toBe(null)
    })

    it('out of memory: reads and revocations still work, and writes say that nothing was written', async () => {
      const [first, second, third] = [
        await sessions.create(ada),
        await sessions.create(ada),
        await sessions.create(ada),
      ]
      await sessions.invalidateUser(43, { minPasswordVersion: 1 })
      await server.cli('CONFIG', 'SET', 'maxmemory', '1')
      for (const [verb, call] of Object.entries(verbs(first, sessions)).filter(([verb]) =>
        /create|update|regen|login/.test(verb),
      ))
        await expect(call(), verb).rejects.toMatchObject({ code: 'ERR_SESSION_STORE', outcome: 'not-applied' })
      expect(await sessions.get(first.secret)).not.toBe(null)
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

    it('out of memory: who has a remember token logs out', async () => {
      const remembering = new SessionManager({ store: new RedisStore(open.client), rememberFor: '30d' })
      const token = await remembering.issueRememberToken(await remembering.create(ada))
      const begun = (await remembering.redeemRememberToken(token))!
      await server.cli('CONFIG', 'SET', 'maxmemory', '1')
      await remembering.revokeRememberToken(begun.token)
      await server.cli('CONFIG', 'SET', 'maxmemory', '0')
      expect(await remembering.redeemRememberToken(begun.token)).toBe(null)
      expect(await remembering.get(begun.session.secret)).toBe(null)
      await remembering.close()
    })

    it('a touch that fails is an event, and the session is found', async () => {
      const session = await sessions.create(ada)
      now += 10 * 60_000
      await server.cli('CONFIG', 'SET', 'maxmemory', '1')
      expect(await sessions.get(session.secret)).not.toBe(null)
      expect(events).toContain('store-error')
    })

    it('read-only and without a master: writes say that nothing was written, and reads fail', async () => {
      const session = await sessions.create(ada)
      await server.cli('REPLICAOF', '127.0.0.1', '1')
      await allFail(session, /^(?!get|list)/)
      // What it says may be out of date, from the first write on that it refused.
      await allFail(session)
      await expect(
        new RedisStore(open.client).delete(session.key, { now, deadline: within(500) }),
      ).rejects.toMatchObject({
        outcome: 'not-applied',
        cause: { message: expect.stringMatching(/READONLY/) },
      })
      await server.cli('REPLICAOF', 'NO', 'ONE')
      expect(await back(session)).not.toBe(null)
      expect(await sessions.update(session, { n: 1 })).toMatchObject({ data: { n: 1 } })
    })

    it('loading its data: errors in time, and the session afterwards', async () => {
      const session = await sessions.create(ada)
      await server.cli('DEBUG', 'POPULATE', '4000', 'fill', '100')
      await server.cli('SAVE')
      await server.kill()
      await server.restart(['--key-load-delay', '500', '--loading-process-events-interval-bytes', '1024'])
      await allFail(session)
      await server.cli('CONFIG', 'SET', 'key-load-delay', '0')
      expect(await back(session)).toMatchObject({ user: { id: 42n } })
    })

    it('without its script cache: loads the scripts again by itself', async () => {
      const session = await sessions.create(ada)
      await server.cli('SCRIPT', 'FLUSH')
      expect(await sessions.update(session, { n: 1 })).toMatchObject({ data: { n: 1 } })
      await server.cli('SCRIPT', 'FLUSH')
      await sessions.destroy(session)
      expect(await sessions.get(session.secret)).toBe(null)
    })
  })
})
