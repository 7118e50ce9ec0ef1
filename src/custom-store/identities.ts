import assert from 'node:assert/strict'
import { type Case, HOUR, MINUTE, rules, rulesWith } from './kit.ts'

/** Where 64-bit integers are confused: by doubles, by signed columns, by 0 as "no user". */
export const BOUNDARY_USER_IDS: readonly string[] = [
  '0',
  '1',
  '9007199254740991', // 2^53 - 1
  '9007199254740993', // 2^53 + 1
  '9223372036854775807', // 2^63 - 1
  '9223372036854775808', // 2^63
  '18446744073709551614', // 2^64 - 2
  '18446744073709551615', // 2^64 - 1
]

const random = (length: number) => Array.from({ length }, () => Math.floor(Math.random() * 36).toString(36)).join('')

/** No keys: a store finds nothing under them. */
export const ODD_KEYS: readonly string[] = [
  '',
  ' ',
  'x',
  '%',
  '*',
  '\\',
  '{}',
  '"; --',
  '😀',
  '__proto__',
  "' OR '1'='1",
  '\n\r\t\u0001',
  'k'.repeat(1000),
  'A'.repeat(45),
  'A'.repeat(47),
  'ä'.repeat(46),
  `${'A'.repeat(45)}\n`,
]

/** Pairs that sloppy comparisons take for equal; fresh at each call. */
function confusable(): string[] {
  const base = random(20)
  return [
    base,
    base.toUpperCase(),
    `${base}x`,
    base.slice(1),
    `${base}%`,
    `${base.slice(0, -1)}_`,
    `${base}é`,
    `${base}e\u0301`,
    `${base}'; DROP TABLE sessions; --`,
    `${base}"\\`,
    `${base}:{a}*?[b]`,
    `${base}😀`,
    `${base}\t42`,
    `0${base}`,
    `${base}${'y'.repeat(180)}`,
    `${base}${'y'.repeat(179)}z`,
    `${base}${'😀'.repeat(90)}`,
    `${base}${'😀'.repeat(89)}😁`,
  ]
}

const BOUNDARY: readonly Case[] = BOUNDARY_USER_IDS.flatMap(userId =>
  rules({
    async [`keeps the sessions of user ${userId} apart from every other user's`](kit) {
      await kit.deleteUser(userId)
      const record = await kit.put({ userId, passwordVersion: 0xffff_ffff })
      await kit.isExactly(record)
      assert.ok((await kit.keys(userId)).includes(record.key))
      for (const other of BOUNDARY_USER_IDS)
        if (other !== userId) assert.ok(!(await kit.keys(other)).includes(record.key), `user ${other} has it`)
      assert.ok((await kit.deleteUser(userId)) >= 1)
      await kit.isGone(record)
    },
  }),
)

