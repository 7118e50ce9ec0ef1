import { type Duration, SessionManager, type SessionStoreError } from 'coatcheck'
import { RedisStore } from 'coatcheck/stores/redis'
import { describe, expect, it, type TestContext } from 'vitest'
import { HOUR, writeId } from '../support/records.ts'
import { CLUSTER, type OpenClient, SENTINEL, STANDALONE } from '../support/redis/clients.ts'
import { startBehindProxies, startPair } from '../support/redis/failures.ts'
import { describeEngine } from '../support/services/engines.ts'
import { until } from '../support/services/process.ts'

const LONG = process.env.COATCHECK_LONG === '1'
/** A release with a successor is asked for the two things that a client does by itself: to leave, and to connect anew. */
const isNewest = (name: string) => LONG || name.includes('6')
const clients = (...kinds: Record<string, unknown>[]) =>
  kinds.flatMap(kind => Object.keys(kind)).filter(name => isNewest(name) || !/5 (?:pool|cluster|sentinel)/.test(name))
const ada = { user: { id: 'ada', name: 'Ada' } }
const managerOver = ({ client }: Pick<OpenClient, 'client'>, storeTimeout: Duration = '30s') =>
  new SessionManager({ store: new RedisStore(client), userIds: 'string', storeTimeout, sweepInterval: false })
const outcomeOf = (work: Promise<unknown>) => work.then(String, (error: SessionStoreError) => error)
/** What a call answered, or how the cause of its error begins. */
const said = (work: Promise<unknown>) => work.then(String, ({ cause }) => String(cause?.message).split(':')[0]!)
const refused = { outcome: 'not-applied', cause: { message: expect.stringMatching(/^READONLY/) } }
const RIGHTS =
  '+get +mget +set +del +exists +type +pttl +pexpire +eval +evalsha +time +zadd +zrem +zrange +zrandmember +info +ping +hello +auth +client|setname'

/** A client behind the address of a primary, and another of its replica, with managers over both. */
async function behindPair(
  name: string,
  { onTestFinished }: TestContext,
  { url = 'redis://', storeTimeout = '1s' }: { url?: string; storeTimeout?: Duration } = {},
) {
  const pair = await startPair()
  // May not ask for the role.
  const rights = ['ACL', 'SETUSER', 'coats', 'on', '>secret', '~coatcheck:*', ...RIGHTS.split(' ')]
  for (const { cli } of [pair.old, pair.next]) expect(await cli(...rights)).toBe('OK')
  const open = await STANDALONE[name]!(`${url}127.0.0.1:${pair.address.port}`)
  const elsewhere = await STANDALONE['node-redis 6']!(pair.next.url)
  const [sessions, others] = [managerOver(open, storeTimeout), managerOver(elsewhere)]
  onTestFinished(async () => {
    await Promise.all([sessions.close(), others.close(), open.close(), elsewhere.close()])
    await pair.stop()
  })
  return { ...pair, client: open.client as any, sessions, others }
}

/** A client of servers behind proxies, and a manager over it. */
async function behindProxies(name: string, { onTestFinished }: TestContext) {
  const place = await startBehindProxies(name)
  const sessions = managerOver(place, '1s')
  onTestFinished(async () => {
    await sessions.close()
    await place.close()
    await place.stop()
  })
  return { ...place, client: place.client as any, sessions }
}

