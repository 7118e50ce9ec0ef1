import assert from 'node:assert/strict'
import { type Case, HOUR, MINUTE, rules } from './kit.ts'

/** Whether it succeeds without a turn of the event loop. */
async function isAtOnce(answer: Promise<unknown>): Promise<boolean> {
  let isDone = false
  answer.then(
    () => {
      isDone = true
    },
    () => {},
  )
  for (let hops = 0; hops < 50 && !isDone; hops++) await null
  return isDone
}

export const writing: readonly Case[] = rules({
  async 'finds nothing under a key that was never stored'(kit) {
    assert.equal(await kit.store.read(kit.key(), kit.call), null)
    await kit.isGone(kit.record())
    assert.equal(await kit.store.delete(kit.key(), kit.call), false)
  },
  async 'shows a session until its expiry, to the millisecond'(kit) {
    const record = await kit.put({ userId: kit.user() })
    assert.ok(await kit.isLive(record.key, record.expiresAt - 1))
    assert.equal(await kit.store.read(record.key, { now: record.expiresAt }), null)
    assert.deepEqual(await kit.keys(record.userId!, 'session', record.expiresAt - 1), [record.key])
    assert.deepEqual(await kit.keys(record.userId!, 'session', record.expiresAt), [])
  },
  async 'does not prolong a session by reading or listing it'(kit) {
    const record = await kit.put({ userId: kit.user() })
    await kit.store.read(record.key, { now: kit.now + 20 * MINUTE })
    await kit.store.listUser(record.userId!, 'session', { now: kit.now + 20 * MINUTE })
    await kit.isExactly(record)
  },
  async 'writes data and write ID, counts the version up and leaves the rest of the record alone'(kit) {
    const record = await kit.put({ userId: kit.user(), passwordVersion: 3 })
    const change = kit.change({ seenAt: kit.now + MINUTE, expiresAt: kit.now + 31 * MINUTE })
    assert.equal(await kit.store.update(record.key, 1, change, { now: kit.now + MINUTE }), 'updated')
    await kit.isExactly({ ...record, ...change, version: 2 })
    assert.deepEqual(await kit.keys(record.userId!), [record.key])
  },
  async 'counts versions on, beyond 16 and 32 bits'(kit) {
    for (const version of [40_000, 0xffff_ffff]) {
      const record = await kit.put({ version })
      const change = kit.change()
      assert.equal(await kit.store.update(record.key, version - 0x8000, change, kit.call), 'conflict')
      assert.equal(await kit.store.update(record.key, version, change, kit.call), 'updated')
      await kit.isExactly({ ...record, ...change, version: version + 1 })
    }
  },
  async 'begins no write after its deadline: a call that comes late rejects, and writes nothing'(kit) {
    const userId = kit.user()
    const [record, old] = [await kit.put({ userId }), await kit.put({ userId })]
    const [fresh, next] = [kit.record({ userId }), kit.successor(old)]
    const call = { now: kit.now, deadline: performance.now() - 1 }
    const late = [
      () => kit.store.create(fresh, call),
      () => kit.store.update(record.key, 1, kit.change(), call),
      () => kit.store.touch(record.key, kit.now + 1, kit.now + HOUR, call),
      () => kit.store.replace(old.key, 1, next, {}, call),
      () => kit.store.delete(record.key, call),
      () => kit.store.deleteUser(userId, { minPasswordVersionUntil: kit.now }, call),
    ]
    for (const write of late) {
      const written = write()
      // A store of this process that writes at once has begun nothing late: whoever calls it looks at the time.
      if (await isAtOnce(written)) return
      await assert.rejects(written)
    }
    for (const each of [record, old]) await kit.isExactly(each)
    for (const { key } of [fresh, next]) assert.equal(await kit.store.read(key, kit.call), null)
  },
  async 'answers conflict to an update of another version and changes nothing'(kit) {
    const record = await kit.put()
    const change = kit.change()
    await kit.store.update(record.key, 1, change, kit.call)
    assert.equal(await kit.store.update(record.key, 1, kit.change({ data: '{"late":1}' }), kit.call), 'conflict')
    assert.equal(await kit.store.update(record.key, 3, kit.change({ data: '{"early":1}' }), kit.call), 'conflict')
    await kit.isExactly({ ...record, ...change, version: 2 })
  },
  async 'answers updated again when the same update is repeated, also after a touch, and counts it once'(kit) {
    const record = await kit.put()
    const change = kit.change()
    const repeat = async () => assert.equal(await kit.store.update(record.key, 1, change, kit.call), 'updated')
    await repeat()
    await repeat()
    await kit.isExactly({ ...record, ...change, version: 2 })
    const [seenAt, expiresAt] = [kit.now + MINUTE, kit.now + HOUR]
    await kit.store.touch(record.key, seenAt, expiresAt, kit.call)
    await repeat()
    await kit.isExactly({ ...record, ...change, seenAt, expiresAt, version: 2 })
  },
  async 'answers conflict to a repeated update that another update has followed, and loses nothing'(kit) {
    const record = await kit.put()
    const [first, second] = [kit.change({ data: '1' }), kit.change({ data: '2' })]
    await kit.store.update(record.key, 1, first, kit.call)
    await kit.store.update(record.key, 2, second, kit.call)
    assert.equal(await kit.store.update(record.key, 1, first, kit.call), 'conflict')
    await kit.isExactly({ ...record, ...second, version: 3 })
  },
  async 'answers conflict to an update of another version that has the write ID of the last one'(kit) {
    const record = await kit.put()
    const change = kit.change()
    await kit.store.update(record.key, 1, change, kit.call)
    assert.equal(await kit.store.update(record.key, 3, change, kit.call), 'conflict')
    await kit.isExactly({ ...record, ...change, version: 2 })
  },
  async 'answers gone to an update of a session that was ended, and does not revive it'(kit) {
    const record = await kit.put({ userId: kit.user() })
    await kit.store.delete(record.key, kit.call)
    assert.equal(await kit.store.update(record.key, 1, kit.change(), kit.call), 'gone')
    await kit.isGone(record)
  },
  async 'answers gone to an update of a session that has expired, and does not revive it'(kit) {
    const record = await kit.put()
    const later = record.expiresAt
    const change = kit.change({ seenAt: later, expiresAt: later + HOUR })
    assert.equal(await kit.store.update(record.key, 1, change, { now: later }), 'gone')
    assert.equal(await kit.store.read(record.key, { now: later }), null)
  },
  async 'never lowers seenAt or expiresAt in an update'(kit) {
    const record = await kit.put()
    const change = kit.change({ seenAt: kit.now - HOUR, expiresAt: kit.now - HOUR })
    assert.equal(await kit.store.update(record.key, 1, change, kit.call), 'updated')
    const { seenAt, expiresAt } = record
    await kit.isExactly({ ...record, ...change, seenAt, expiresAt, version: 2 })
  },
  async 'never extends a session beyond its absolute expiry by an update'(kit) {
    const record = await kit.put({ absoluteExpiresAt: kit.now + HOUR })
    await kit.store.update(record.key, 1, kit.change({ expiresAt: kit.now + 2 * HOUR }), kit.call)
    assert.equal((await kit.find(record.key))?.expiresAt, kit.now + HOUR)
    assert.equal(await kit.store.read(record.key, { now: kit.now + HOUR }), null)
  },
  async 'raises seenAt and expiresAt by a touch and changes nothing else'(kit) {
    const record = await kit.put({ userId: kit.user(), data: '{"a":1}' })
    const [seenAt, expiresAt] = [kit.now + MINUTE, kit.now + 31 * MINUTE]
    assert.equal(await kit.store.touch(record.key, seenAt, expiresAt, { now: seenAt }), 'touched')
    await kit.isExactly({ ...record, seenAt, expiresAt })
    assert.ok(await kit.isLive(record.key, expiresAt - 1))
    assert.deepEqual(await kit.keys(record.userId!, 'session', expiresAt - 1), [record.key])
  },
  async 'answers touched to a touch that changes nothing'(kit) {
    const record = await kit.put()
    assert.equal(await kit.store.touch(record.key, record.seenAt, record.expiresAt, kit.call), 'touched')
    assert.equal(await kit.store.touch(record.key, record.seenAt, record.expiresAt, kit.call), 'touched')
    await kit.isExactly(record)
  },
  async 'never lowers seenAt or expiresAt by a touch, each by itself'(kit) {
    const record = await kit.put()
    await kit.store.touch(record.key, kit.now - MINUTE, kit.now + 40 * MINUTE, kit.call)
    await kit.isExactly({ ...record, expiresAt: kit.now + 40 * MINUTE })
    await kit.store.touch(record.key, kit.now + MINUTE, kit.now, kit.call)
    await kit.isExactly({ ...record, seenAt: kit.now + MINUTE, expiresAt: kit.now + 40 * MINUTE })
  },
  async 'never extends a session beyond its absolute expiry by a touch'(kit) {
    const record = await kit.put({ absoluteExpiresAt: kit.now + HOUR })
    assert.equal(await kit.store.touch(record.key, kit.now, kit.now + 9 * HOUR, kit.call), 'touched')
    assert.equal((await kit.find(record.key))?.expiresAt, kit.now + HOUR)
  },
  async 'answers gone to a touch of a session that has expired or was ended, and does not revive it'(kit) {
    const record = await kit.put()
    const later = record.expiresAt
    assert.equal(await kit.store.touch(record.key, later, later + HOUR, { now: later }), 'gone')
    assert.equal(await kit.store.read(record.key, { now: later }), null)
    await kit.store.delete(record.key, kit.call)
    assert.equal(await kit.store.touch(record.key, kit.now, later + HOUR, kit.call), 'gone')
    await kit.isGone(record)
  },
  async 'updates by the version that was read before a touch: a touch does not change it'(kit) {
    const record = await kit.put()
    await kit.store.touch(record.key, kit.now + MINUTE, kit.now + HOUR, kit.call)
    assert.equal(await kit.store.update(record.key, 1, kit.change(), kit.call), 'updated')
    const found = await kit.find(record.key)
    assert.equal(found?.expiresAt, kit.now + HOUR)
    assert.equal(found?.version, 2)
  },
})
