import assert from 'node:assert/strict'
import { type SessionRecord, SWEEP_MARGIN } from '../contract/store.ts'
import { type Case, CHAIN, DAY, forwardEnd, HOUR, MINUTE, rules } from './kit.ts'

export const ending: readonly Case[] = rules({
  async 'ends a session once, and says so'(kit) {
    const userId = kit.user()
    const [record, other] = [await kit.put({ userId }), await kit.put({ userId })]
    assert.equal(await kit.store.delete(record.key, kit.call), true)
    assert.equal(await kit.store.delete(record.key, kit.call), false)
    await kit.isGone(record)
    await kit.isExactly(other)
    assert.deepEqual(await kit.keys(userId), [other.key])
  },
  async 'lists the live sessions of a user exactly, and the series apart from them'(kit) {
    const userId = kit.user()
    assert.deepEqual(await kit.store.listUser(userId, 'session', kit.call), [])
    const first = await kit.put({ userId, data: '{"a":1}', passwordVersion: 2 })
    const second = await kit.put({ userId, userName: 'Countess' })
    const series = await kit.put({ userId, kind: 'remember' })
    await kit.put({ userId, expiresAt: kit.now })
    await kit.put({ userId: kit.user() })
    await kit.put()
    const listed = await kit.store.listUser(userId, 'session', kit.call)
    const byKey = (a: { key: string }, b: { key: string }) => (a.key < b.key ? -1 : 1)
    assert.deepEqual(listed.map(record => ({ ...record })).sort(byKey), [first, second].sort(byKey))
    assert.deepEqual(await kit.keys(userId, 'remember'), [series.key])
  },
  async 'lists the last successor of a session and no forward'(kit) {
    const userId = kit.user()
    const next = await kit.forward(await kit.forward(await kit.put({ userId })))
    assert.deepEqual(await kit.keys(userId), [next.key])
  },
  async 'ends all sessions and series of a user and counts the live sessions'(kit) {
    const userId = kit.user()
    const live = [await kit.put({ userId }), await kit.put({ userId })]
    const series = await kit.put({ userId, kind: 'remember' })
    await kit.put({ userId, expiresAt: kit.now - MINUTE })
    assert.equal(await kit.deleteUser(userId), 2)
    await kit.isGone(...live, series)
    assert.equal(await kit.deleteUser(userId), 0)
  },
  async 'leaves other users and anonymous sessions alone when a user is logged out everywhere'(kit) {
    const [ada, max] = [kit.user(), kit.user()]
    await kit.put({ userId: ada })
    const [other, anonymous] = [await kit.put({ userId: max }), await kit.put()]
    assert.equal(await kit.deleteUser(ada, { minPasswordVersion: 9 }), 1)
    await kit.isExactly(other)
    await kit.isExactly(anonymous)
    assert.deepEqual(await kit.keys(max), [other.key])
    await kit.put({ userId: max })
  },
  async 'ends nothing for a user who has no session'(kit) {
    assert.equal(await kit.deleteUser(kit.user()), 0)
    assert.equal(await kit.deleteUser(kit.user(), { minPasswordVersion: 3, exceptKey: kit.key() }), 0)
  },
  async 'spares the excepted session alone, whatever its password version'(kit) {
    const userId = kit.user()
    const [spared, other] = [await kit.put({ userId, passwordVersion: 1 }), await kit.put({ userId })]
    assert.equal(await kit.deleteUser(userId, { exceptKey: spared.key, minPasswordVersion: 2 }), 1)
    await kit.isExactly(spared)
    await kit.isGone(other)
    assert.deepEqual(await kit.keys(userId), [spared.key])
    assert.equal(await kit.deleteUser(userId), 1)
  },
  async 'spares the successor of the excepted session, however often it was replaced, and no other session'(kit) {
    for (const times of [1, 2, CHAIN]) {
      const userId = kit.user()
      const [old, ...chain] = (await kit.chain(await kit.put({ userId }), times)) as [SessionRecord, ...SessionRecord[]]
      const last = chain.at(-1)!
      const [other, series] = [await kit.put({ userId }), await kit.put({ userId, kind: 'remember' })]
      const replaced = await kit.forward(await kit.put({ userId }))
      assert.equal(await kit.deleteUser(userId, { exceptKey: old.key }), 2)
      await kit.isExactly(last)
      await kit.isGone(other, series, replaced)
      assert.deepEqual(await kit.keys(userId), [last.key])
      assert.equal(await kit.store.delete(old.key, kit.call), true)
      await kit.isGone(last)
    }
  },
  async 'spares no session where the excepted one or its successor was ended'(kit) {
    const userId = kit.user()
    const [old, ended] = [await kit.put({ userId }), await kit.put({ userId })]
    const next = await kit.forward(old)
    await kit.store.delete(next.key, kit.call)
    await kit.store.delete(ended.key, kit.call)
    for (const exceptKey of [old.key, ended.key]) {
      const record = await kit.put({ userId })
      assert.equal(await kit.deleteUser(userId, { exceptKey }), 1)
      await kit.isGone(record)
    }
  },
  async "spares no one's session when the excepted key is another user's or unknown"(kit) {
    const userId = kit.user()
    const other = await kit.put({ userId: kit.user() })
    for (const exceptKey of [other.key, kit.key(userId)]) {
      const record = await kit.put({ userId })
      assert.equal(await kit.deleteUser(userId, { exceptKey }), 1)
      await kit.isGone(record)
    }
    await kit.isExactly(other)
  },
  async 'ends the successors of replaced sessions with the user'(kit) {
    const userId = kit.user()
    const old = await kit.put({ userId })
    const next = await kit.forward(old, kit.now + MINUTE)
    assert.equal(await kit.deleteUser(userId), 1)
    await kit.isGone(next)
    await kit.isGone(old)
  },
  async 'ends a session with its user that lives on only because it was touched or updated'(kit) {
    const userId = kit.user()
    const [touched, updated] = [kit.record({ userId, expiresAt: kit.now + 1000 }), kit.record({ userId })]
    await kit.create(touched)
    await kit.create(updated)
    await kit.store.touch(touched.key, kit.now, kit.now + HOUR, kit.call)
    await kit.store.update(updated.key, 1, kit.change({ expiresAt: kit.now + HOUR }), kit.call)
    const later = kit.now + 40 * MINUTE
    assert.equal(await kit.store.deleteUser(userId, { minPasswordVersionUntil: later }, { now: later }), 2)
    for (const { key } of [touched, updated]) assert.equal(await kit.store.read(key, kit.call), null)
  },
  async 'lets the user log in again after a logout everywhere without a password version'(kit) {
    const userId = kit.user()
    await kit.put({ userId })
    await kit.deleteUser(userId)
    await kit.isExactly(await kit.put({ userId }))
  },
  async 'answers stale-login to a login whose password version is below the minimum or missing'(kit) {
    const userId = kit.user()
    await kit.deleteUser(userId, { minPasswordVersion: 5 })
    for (const kind of ['session', 'remember'] as const)
      for (const passwordVersion of [null, 0, 4]) {
        const stale = kit.record({ userId, kind, passwordVersion })
        assert.equal(await kit.create(stale), 'stale-login')
        await kit.isGone(stale)
      }
    await kit.put({ userId, passwordVersion: 5 })
    await kit.put({ userId, passwordVersion: 6 })
  },
  async 'refuses no login for a minimum password version of 0, and every lower one for the highest'(kit) {
    const [zero, highest] = [kit.user(), kit.user()]
    await kit.deleteUser(zero, { minPasswordVersion: 0 })
    await kit.put({ userId: zero })
    await kit.deleteUser(highest, { minPasswordVersion: 0xffff_ffff })
    const below = kit.record({ userId: highest, passwordVersion: 0xffff_fffe })
    assert.equal(await kit.create(below), 'stale-login')
    await kit.put({ userId: highest, passwordVersion: 0xffff_ffff })
  },
  async 'never lowers a minimum password version that holds'(kit) {
    const userId = kit.user()
    await kit.deleteUser(userId, { minPasswordVersion: 5 })
    await kit.deleteUser(userId, { minPasswordVersion: 3 })
    await kit.deleteUser(userId)
    assert.equal(await kit.create(kit.record({ userId, passwordVersion: 4 })), 'stale-login')
    await kit.deleteUser(userId, { minPasswordVersion: 6 })
    assert.equal(await kit.create(kit.record({ userId, passwordVersion: 5 })), 'stale-login')
  },
  async 'holds a minimum password version until the later of all minPasswordVersionUntil, and no longer'(kit) {
    for (const time of [HOUR, 400 * DAY]) {
      const userId = kit.user()
      const minPasswordVersionUntil = kit.now + time
      await kit.deleteUser(userId, { minPasswordVersion: 5, minPasswordVersionUntil })
      await kit.deleteUser(userId, { minPasswordVersion: 5, minPasswordVersionUntil: kit.now + MINUTE })
      const expiresAt = kit.now + time + HOUR
      const login = kit.record({ userId, passwordVersion: 4, expiresAt, absoluteExpiresAt: expiresAt })
      assert.equal(await kit.store.create(login, { now: minPasswordVersionUntil - 1 }), 'stale-login')
      assert.equal(await kit.store.create(login, { now: minPasswordVersionUntil }), 'created')
    }
  },
  async 'begins anew with the minimum password version after an expired one, also with a lower one'(kit) {
    const userId = kit.user()
    const now = kit.now + HOUR
    await kit.deleteUser(userId, { minPasswordVersion: 5, minPasswordVersionUntil: now })
    const minimum = { minPasswordVersion: 3, minPasswordVersionUntil: now + HOUR }
    await kit.store.deleteUser(userId, minimum, { now })
    for (const [passwordVersion, outcome] of [
      [2, 'stale-login'],
      [3, 'created'],
    ] as const) {
      const login = kit.record({ userId, passwordVersion, expiresAt: now + HOUR })
      assert.equal(await kit.store.create(login, { now }), outcome)
    }
  },
  async 'lets update and touch of the excepted session pass below the minimum password version'(kit) {
    const userId = kit.user()
    const record = await kit.put({ userId, passwordVersion: 1 })
    await kit.deleteUser(userId, { exceptKey: record.key, minPasswordVersion: 5 })
    assert.equal(await kit.store.update(record.key, 1, kit.change(), kit.call), 'updated')
    assert.equal(await kit.store.touch(record.key, kit.now, kit.now + HOUR, kit.call), 'touched')
  },
  async 'sweeps only what expired more than five minutes ago, and at most as much as it is told'(kit) {
    if (kit.store.sweep === undefined) return
    const userId = kit.user()
    const long = { createdAt: kit.now - 3 * HOUR, expiresAt: kit.now - HOUR }
    const dead = [await kit.put({ userId, ...long }), await kit.put({ userId, ...long }), await kit.put(long)]
    const edge = kit.now - SWEEP_MARGIN
    dead.push(await kit.put({ userId, createdAt: long.createdAt, expiresAt: edge - 1000 }))
    const dying = await kit.put({ userId, createdAt: long.createdAt, expiresAt: edge + 1000 })
    const live = await kit.put({ userId })
    for (let removed = 2, calls = 0; removed > 0; calls++) {
      assert.ok(calls < 10_000, 'sweep never comes to an end')
      removed = await kit.store.sweep(2, kit.call)
      assert.ok(removed === 0 || removed === 1 || removed === 2, `sweep answers ${removed}, told 2`)
    }
    // Asked by a clock at which they were alive: only a record that was removed is absent then.
    for (const { key } of dead) assert.equal(await kit.store.read(key, { now: kit.now - 2 * HOUR }), null)
    await kit.isExactly(dying, edge)
    const [old, until] = [await kit.put(), kit.now + MINUTE]
    const next = await kit.forward(old, until)
    await kit.store.sweep(1000, { now: forwardEnd(kit.now, until) - 1 })
    await kit.leadsTo(next, old, until)
    await kit.isExactly(live)
    assert.deepEqual(await kit.keys(userId), [live.key])
  },
})