describeEngine('redis', 'a connection of no use', () => {
  describe('whose primary became a replica', () => {
    it.concurrent.for([
      ...clients(STANDALONE)
        .filter(isNewest)
        .map(name => [name, 'redis://'] as const),
      ['ioredis 6', 'redis://coats:secret@'] as const,
    ])(
      'shows no session that ended since the first refused write, and is left: %s as %s',
      { timeout: 90_000 },
      async ([name, url], test) => {
        const { sessions, others, ...pair } = await behindPair(name, test, { url, storeTimeout: '500ms' })
        const { secret } = await until('a login', () => sessions.create(ada))
        await pair.failOver()
        await until('a logout', () => others.destroy(secret))
        await until('a refused write', async () => expect(await outcomeOf(sessions.create(ada))).toMatchObject(refused))
        let isOver = false
        const seen: string[] = []
        const readers = Array.from({ length: 5 }, async () => {
          while (!isOver) seen.push(await said(sessions.get(secret)))
        })
        await until('some reads', () => {
          expect(seen.length).toBeGreaterThanOrEqual(10)
          expect(seen).toContain('READONLY')
        })
        expect(seen).not.toContain('[object Object]')
        expect(seen).not.toContain('null')
        expect(await said(sessions.list('ada'))).not.toContain('object')
        pair.address.redirect(pair.next.port)
        const login = await until('a login', () => sessions.create(ada))
        expect(await until('an answer', () => sessions.get(secret))).toBe(null)
        isOver = true
        await Promise.all(readers)
        expect(seen).not.toContain('[object Object]')
        expect(await others.get(login.secret)).toMatchObject(ada)
        // Each connection was asked once, and left.
        const connections = pair.address.connections()
        const asked = await Promise.all(
          [pair.old, pair.next].map(async ({ commandStats }) => (await commandStats()).role),
        )
        expect(asked.reduce<number>((sum, count = 0) => sum + count, 0)).toBeLessThanOrEqual(connections)
        expect(connections).toBeLessThan(30)
      },
    )

    // One after the other: a client that needs three seconds for it is in an outage.
    it.for(clients(STANDALONE))('a login waits for the new one within its time: %s', async (name, test) => {
      const { sessions, ...pair } = await behindPair(name, test, { storeTimeout: '30s' })
      await sessions.create(ada)
      await pair.failOver()
      pair.address.redirect(pair.next.port)
      const logins = await Promise.all(Array.from({ length: 20 }, () => sessions.create(ada)))
      expect(await Promise.all(logins.map(({ secret }) => sessions.get(secret)))).not.toContain(null)
    })

    it.concurrent('goes on reading through a wrapper, which can neither be left nor is asked', async test => {
      const { client, ...pair } = await behindPair('node-redis 6', test)
      const sendCommand = (args: string[]) => client.sendCommand(args)
      const sessions = managerOver({ client: { sendCommand, isOpen: true, isReady: true } as never })
      const { secret } = await until('a login', () => sessions.create(ada))
      await pair.failOver()
      await until('a refused write', async () => expect(await outcomeOf(sessions.create(ada))).toMatchObject(refused))
      expect(await until('an answer', () => sessions.get(secret))).toMatchObject(ada)
      expect(await pair.old.commandStats()).not.toHaveProperty('role')
      expect(pair.address.connections()).toBe(1)
      await sessions.close()
    })

    it.concurrent('is left once in three seconds at most where roles change to and fro', async test => {
      const { sessions, ...pair } = await behindPair('ioredis 6', test, { storeTimeout: '250ms' })
      const { secret } = await until('a login', () => sessions.create(ada))
      const began = performance.now()
      for (let times = 0; times < 12; times++) {
        await pair.old.cli('REPLICAOF', '127.0.0.1', `${pair.next.port}`)
        await Promise.all([outcomeOf(sessions.create(ada)), outcomeOf(sessions.get(secret))])
        await pair.old.cli('REPLICAOF', 'NO', 'ONE')
        await outcomeOf(sessions.create(ada))
      }
      const most = 2 + (performance.now() - began) / 3000
      expect(pair.address.connections()).toBeLessThanOrEqual(most)
      await until('a login', () => sessions.create(ada))
    })

    it('asks again what was read before a write was refused, and answered behind it', async test => {
      const { client, sessions, old } = await behindPair('ioredis 6', test, { storeTimeout: '20s' })
      const elsewhere = await STANDALONE['node-redis 6']!(old.url)
      const { secret } = await sessions.create(ada)
      const { call } = client
      const reads: unknown[] = []
      let isRefused = false
      client.call = async (...args: unknown[]) => {
        if (String(args[0]).startsWith('EVAL') && !isRefused) {
          isRefused = true
          throw new Error('READONLY')
        }
        const answer = await call.apply(client, args)
        if (!isRefused) {
          reads.push(answer)
          await until('a refused write', () => expect(isRefused).toBe(true))
        }
        return answer
      }
      const read = sessions.get(secret)
      await until('its answer', () => expect(reads).toHaveLength(1))
      await managerOver(elsewhere).destroy(secret)
      const login = sessions.create(ada)
      expect(await read).toBe(null)
      expect(await sessions.get((await login).secret)).toMatchObject(ada)
      await elsewhere.close()
    })
  })

  describe('that is silent', () => {
    it.concurrent.for(clients(STANDALONE, CLUSTER, SENTINEL))(
      'is left, and a write without an answer is unknown: %s',
      { timeout: 90_000 },
      async (name, test) => {
        const { sessions, ...place } = await behindProxies(name, test)
        const store = new RedisStore(place.client, { allowEviction: true })
        const users = Array.from({ length: 6 }, (_, i) => ({ user: { id: `${i}`, name: 'Ada' } }))
        // Calls that had more time, and were answered, make nobody wait.
        const patient = new SessionManager({ store, userIds: 'string', storeTimeout: '30s', sweepInterval: false })
        const begun = await Promise.all(users.map(user => patient.create(user)))
        const before = place.connections()
        place.silence()
        const writes = begun.map(({ key }) => {
          const now = Date.now()
          const change = { data: '{}', seenAt: now, expiresAt: now + HOUR, writeId: writeId() }
          return outcomeOf(store.update(key, 1, change, { now, deadline: performance.now() + 1000 }))
        })
        for (const { secret } of begun)
          expect(await until('an answer', () => sessions.get(secret), { timeout: 60_000 })).not.toBe(null)
        // The client of Sentinel sends it again, and has the answer to that.
        const unknown = expect.objectContaining({ outcome: 'unknown' })
        const outcomes = await Promise.all(writes)
        expect(outcomes).toEqual(outcomes.map(outcome => (outcome === 'updated' ? outcome : unknown)))
        if (name === 'node-redis 6')
          expect(outcomes[0]).toMatchObject({ cause: { message: expect.stringMatching(/silent/) } })
        expect(place.connections() - before).toBeLessThan(20)
      },
    )

    it.concurrent.for(['node-redis 6', 'ioredis 6'])(
      'is left once while its server is stopped, and nothing is lost: %s',
      async (name, test) => {
        const { sessions, ...place } = await behindProxies(name, test)
        const session = await until('a login', () => sessions.create({ ...ada, data: { n: 0 } }))
        const [server] = place.servers
        server!.pause()
        let [acknowledged, unknown] = [0, 0]
        const increment = () =>
          sessions
            .update(session, data => {
              data.n = Number(data.n) + 1
            })
            .then(
              () => void acknowledged++,
              (error: SessionStoreError) => {
                if (error.outcome === 'unknown') unknown++
              },
            )
        await until('a new connection', async () => {
          await Promise.all([increment(), outcomeOf(sessions.get(session.secret))])
          if (place.connections() < 2) throw new Error('still the old one')
        })
        server!.resume()
        await until('an answer', () => sessions.get(session.secret))
        await until('a write', async () => {
          await increment()
          if (acknowledged === 0) throw new Error('none yet')
        })
        const { n } = (await until('all of it', () => sessions.get(session.secret)))!.data as { n: number }
        expect(n).toBeGreaterThanOrEqual(acknowledged)
        expect(n).toBeLessThanOrEqual(acknowledged + unknown)
        expect(place.connections()).toBe(2)
      },
    )

    it.concurrent.for(['node-redis 6', 'ioredis 6'])(
      'is not taken for one that waits for others: %s',
      async (name, test) => {
        const { sessions, ...place } = await behindProxies(name, test)
        const { secret } = await until('a login', () => sessions.create(ada))
        const blocked = name.startsWith('node') ? place.client.blPop('nothing', 1) : place.client.blpop('nothing', 1)
        const gets = Array.from({ length: 3 }, () => outcomeOf(sessions.get(secret)))
        expect(await blocked).toBe(null)
        await Promise.all(gets)
        expect(await until('an answer', () => sessions.get(secret))).not.toBe(null)
        expect(place.connections()).toBe(1)
      },
    )
  })

  it.concurrent.for(clients(CLUSTER))('is made anew if it was lost before the first call: %s', async (name, test) => {
    const { sessions, servers, client } = await behindProxies(name, test)
    // Connects to each master.
    for (let key = 0; key < 100; key++) await client.get(`${key}`)
    await servers[0]!.cli('CLIENT', 'KILL', 'TYPE', 'normal')
    await until('a login', () => sessions.create(ada))
  })

  it.concurrent('is left alone while its server is away, and node-redis goes on by itself', async test => {
    const { sessions, ...place } = await behindProxies('node-redis 6', test)
    const { secret } = await until('a login', () => sessions.create(ada))
    let ends = 0
    place.client.on('end', () => ends++)
    const [server] = place.servers
    await server!.kill()
    const began = performance.now()
    await until('some seconds having passed', async () => {
      expect(await outcomeOf(sessions.get(secret))).toMatchObject({ code: 'ERR_SESSION_STORE' })
      if (performance.now() < began + 3500) throw new Error('not yet')
    })
    await server!.restart()
    expect(
      await until('an answer', () => outcomeOf(sessions.get(secret)).then(a => (a === 'null' ? a : Promise.reject(a)))),
    ).toBe('null')
    expect(ends).toBe(0)
  })
})