export const identities: readonly Case[] = [
  ...BOUNDARY,
  ...rules({
    async 'logs out one user of a pair of neighbouring 64-bit user IDs and refuses the old password of that one only'(
      kit,
    ) {
      // Neighbours that a double takes for one, and two that differ in the sign bit of 64.
      for (const bit of [1n, 1n << 63n]) {
        const high = (1n << 63n) | BigInt(kit.user())
        const [ada, max] = [high.toString(), (high ^ bit).toString()]
        const [mine, other] = [await kit.put({ userId: ada }), await kit.put({ userId: max })]
        assert.equal(await kit.deleteUser(ada, { minPasswordVersion: 3 }), 1)
        await kit.isGone(mine)
        await kit.isExactly(other)
        assert.deepEqual(await kit.keys(max), [other.key])
        assert.equal(await kit.create(kit.record({ userId: ada })), 'stale-login')
        await kit.put({ userId: max })
        await kit.deleteUser(max)
      }
    },
  }),
  ...rulesWith('textUserIds', {
    async 'keeps text user IDs apart that differ in case, accent, length, wildcards or quotes'(kit) {
      const userIds = confusable()
      const records = await Promise.all(userIds.map(userId => kit.put({ userId })))
      for (const [index, userId] of userIds.entries()) {
        await kit.isExactly(records[index]!)
        assert.deepEqual(await kit.keys(userId), [records[index]!.key], JSON.stringify(userId))
      }
      for (const [index, userId] of userIds.entries()) {
        assert.equal(await kit.deleteUser(userId, { minPasswordVersion: 2 }), 1, JSON.stringify(userId))
        await kit.isGone(records[index]!)
        for (const other of records.slice(index + 1))
          assert.ok(await kit.isLive(other.key), JSON.stringify(other.userId))
      }
      assert.equal(await kit.create(kit.record({ userId: userIds[0]! })), 'stale-login')
    },
    async 'takes the names of object properties for ordinary user IDs'(kit) {
      for (const userId of ['__proto__', 'constructor', 'hasOwnProperty', 'toString', 'null', 'undefined']) {
        await kit.deleteUser(userId)
        const record = await kit.put({ userId, passwordVersion: 0xffff_ffff })
        assert.deepEqual(await kit.keys(userId), [record.key])
        assert.equal(await kit.deleteUser(userId), 1)
      }
    },
  }),
  ...rules({
    async 'puts the sessions of one user on one shard, in 3 characters of an ID'(kit) {
      if (kit.store.shard === undefined) return
      for (const userId of [...BOUNDARY_USER_IDS, kit.user()]) {
        const shard = kit.store.shard(userId)
        assert.match(shard, /^[A-Za-z0-9_-]{3}$/)
        assert.equal(kit.store.shard(userId), shard)
      }
    },
    async 'tells keys apart that differ in one character, in case or in a wildcard'(kit) {
      const key = `${kit.key().slice(0, 40)}aB_-0z`
      const record = await kit.put({ key })
      const others = [
        `${key.slice(0, 40)}ab_-0z`,
        `${key.slice(0, 40)}aBx-0z`,
        `${key.slice(0, 45)}Z`,
        `${key.slice(0, 45)}_`,
        `${key.slice(0, 3)}${'_'.repeat(43)}`,
        key.slice(0, 45),
        `${key}x`,
      ]
      for (const other of others) {
        assert.equal(await kit.store.read(other, kit.call), null, other)
        assert.equal(await kit.store.touch(other, kit.now, kit.now + HOUR, kit.call), 'gone', other)
        assert.equal(await kit.store.update(other, 1, kit.change(), kit.call), 'gone', other)
        assert.equal(await kit.store.delete(other, kit.call), false, other)
      }
      const twin = await kit.put({ key: others[0]! })
      await kit.isExactly(record)
      await kit.isExactly(twin)
    },
    async 'finds nothing under malformed keys and still works afterwards'(kit) {
      const record = await kit.put({ userId: kit.user() })
      for (const key of ODD_KEYS) {
        const told = JSON.stringify(key)
        assert.equal(await kit.store.read(key, kit.call), null, told)
        assert.equal(await kit.store.delete(key, kit.call), false, told)
        assert.equal(await kit.store.touch(key, kit.now, kit.now + HOUR, kit.call), 'gone', told)
        assert.equal(await kit.store.update(key, 1, kit.change(), kit.call), 'gone', told)
      }
      await kit.isExactly(record)
    },
    async 'does not end the sessions of other nodes when the clock of one is an hour ahead'(kit) {
      const userId = kit.user()
      const record = await kit.put({ userId })
      const ahead = kit.now + HOUR
      assert.equal(await kit.store.read(record.key, { now: ahead }), null)
      assert.deepEqual(await kit.keys(userId, 'session', ahead), [])
      assert.equal(await kit.store.touch(record.key, ahead, ahead + HOUR, { now: ahead }), 'gone')
      assert.equal(await kit.store.update(record.key, 1, kit.change(), { now: ahead }), 'gone')
      const fresh = kit.record({ userId, createdAt: ahead, seenAt: ahead, expiresAt: ahead + 30 * MINUTE })
      assert.equal(await kit.store.create(fresh, { now: ahead }), 'created')
      await kit.isExactly(record)
      assert.deepEqual(await kit.keys(userId), [record.key, fresh.key].sort())
    },
    async 'keeps the session of a node whose clock is an hour behind alive for that node'(kit) {
      const behind = kit.now - HOUR
      const record = kit.record({
        userId: kit.user(),
        createdAt: behind,
        seenAt: behind,
        expiresAt: behind + 30 * MINUTE,
      })
      assert.equal(await kit.store.create(record, { now: behind }), 'created')
      assert.equal(await kit.store.read(record.key, kit.call), null)
      await kit.isExactly(record, behind + MINUTE)
      assert.deepEqual(await kit.keys(record.userId!, 'session', behind), [record.key])
      const [seenAt, expiresAt] = [behind + 10 * MINUTE, behind + 40 * MINUTE]
      assert.equal(await kit.store.touch(record.key, seenAt, expiresAt, { now: seenAt }), 'touched')
      await kit.isExactly({ ...record, seenAt, expiresAt }, seenAt)
    },
    async 'does not shorten or extend a session when a node whose clock is an hour behind writes to it'(kit) {
      const record = await kit.put()
      const behind = kit.now - HOUR
      assert.equal(await kit.store.touch(record.key, behind, behind + 30 * MINUTE, { now: behind }), 'touched')
      await kit.isExactly(record)
      const change = kit.change({ seenAt: behind, expiresAt: behind + 30 * MINUTE })
      assert.equal(await kit.store.update(record.key, 1, change, { now: behind }), 'updated')
      const { seenAt, expiresAt } = record
      await kit.isExactly({ ...record, ...change, seenAt, expiresAt, version: 2 })
    },
    async 'logs a user out everywhere from a node whose clock is an hour wrong'(kit) {
      for (const wrong of [-HOUR, HOUR]) {
        const userId = kit.user()
        const there = kit.now + wrong
        const ours = await kit.put({ userId })
        const theirs = kit.record({ userId, createdAt: there, seenAt: there, expiresAt: there + 30 * MINUTE })
        await kit.store.create(theirs, { now: there })
        await kit.store.deleteUser(userId, { minPasswordVersionUntil: there }, { now: there })
        for (const { key } of [ours, theirs])
          for (const now of [kit.now, there]) assert.equal(await kit.store.read(key, { now }), null)
      }
    },
  }),
]
