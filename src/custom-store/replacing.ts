import assert from 'node:assert/strict'
import { FORWARD_LIFETIME } from '../contract/store.ts'
import { type Case, CHAIN, forwardEnd, HOUR, MINUTE, newWriteId, rules, same } from './kit.ts'

export const replacing: readonly Case[] = rules({
  async 'ends the old session and makes the new one live in a replace'(kit) {
    const old = await kit.put({ userId: kit.user() })
    const next = kit.successor(old, { data: '{"new":1}' })
    assert.equal(await kit.store.replace(old.key, 1, next, {}, kit.call), 'created')
    await kit.isGone(old)
    await kit.isExactly(next)
    assert.deepEqual(await kit.keys(old.userId!), [next.key])
  },
  async 'leaves nothing under the old key without a forward: ending the old one does not end the new one'(kit) {
    const old = await kit.put({ userId: kit.user() })
    const next = kit.successor(old)
    await kit.store.replace(old.key, 1, next, {}, kit.call)
    assert.equal(await kit.store.read(old.key, kit.call), null)
    assert.equal(await kit.store.delete(old.key, kit.call), false)
    await kit.isExactly(next)
  },
  async 'turns an anonymous session into a login of any user, wherever that user is kept'(kit) {
    for (let number = 0; number < 8; number++) {
      const old = await kit.put()
      const userId = kit.user()
      const next = kit.successor(old, { userId, userName: 'Ada', passwordVersion: 1 })
      assert.equal(await kit.store.replace(old.key, 1, next, {}, kit.call), 'created')
      await kit.isGone(old)
      await kit.isExactly(next)
      assert.deepEqual(await kit.keys(userId), [next.key])
    }
  },
  async "moves a session from one user to another: it leaves the first one's list"(kit) {
    const [ada, max] = [kit.user(), kit.user()]
    const old = await kit.put({ userId: ada })
    const next = kit.successor(old, { userId: max, userName: 'Max' })
    assert.equal(await kit.store.replace(old.key, 1, next, {}, kit.call), 'created')
    assert.deepEqual(await kit.keys(ada), [])
    assert.deepEqual(await kit.keys(max), [next.key])
    assert.equal(await kit.deleteUser(ada), 0)
    await kit.isExactly(next)
  },
  async 'replaces an updated session by its current version'(kit) {
    const old = await kit.put({ userId: kit.user() })
    await kit.store.update(old.key, 1, kit.change(), kit.call)
    const next = kit.successor(old)
    assert.equal(await kit.store.replace(old.key, 2, next, {}, kit.call), 'created')
    await kit.isExactly(next)
  },
  async 'answers conflict to a replace of another version, also to a login from it, and changes nothing'(kit) {
    for (const identity of [{}, { userId: kit.user(), userName: 'Max' }])
      for (const old of [await kit.put({ userId: kit.user() }), await kit.put()]) {
        const change = kit.change()
        await kit.store.update(old.key, 1, change, kit.call)
        const next = kit.successor(old, identity)
        assert.equal(await kit.store.replace(old.key, 1, next, {}, kit.call), 'conflict')
        await kit.isGone(next)
        await kit.isExactly({ ...old, ...change, version: 2 })
      }
  },
  async 'answers gone, and leaves nothing behind, where the old session is absent, expired or ended'(kit) {
    const userId = kit.user()
    const absent = kit.record({ userId })
    const expired = await kit.put({ userId, expiresAt: kit.now })
    const ended = await kit.put({ userId })
    await kit.store.delete(ended.key, kit.call)
    for (const old of [absent, expired, ended])
      for (const identity of [{}, { userId: kit.user(), userName: 'Max' }]) {
        const next = kit.successor(old, { expiresAt: kit.now + HOUR, ...identity })
        assert.equal(await kit.store.replace(old.key, 1, next, {}, kit.call), 'gone')
        await kit.isGone(next)
      }
  },
  async 'answers gone to a second replace of the same session: it has one successor'(kit) {
    const old = await kit.put({ userId: kit.user() })
    const next = await kit.forward(old)
    const second = kit.successor(old)
    assert.equal(await kit.store.replace(old.key, 1, second, {}, kit.call), 'gone')
    assert.deepEqual(await kit.keys(old.userId!), [next.key])
  },
  async 'answers created again when the same replace is repeated'(kit) {
    for (const [userId, identity] of [
      [kit.user(), {}],
      [null, {}],
      [null, { userId: kit.user(), userName: 'Ada' }],
    ] as const) {
      const old = await kit.put({ userId })
      const next = kit.successor(old, identity)
      const options = 'userId' in identity ? {} : { forward: { salt: 's', until: kit.now } }
      for (let time = 0; time < 2; time++)
        assert.equal(await kit.store.replace(old.key, 1, next, options, kit.call), 'created')
      await kit.isExactly(next)
      const left = 'userId' in identity ? null : { movedTo: next.key, salt: 's', until: kit.now }
      same(await kit.store.read(old.key, kit.call), left)
      if (next.userId !== null) assert.deepEqual(await kit.keys(next.userId), [next.key])
    }
  },
  async 'tells a login of another user or another instant from a repeated replace with its key and write ID'(kit) {
    const [ada, max] = kit.neighbours()
    const next = kit.successor(await kit.put({ userId: ada }), { userId: ada })
    await kit.put(next)
    const { key, writeId } = next
    for (const other of [{ userId: max }, { userId: ada, createdAt: kit.now + 1 }]) {
      const old = await kit.put({ userId: other.userId })
      const twin = kit.successor(old, { key, writeId, ...other })
      assert.equal(await kit.store.replace(old.key, 1, twin, {}, kit.call), 'collision')
      await kit.isExactly(old)
      assert.equal(await kit.store.replace(kit.key(other.userId), 1, twin, {}, kit.call), 'gone')
    }
    await kit.isExactly(next)
    assert.equal(await kit.store.replace(kit.key(ada), 1, next, {}, kit.call), 'created')
  },
  async 'answers collision to a replace whose new key is taken, and keeps both sessions as they are'(kit) {
    const userId = kit.user()
    const [old, taken] = [await kit.put({ userId }), await kit.put({ userId })]
    const next = kit.successor(old, { key: taken.key, data: '{"stolen":1}' })
    assert.equal(await kit.store.replace(old.key, 1, next, {}, kit.call), 'collision')
    await kit.isExactly(old)
    await kit.isExactly(taken)
  },
  async 'answers stale-login to a replace below the minimum password version, and the old session stays'(kit) {
    const userId = kit.user()
    await kit.deleteUser(userId, { minPasswordVersion: 5 })
    for (const old of [await kit.put(), await kit.put({ userId, passwordVersion: 5 })])
      for (const passwordVersion of [null, 4]) {
        const next = kit.successor(old, { userId, userName: 'Ada', passwordVersion })
        assert.equal(await kit.store.replace(old.key, 1, next, {}, kit.call), 'stale-login')
        await kit.isGone(next)
        await kit.isExactly(old)
      }
  },
  async 'answers orphan to a replace that gives a session a parent which is gone'(kit) {
    const userId = kit.user()
    const old = await kit.put({ userId })
    const next = kit.successor(old, { parent: kit.key(userId) })
    assert.equal(await kit.store.replace(old.key, 1, next, {}, kit.call), 'orphan')
    await kit.isExactly(old)
    await kit.isGone(next)
  },
  async 'replaces a session of the same parent although the parent is gone: only a new session needs it'(kit) {
    const userId = kit.user()
    const series = await kit.put({ userId, kind: 'remember' })
    const old = await kit.put({ userId, parent: series.key })
    await kit.store.delete(series.key, kit.call)
    const next = await kit.forward(old)
    await kit.isExactly(next)
  },
  async 'decides a replace in the order repeated, gone, conflict, collision, stale login, orphan'(kit) {
    const userId = kit.user()
    const [old, taken] = [await kit.put({ userId }), await kit.put({ userId })]
    await kit.store.update(old.key, 1, kit.change(), kit.call)
    await kit.deleteUser(userId, { minPasswordVersion: 5, exceptKey: old.key })
    await kit.put({ userId, passwordVersion: 5 })
    const holder = await kit.put({ key: taken.key, userId, passwordVersion: 5 })
    const outcome = async (oldKey: string, version: number, over: object) => {
      const next = kit.successor(old, { key: taken.key, passwordVersion: 4, parent: kit.key(userId), ...over })
      return await kit.store.replace(oldKey, version, next, {}, kit.call)
    }
    assert.equal(await outcome(kit.key(userId), 9, { writeId: holder.writeId }), 'created')
    assert.equal(await outcome(kit.key(userId), 9, {}), 'gone')
    assert.equal(await outcome(old.key, 1, {}), 'conflict')
    assert.equal(await outcome(old.key, 2, {}), 'collision')
    const fresh = { key: kit.key(userId), writeId: newWriteId() }
    assert.equal(await outcome(old.key, 2, fresh), 'stale-login')
    assert.equal(await outcome(old.key, 2, { ...fresh, passwordVersion: 5 }), 'orphan')
    assert.equal(await outcome(old.key, 2, { ...fresh, passwordVersion: 5, parent: null }), 'created')
  },
  async 'leaves a forward that read reports with its salt and its until'(kit) {
    const old = await kit.put({ userId: kit.user() })
    const next = await kit.forward(old, kit.now + MINUTE, 'c2FsdC1hbmQtcGVwcGVy')
    await kit.leadsTo(next, old, kit.now + MINUTE, 'c2FsdC1hbmQtcGVwcGVy')
  },
  async 'answers gone to update, touch and replace of a key under which a forward stands'(kit) {
    const old = await kit.put({ userId: kit.user() })
    const next = await kit.forward(old, kit.now + MINUTE)
    await kit.isGone(old)
    assert.equal(await kit.store.replace(old.key, 1, kit.successor(old), {}, kit.call), 'gone')
    await kit.isExactly(next)
    assert.deepEqual(await kit.keys(old.userId!), [next.key])
  },
  async 'keeps a forward for seven minutes after the replace, or after its until where that is later'(kit) {
    const [plain, renewed] = [await kit.put({ userId: kit.user() }), await kit.put()]
    const next = await kit.forward(plain)
    await kit.leadsTo(next, plain, kit.now, '', kit.now + FORWARD_LIFETIME - 1)
    const until = kit.now + 10 * MINUTE
    const after = await kit.forward(renewed, until)
    await kit.leadsTo(after, renewed, until, '', forwardEnd(kit.now, until) - 1)
  },
  async 'ends the successor when the old session is ended through a forward'(kit) {
    for (const userId of [kit.user(), null]) {
      const old = await kit.put({ userId })
      const next = await kit.forward(old)
      assert.equal(await kit.store.delete(old.key, kit.call), true)
      await kit.isGone(next)
      await kit.isGone(old)
      assert.equal(await kit.store.delete(old.key, kit.call), false)
    }
  },
  async 'ends the last successor when the first session is ended through a chain of forwards, of 64 too'(kit) {
    for (const [length, userId] of [
      [3, kit.user()],
      [CHAIN, null],
    ] as const) {
      const chain = await kit.chain(await kit.put({ userId }), length)
      assert.equal(await kit.store.delete(chain[0]!.key, kit.call), true)
      await kit.isGone(chain[0]!)
      for (const { key } of chain) assert.equal(await kit.store.read(key, kit.call), null)
    }
  },
})
