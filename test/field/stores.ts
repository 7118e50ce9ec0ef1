// What went wrong in the field between requests, or in what a store keeps. The name of each test begins with the public
// number, and a comment says whose defect it was.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { SessionId, Store, UserSession } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { it } from 'vitest'
import { type Data, guaranteeKit, isCode, newUser, type SetUp, times } from '../support/guarantee-kit.ts'
import { onlyHost } from '../support/only-host.ts'
import { holdsPartOf } from '../support/scan.ts'
import { HOUR, MINUTE } from '../support/test-clock.ts'

type Held = UserSession<Data, 'bigint'>

/** What a request may still write when the session that it read has ended meanwhile. */
const LATE_WRITES: Record<string, (at: SetUp, session: Held) => Promise<unknown>> = {
  touch: async ({ sessions }, session) => sessions.get(session.secret),
  update: async ({ sessions }, session) => sessions.update(session, { late: true }),
  take: async ({ sessions }, session) => sessions.take(session, 'flash'),
  regenerate: async ({ sessions }, session) => sessions.regenerate(session),
  rotate: async ({ sessions }, session) => sessions.regenerate(session, { grace: '1m' }),
}

/** A login of ten minutes ago, so that the next `get` writes that the session was used. */
async function loggedIn(at: SetUp): Promise<Held> {
  const session = await at.sessions.create({ user: at.user, data: { flash: 'hello' } })
  at.clock.advance(10 * MINUTE)
  return session
}

const anyId = () => randomBytes(33).toString('base64url').slice(0, 43) as SessionId

