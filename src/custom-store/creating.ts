import assert from 'node:assert/strict'
import { type Case, HOUR, MINUTE, newWriteId, rules, same } from './kit.ts'

export const creating: readonly Case[] = rules({
  async 'reads back a login session exactly as it was created'(kit) {
    const record = await kit.put({ userId: kit.user(), passwordVersion: 7, data: '{"cart":["a"]}' })
    await kit.isExactly(record)
  },
  async 'reads back an anonymous session exactly as it was created'(kit) {
    await kit.isExactly(await kit.put())
  },
  async 'reads back a remember-me series exactly as it was created'(kit) {
    const record = await kit.put({ userId: kit.user(), kind: 'remember', absoluteExpiresAt: kit.now + 9000 * HOUR })
    await kit.isExactly(record)
  },
  async 'accepts a session that has already expired and does not show it'(kit) {
    const userId = kit.user()
    const record = await kit.put({ userId, expiresAt: kit.now - MINUTE })
    assert.equal(await kit.store.read(record.key, { now: kit.now }), null)
    assert.deepEqual(await kit.keys(userId), [])
  },
  async 'answers created again when the same create is repeated, and keeps one session'(kit) {
    const record = await kit.put({ userId: kit.user() })
    assert.equal((await kit.create(record)).outcome, 'created')
    assert.deepEqual(await kit.keys(record.userId!), [record.key])
    await kit.isExactly(record)
  },
  async 'answers created to a repeated create although the minimum password version has risen or the limit is reached meanwhile'(
    kit,
  ) {
    const record = await kit.put({ userId: kit.user() })
    await kit.deleteUser(record.userId!, { minPasswordVersion: 5, exceptKey: record.key })
    const options = { limit: { max: 1, onLimit: 'refuse' } } as const
    assert.equal((await kit.store.create(record, options, { now: kit.now })).outcome, 'created')
    await kit.isExactly(record)
  },
  async 'answers collision where the key is taken, and leaves the session there alone'(kit) {
    const record = await kit.put({ data: '{"mine":true}' })
    const other = kit.record({ key: record.key, data: '{"yours":true}' })
    assert.deepEqual(await kit.create(other), { outcome: 'collision', ended: [] })
    await kit.isExactly(record)
  },
  async 'tells a session of another user or another instant from a repetition, though key and write ID are the same'(
    kit,
  ) {
    const [ada, max] = kit.neighbours()
    const record = await kit.put({ userId: ada })
    const { key, writeId } = record
    const others = [{ userId: max }, { userId: null }, { userId: ada, createdAt: kit.now + 1 }]
    for (const other of others)
      assert.deepEqual(await kit.create(kit.record({ key, writeId, ...other })), { outcome: 'collision', ended: [] })
    await kit.isExactly(record)
    const anonymous = await kit.put({ key: kit.key(ada) })
    const login = kit.record({ key: anonymous.key, writeId: anonymous.writeId, userId: ada })
    assert.equal((await kit.create(login)).outcome, 'collision')
    await kit.isExactly(anonymous)
    assert.equal((await kit.create(record)).outcome, 'created')
  },
  async 'answers collision where a forward stands under the key, and leaves the forward alone'(kit) {
    const record = await kit.put({ userId: kit.user() })
    const next = await kit.forward(record)
    const other = kit.record({ key: record.key, userId: record.userId })
    assert.equal((await kit.create(other)).outcome, 'collision')
    same(await kit.store.read(record.key, { now: kit.now }), { movedTo: next.key, salt: '', until: kit.now })
  },
  async 'answers orphan where the parent was never stored, and writes nothing'(kit) {
    const userId = kit.user()
    const child = kit.record({ userId, parent: kit.key(userId) })
    assert.deepEqual(await kit.create(child), { outcome: 'orphan', ended: [] })
    await kit.isGone(child)
  },
  async 'takes any live record for a parent: a series is created from the session that asked for it'(kit) {
    const userId = kit.user()
    const session = await kit.put({ userId })
    assert.equal((await kit.create(kit.record({ userId, kind: 'remember', parent: session.key }))).outcome, 'created')
    await kit.store.delete(session.key, { now: kit.now })
    const late = kit.record({ userId, kind: 'remember', parent: session.key })
    assert.equal((await kit.create(late)).outcome, 'orphan')
  },
  async 'answers orphan where the parent has expired, was ended or has another key'(kit) {
    const userId = kit.user()
    const expired = await kit.put({ userId, kind: 'remember', expiresAt: kit.now })
    assert.equal((await kit.create(kit.record({ userId, parent: expired.key }))).outcome, 'orphan')
    const ended = await kit.put({ userId, kind: 'remember' })
    await kit.store.delete(ended.key, { now: kit.now })
    assert.equal((await kit.create(kit.record({ userId, parent: ended.key }))).outcome, 'orphan')
    const old = await kit.put({ userId })
    const { key } = await kit.forward(old)
    assert.equal((await kit.create(kit.record({ userId, kind: 'remember', parent: old.key }))).outcome, 'orphan')
    assert.deepEqual(await kit.keys(userId), [key])
    assert.deepEqual(await kit.keys(userId, 'remember'), [])
  },
  async 'creates a session whose parent is alive, and keeps the parent in the record'(kit) {
    const userId = kit.user()
    const series = await kit.put({ userId, kind: 'remember' })
    await kit.isExactly(await kit.put({ userId, parent: series.key }))
  },
  async 'refuses the session beyond the limit and writes nothing'(kit) {
    const userId = kit.user()
    const [one, two] = [await kit.put({ userId }), await kit.put({ userId })]
    const third = kit.record({ userId })
    const options = { limit: { max: 2, onLimit: 'refuse' } } as const
    assert.deepEqual(await kit.store.create(third, options, { now: kit.now }), { outcome: 'limit', ended: [] })
    await kit.isGone(third)
    assert.deepEqual(await kit.keys(userId), [one.key, two.key].sort())
  },
  async 'ends the sessions with the smallest createdAt beyond the limit and names them'(kit) {
    const userId = kit.user()
    const young = await kit.put({ userId, createdAt: kit.now - 1 * MINUTE })
    const oldest = await kit.put({ userId, createdAt: kit.now - 9 * MINUTE })
    const old = await kit.put({ userId, createdAt: kit.now - 5 * MINUTE })
    const record = kit.record({ userId })
    const result = await kit.store.create(record, { limit: { max: 2, onLimit: 'end-oldest' } }, { now: kit.now })
    assert.equal(result.outcome, 'created')
    assert.deepEqual([...result.ended].sort(), [oldest.key, old.key].sort())
    await kit.isGone(oldest)
    await kit.isGone(old)
    assert.deepEqual(await kit.keys(userId), [young.key, record.key].sort())
  },
  async 'ends no session for a limit that leaves room'(kit) {
    const userId = kit.user()
    const others = [await kit.put({ userId }), await kit.put({ userId })]
    const record = kit.record({ userId })
    const options = { limit: { max: 4, onLimit: 'end-oldest' } } as const
    assert.deepEqual(await kit.store.create(record, options, { now: kit.now }), { outcome: 'created', ended: [] })
    assert.deepEqual(await kit.keys(userId), [...others, record].map(({ key }) => key).sort())
  },
  async 'obeys no limit for an anonymous session and for a series'(kit) {
    const userId = kit.user()
    const session = await kit.put({ userId })
    await kit.put()
    for (const onLimit of ['refuse', 'end-oldest'] as const)
      for (const record of [kit.record(), kit.record({ userId, kind: 'remember' })]) {
        const options = { limit: { max: 1, onLimit } }
        assert.deepEqual(await kit.store.create(record, options, { now: kit.now }), { outcome: 'created', ended: [] })
      }
    await kit.isExactly(session)
  },
  async 'never ends the new session for the limit, not even where its createdAt is the smallest'(kit) {
    const userId = kit.user()
    const other = await kit.put({ userId })
    const record = kit.record({ userId, createdAt: kit.now - HOUR })
    const result = await kit.store.create(record, { limit: { max: 1, onLimit: 'end-oldest' } }, { now: kit.now })
    assert.deepEqual(result, { outcome: 'created', ended: [other.key] })
    assert.deepEqual(await kit.keys(userId), [record.key])
  },
  async "counts only live sessions of the same user for the limit: no series, no expired ones, no one else's"(kit) {
    const userId = kit.user()
    await kit.put({ userId, kind: 'remember' })
    await kit.put({ userId, expiresAt: kit.now })
    await kit.put({ userId: kit.user() })
    await kit.put()
    const options = { limit: { max: 1, onLimit: 'refuse' } } as const
    assert.equal((await kit.store.create(kit.record({ userId }), options, { now: kit.now })).outcome, 'created')
    assert.equal((await kit.store.create(kit.record({ userId }), options, { now: kit.now })).outcome, 'limit')
  },
  async 'counts a session for the limit that lives on because it was touched'(kit) {
    const userId = kit.user()
    const record = await kit.put({ userId, expiresAt: kit.now + MINUTE })
    await kit.store.touch(record.key, kit.now, kit.now + HOUR, { now: kit.now })
    const options = { now: kit.now + 2 * MINUTE, limit: { max: 1, onLimit: 'refuse' } } as const
    assert.equal((await kit.store.create(kit.record({ userId }), options, { now: kit.now })).outcome, 'limit')
  },
  async 'ends no further session when a create that ended the oldest is repeated'(kit) {
    const userId = kit.user()
    const kept = await kit.put({ userId, createdAt: kit.now - MINUTE })
    await kit.put({ userId, createdAt: kit.now - 2 * MINUTE })
    const record = kit.record({ userId })
    const options = { limit: { max: 2, onLimit: 'end-oldest' } } as const
    await kit.store.create(record, options, { now: kit.now })
    assert.equal((await kit.store.create(record, options, { now: kit.now })).outcome, 'created')
    assert.deepEqual(await kit.keys(userId), [kept.key, record.key].sort())
  },
  async 'decides in the order collision, stale login, orphan, limit'(kit) {
    const userId = kit.user()
    const taken = await kit.put({ userId })
    await kit.deleteUser(userId, { minPasswordVersion: 5, exceptKey: taken.key })
    const options = { limit: { max: 1, onLimit: 'refuse' } } as const
    const all = kit.record({ key: taken.key, userId, passwordVersion: 4, parent: kit.key(userId) })
    assert.equal((await kit.store.create(all, options, { now: kit.now })).outcome, 'collision')
    const stale = { ...all, key: kit.key(userId), writeId: newWriteId() }
    assert.equal((await kit.store.create(stale, options, { now: kit.now })).outcome, 'stale-login')
    const orphan = { ...stale, passwordVersion: 5 }
    assert.equal((await kit.store.create(orphan, options, { now: kit.now })).outcome, 'orphan')
    assert.equal((await kit.store.create({ ...orphan, parent: null }, options, { now: kit.now })).outcome, 'limit')
  },
})
