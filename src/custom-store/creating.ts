import assert from 'node:assert/strict'
import { type Case, HOUR, MINUTE, newWriteId, rules } from './kit.ts'

export const creating: readonly Case[] = rules({
  async 'reads back a session of a user or a visitor, and a remember-me series, exactly as it was created'(kit) {
    const userId = kit.user()
    await kit.isExactly(await kit.put({ userId, passwordVersion: 7, data: '{"cart":["a"]}' }))
    await kit.isExactly(await kit.put())
    await kit.isExactly(await kit.put({ userId, kind: 'remember', absoluteExpiresAt: kit.now + 9000 * HOUR }))
  },
  async 'accepts a session that has already expired and does not show it'(kit) {
    const userId = kit.user()
    const record = await kit.put({ userId, expiresAt: kit.now - MINUTE })
    assert.equal(await kit.store.read(record.key, kit.call), null)
    assert.deepEqual(await kit.keys(userId), [])
  },
  async 'answers created again when the same create is repeated, and keeps one session'(kit) {
    const record = await kit.put({ userId: kit.user() })
    assert.equal(await kit.create(record), 'created')
    assert.deepEqual(await kit.keys(record.userId!), [record.key])
    await kit.isExactly(record)
  },
  async 'answers created to a repeated create although the minimum password version has risen meanwhile'(kit) {
    const record = await kit.put({ userId: kit.user() })
    await kit.deleteUser(record.userId!, { minPasswordVersion: 5, exceptKey: record.key })
    assert.equal(await kit.create(record), 'created')
    await kit.isExactly(record)
  },
  async 'answers collision where the key is taken, and leaves the session there alone'(kit) {
    const record = await kit.put({ data: '{"mine":true}' })
    const other = kit.record({ key: record.key, data: '{"yours":true}' })
    assert.equal(await kit.create(other), 'collision')
    await kit.isExactly(record)
  },
  async 'tells a session of another user or another instant from a repetition with its key and write ID'(kit) {
    const [ada, max] = kit.neighbours()
    const record = await kit.put({ userId: ada })
    const { key, writeId } = record
    const others = [{ userId: max }, { userId: null }, { userId: ada, createdAt: kit.now + 1 }]
    for (const other of others) assert.equal(await kit.create(kit.record({ key, writeId, ...other })), 'collision')
    await kit.isExactly(record)
    const anonymous = await kit.put({ key: kit.key(ada) })
    const login = kit.record({ key: anonymous.key, writeId: anonymous.writeId, userId: ada })
    assert.equal(await kit.create(login), 'collision')
    await kit.isExactly(anonymous)
    assert.equal(await kit.create(record), 'created')
  },
  async 'answers collision where a forward stands under the key, and leaves the forward alone'(kit) {
    const record = await kit.put({ userId: kit.user() })
    const next = await kit.forward(record)
    const other = kit.record({ key: record.key, userId: record.userId })
    assert.equal(await kit.create(other), 'collision')
    await kit.leadsTo(next, record)
  },
  async 'takes any live record for a parent: a series is created from the session that asked for it'(kit) {
    const userId = kit.user()
    const session = await kit.put({ userId })
    assert.equal(await kit.create(kit.record({ userId, kind: 'remember', parent: session.key })), 'created')
    await kit.store.delete(session.key, kit.call)
    const late = kit.record({ userId, kind: 'remember', parent: session.key })
    assert.equal(await kit.create(late), 'orphan')
  },
  async 'answers orphan where the parent was never stored, has expired, has ended or moved on, and writes nothing'(
    kit,
  ) {
    const userId = kit.user()
    const expired = await kit.put({ userId, kind: 'remember', expiresAt: kit.now })
    const ended = await kit.put({ userId, kind: 'remember' })
    await kit.store.delete(ended.key, kit.call)
    const old = await kit.put({ userId })
    await kit.forward(old)
    for (const parent of [kit.key(userId), expired.key, ended.key, old.key])
      for (const kind of ['session', 'remember'] as const) {
        const child = kit.record({ userId, kind, parent })
        assert.equal(await kit.create(child), 'orphan')
        await kit.isGone(child)
      }
  },
  async 'creates a session whose parent is alive, and keeps the parent in the record'(kit) {
    const userId = kit.user()
    const series = await kit.put({ userId, kind: 'remember' })
    await kit.isExactly(await kit.put({ userId, parent: series.key }))
  },
  async 'decides in the order collision, stale login, orphan'(kit) {
    const userId = kit.user()
    const taken = await kit.put({ userId })
    await kit.deleteUser(userId, { minPasswordVersion: 5, exceptKey: taken.key })
    const all = kit.record({ key: taken.key, userId, passwordVersion: 4, parent: kit.key(userId) })
    assert.equal(await kit.store.create(all, kit.call), 'collision')
    const stale = { ...all, key: kit.key(userId), writeId: newWriteId() }
    assert.equal(await kit.store.create(stale, kit.call), 'stale-login')
    const orphan = { ...stale, passwordVersion: 5 }
    assert.equal(await kit.store.create(orphan, kit.call), 'orphan')
    assert.equal(await kit.store.create({ ...orphan, parent: null }, kit.call), 'created')
  },
})