/** Asks a store for what went wrong in others. */
export function regressions(open: () => Store): void {
  const { setUp, atEveryPoint } = guaranteeKit(open)

  // rack-session: a request under way during the logout wrote the session back.
  it('CVE-2025-46336: a request that was under way during the logout, on another node, does not restore the session', async () => {
    for (const [verb, write] of Object.entries(LATE_WRITES))
      await atEveryPoint(
        {},
        loggedIn,
        write,
        ({ manager }, { secret }) => manager().destroy(secret),
        async ({ sessions, user }, { secret }, outcome, where) => {
          assert.equal(await sessions.get(secret), null, `${verb} ${where}`)
          assert.deepEqual(await sessions.list(user.id), [], `${verb} ${where}`)
          const next = outcome.status === 'fulfilled' ? (outcome.value as { secret?: SessionId } | null) : null
          if (next?.secret) assert.equal(await sessions.get(next.secret), null, `${verb} ${where}`)
        },
      )
  })

  // A save brings a session back that was destroyed before it.
  it('tj/connect-redis 328: a store writes to a live record alone, so that a save after the logout stores nothing', async () => {
    const { store, clock, sessions, user } = await setUp()
    const { key, secret } = await sessions.create({ user })
    const call = { now: clock() }
    const record = await store.read(key, call)
    assert.ok(record !== null && 'key' in record)
    await sessions.destroy(secret)
    const { expiresAt, version } = record
    const change = { data: '{"late":true}', seenAt: clock(), expiresAt, writeId: 'late-write-1' }
    assert.equal(await store.update(key, version, change, call), 'gone')
    assert.equal(await store.touch(key, clock(), expiresAt, call), 'gone')
    const next = { ...record, key: key.slice(0, 3) + anyId(), writeId: 'late-write-2' }
    assert.equal(await store.replace(key, version, next, {}, call), 'gone')
    assert.equal(await store.read(key, call), null)
    assert.equal(await store.read(next.key, call), null)
    assert.deepEqual(await store.listUser(`${user.id}`, 'session', call), [])
  })

  // Of overlapping requests, the last save takes the place of all.
  it('fastify/session 237: what overlapping requests write on two nodes, to keys of their own and to one key, is all kept', async () => {
    const { sessions, manager, user } = await setUp({ storeTimeout: '20s' })
    const session = await sessions.create({ user, data: { n: 0 } })
    const other = manager()
    await Promise.all(
      times(10).flatMap(i => {
        const node = i % 2 === 0 ? sessions : other
        const add = (data: Data) => {
          data.n = Number(data.n) + 1
        }
        return [node.update(session, { [`k${i}`]: i }), node.update(session, add)]
      }),
    )
    const data = (await sessions.get(session.secret))?.data
    assert.deepEqual(data, { n: 10, ...Object.fromEntries(times(10).map(i => [`k${i}`, i])) })
  })

  // The index of a user's sessions loses entries in races.
  it('better-auth 11073: logins, touches and revocations that overlap leave no session that is live and cannot be found', async () => {
    const crowd = await setUp()
    const nodes = [crowd.sessions, crowd.manager()]
    const all = await Promise.all(times(12).map(i => nodes[i % 2]!.create({ user: crowd.user })))
    crowd.clock.advance(10 * MINUTE)
    const touches = all.map(({ secret }, i) => nodes[i % 2]!.get(secret))
    await nodes[1]!.invalidateUser(crowd.user.id)
    await Promise.all(touches)
    for (const { secret } of all) assert.equal(await crowd.sessions.get(secret), null)
    assert.deepEqual(await crowd.sessions.list(crowd.user.id), [])
    const ends: Record<string, (at: SetUp, session: Held) => Promise<unknown>> = {
      revoke: ({ manager, user }, { key }) => manager().revoke(user.id, key),
      invalidateUser: ({ manager, user }) => manager().invalidateUser(user.id),
    }
    for (const [verb, end] of Object.entries(ends))
      await atEveryPoint({}, loggedIn, LATE_WRITES.touch!, end, async ({ sessions, user }, { secret }, _, where) => {
        assert.equal(await sessions.get(secret), null, `${verb} ${where}`)
        assert.deepEqual(await sessions.list(user.id), [], `${verb} ${where}`)
      })
    await atEveryPoint(
      {},
      async () => null,
      ({ sessions, user }) => sessions.create({ user }),
      ({ manager, user }) => manager().invalidateUser(user.id),
      async ({ sessions, user }, _, outcome, where) => {
        assert.equal(outcome.status, 'fulfilled', where)
        const begun = outcome.status === 'fulfilled' ? await sessions.get(outcome.value.secret) : null
        const listed = (await sessions.list(user.id)).map(({ key }) => key)
        assert.deepEqual(listed, begun === null ? [] : [begun.key], where)
      },
    )
  })

  // @fastify/session: the expiry was computed anew at each read, so that no session expired.
  it('CVE-2024-35220: the time of a session is read from its record: neither use nor a node with longer times moves its end', async () => {
    const { sessions, manager, clock, user } = await setUp({ idleTimeout: '30m', absoluteTimeout: '2h' })
    const patient = manager({ idleTimeout: '10h', absoluteTimeout: '100h' })
    const used = await sessions.create({ user })
    for (const _ of times(4)) {
      clock.advance(29 * MINUTE)
      assert.notEqual(await sessions.get(used.secret), null)
    }
    clock.advance(4 * MINUTE - 1)
    assert.notEqual(await patient.get(used.secret), null)
    clock.advance(1)
    for (const node of [patient, sessions]) assert.equal(await node.get(used.secret), null)
    assert.equal(await patient.update(used, { late: true }), null)
    const idle = await sessions.create({ user })
    clock.advance(30 * MINUTE)
    for (const node of [patient, sessions]) assert.equal(await node.get(idle.secret), null)
    assert.equal(await patient.regenerate(idle), null)
    assert.deepEqual(await patient.list(user.id), [])
  })

  // Django: each unknown ID filled the store with an empty session.
  it('CVE-2015-5143: requests with ever new IDs leave nothing in the store', async () => {
    const { sessions, store } = await setUp()
    const before = await sessions.count()
    store.reset()
    for (const id of times(50).map(anyId)) {
      assert.equal(await sessions.get(id), null)
      const cookie = `session_id=${id}`
      const visit = openVisit(sessions, { method: 'POST', cookie, secure: true, header: onlyHost })
      assert.equal(await visit.get(), null)
      assert.equal(await visit.take('flash'), undefined)
    }
    assert.deepEqual(Object.keys(store.counts()), ['read'])
    assert.equal(await sessions.count(), before)
  })

  // Rack: the time of a look-up by the ID itself could tell about it.
  it('CVE-2019-16782: a store is asked for hashes and keeps hashes: no ID, and no part of one, can be looked for or found', async () => {
    const { sessions, store, clock, user } = await setUp({ rememberFor: '30d' })
    const session = await sessions.create({ user })
    const token = await sessions.issueRememberToken(session)
    await sessions.get(session.secret)
    await sessions.redeemRememberToken(token)
    const secrets = [session.secret.slice(3), ...token.split('.').map(half => half.slice(3))]
    const asked = JSON.stringify(store.calls.map(({ verb, args }) => [verb, args]))
    const kept: unknown[] = []
    let next: string | null = null
    do {
      const page: Awaited<ReturnType<NonNullable<typeof store.scan>>> = await store.scan!(next, 500, { now: clock() })
      kept.push(...page.records, ...page.forwards)
      next = page.next
    } while (next !== null)
    assert.ok(kept.length >= 2)
    for (const secret of secrets) {
      assert.ok(!holdsPartOf(secret, asked))
      assert.ok(!holdsPartOf(secret, JSON.stringify(kept)))
    }
    for (const guess of [session.key, session.key.slice(0, 43), session.key.slice(3)])
      assert.equal(await sessions.get(guess as unknown as SessionId), null)
    // IDs that differ in the last character are as far apart in an index as any two: there is nothing to approach.
    store.reset()
    for (const last of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_')
      await sessions.get((session.secret.slice(0, 42) + last) as SessionId)
    const near = store.calls.map(({ args }) => String(args[0]).slice(3))
    assert.equal(new Set(near.map(key => key.slice(0, 8))).size, 64)
  })

  // Strapi: a password change left the refresh tokens of other devices alive.
  it('CVE-2026-22706: a password change ends the sessions and the remember tokens of all devices, with and without a session that stays', async () => {
    for (const stays of [true, false]) {
      const { sessions, user } = await setUp({ rememberFor: '30d' })
      const login = { user: { ...user, passwordVersion: 1 } }
      const devices = await Promise.all(
        times(3).map(async () => {
          const session = await sessions.create(login)
          return { session, token: await sessions.issueRememberToken(session) }
        }),
      )
      const own = stays ? await sessions.logIn(devices[0]!.session, { user: { ...user, passwordVersion: 2 } }) : null
      await sessions.invalidateUser(user.id, { minPasswordVersion: 2, ...(own !== null && { except: own }) })
      for (const { session, token } of devices) {
        assert.equal(await sessions.get(session.secret), null)
        assert.equal(await sessions.redeemRememberToken(token), null)
      }
      const left = (await sessions.list(user.id)).map(({ key }) => key)
      assert.deepEqual(left, own === null ? [] : [own.key])
      await assert.rejects(sessions.create(login), isCode('ERR_SESSION_STALE_LOGIN'))
    }
  })

  // Keycloak: a restart forgot which refresh tokens were spent.
  it('CVE-2026-9802: a spent remember token is a stolen one after a restart too: what was spent is in the store', async () => {
    const { sessions, manager, clock, user, events } = await setUp({ rememberFor: '30d' })
    const spent = await sessions.issueRememberToken(await sessions.create({ user }))
    clock.advance(HOUR)
    const recalled = await sessions.redeemRememberToken(spent)
    assert.ok(recalled !== null && recalled.token !== null)
    assert.notEqual(await sessions.get(recalled.session.secret), null)
    clock.advance(10 * MINUTE)
    await sessions.close()
    const restarted = manager()
    assert.equal(await restarted.redeemRememberToken(spent), null)
    assert.equal(events.filter(({ type }) => type === 'remember-theft').length, 1)
    assert.equal(await restarted.get(recalled.session.secret), null)
    assert.equal(await restarted.redeemRememberToken(recalled.token), null)
  })

  // Symfony: the user in a remember-me cookie was not compared with the stored one.
  it('CVE-2024-51996: a remember token names its user nowhere: halves of two tokens, and names beside one, lead to no session', async () => {
    const { sessions, manager, user, clock } = await setUp({ rememberFor: '30d' })
    const mallory = { id: newUser(), name: 'mallory' }
    const tokenOf = async (id: bigint, name: string) =>
      sessions.issueRememberToken(await sessions.create({ user: { id, name } }))
    const theirs = await tokenOf(user.id, user.name)
    const own = await tokenOf(mallory.id, mallory.name)
    clock.advance(HOUR)
    const named = [`${own}.${user.id}`, `${user.name}.${own}`, `${user.id}:${own}`, own.replace('.', `.${user.id}.`)]
    for (const token of named) assert.equal(await sessions.redeemRememberToken(token), null)
    assert.equal((await manager().redeemRememberToken(own))?.session.user.id, mallory.id)
    const [selector, verifier] = theirs.split('.')
    const [ownSelector, ownVerifier] = own.split('.')
    for (const token of [`${selector}.${ownVerifier}`, `${ownSelector}.${verifier}`])
      assert.equal(await sessions.redeemRememberToken(token), null)
  })
}
