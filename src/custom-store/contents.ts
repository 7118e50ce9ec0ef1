import assert from 'node:assert/strict'
import { MAX_DATA_BYTES, type SessionRecord } from '../contract/store.ts'
import { type Case, HOUR, type Kit, MINUTE, rules, rulesWith, same, spoil } from './kit.ts'

const TEXTS: readonly string[] = [
  '',
  ' ',
  ' leading and trailing ',
  'null',
  '0',
  '-1',
  'it\'s "quoted" `here` \\ and \\\' there',
  "'; DROP TABLE sessions; --",
  '$1 ? :name @p1 %s %(x)s {{x}} $$',
  Array.from({ length: 31 }, (_, code) => String.fromCharCode(code + 1)).join(''),
  '\u007f\u0080\u009f\u00a0\u2028\u2029\ufeff',
  'Ünïcödé é e\u0301 ß ẞ İ ı',
  '😀👩‍👩‍👧‍👦 𝒳 日本語 עברית',
  '\ufffd\ufffe\uffff',
  'line\nline\r\nline\rline',
  '[1,2]',
  '{"a":{"b":[1,"}"]}}',
  'key=value;key2=value2|a,b:c',
]

const corrupt = async (kit: Kit, over: Partial<SessionRecord> = {}) => {
  const record = await kit.put({ data: '{"secret":"never shown"}', ...over })
  await kit.options.corrupt!(kit.store, record.key)
  return record
}

export const contents: readonly Case[] = [
  ...rules({
    async 'keeps data of any well-formed text without NUL unchanged'(kit) {
      for (const data of TEXTS) {
        const record = await kit.put({ data })
        assert.equal((await kit.find(record.key))?.data, data)
        const changed = `${data}${data}`
        assert.equal(await kit.store.update(record.key, 1, kit.change({ data: changed }), kit.call), 'updated')
        assert.equal((await kit.find(record.key))?.data, changed)
      }
    },
    async 'keeps names of any well-formed text without NUL unchanged, the empty one included'(kit) {
      const userId = kit.user()
      for (const userName of [...TEXTS, 'x'.repeat(256), 'ü'.repeat(256), '😀'.repeat(128)]) {
        const record = await kit.put({ userId, userName })
        await kit.isExactly(record)
        same((await kit.store.listUser(userId, 'session', kit.call))[0], record)
        await kit.store.delete(record.key, kit.call)
      }
    },
    async 'keeps as much data as an application may have, and what the manager adds, wide characters included'(kit) {
      const most = MAX_DATA_BYTES + 4096
      for (const data of ['x'.repeat(most), '😀'.repeat(most / 4), `"${'\\u0001"'.repeat(10_000)}`]) {
        const record = await kit.put({ data })
        assert.equal((await kit.find(record.key))?.data === data, true)
      }
    },
    async 'tells an absent password version from 0, and keeps the highest'(kit) {
      for (const passwordVersion of [null, 0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff])
        await kit.isExactly(await kit.put({ userId: kit.user(), passwordVersion }))
    },
    async 'keeps write IDs of 8 and of 32 characters'(kit) {
      for (const writeId of [`a_-${kit.key().slice(0, 5)}`, kit.key().slice(0, 32)]) {
        const record = await kit.put({ writeId })
        await kit.isExactly(record)
        assert.equal(await kit.create(record), 'created')
      }
    },
    async 'keeps instants to the millisecond, from the epoch to the last one there is'(kit) {
      const end = 8_640_000_000_000_000
      await kit.isExactly(await kit.put({ createdAt: 0, seenAt: 0, userId: kit.user() }))
      await kit.isExactly(await kit.put({ absoluteExpiresAt: end, userId: kit.user() }))
      await kit.isExactly(await kit.put({ expiresAt: kit.now + HOUR + 1, absoluteExpiresAt: kit.now + HOUR + 1 }))
    },
    async 'is not changed by a caller who changes the objects that it passed'(kit) {
      const record = kit.record({ userId: kit.user() })
      const passed = { ...record }
      await kit.create(passed)
      spoil(passed)
      await kit.isExactly(record)
      const change = kit.change()
      const passedChange = { ...change }
      await kit.store.update(record.key, 1, passedChange, kit.call)
      spoil(passedChange)
      const updated = { ...record, ...change, version: 2 }
      await kit.isExactly(updated)
      const next = kit.successor(updated)
      const passedNext = { ...next }
      const forward = { salt: 'salt', until: kit.now + MINUTE }
      await kit.store.replace(record.key, 2, passedNext, { forward }, kit.call)
      spoil(passedNext)
      spoil(forward)
      await kit.isExactly(next)
      await kit.leadsTo(next, record, kit.now + MINUTE, 'salt')
    },
    async 'is not changed by a caller who changes the objects that it got'(kit) {
      const record = await kit.put({ userId: kit.user() })
      spoil((await kit.find(record.key))!)
      await kit.isExactly(record)
      const listed = await kit.store.listUser(record.userId!, 'session', kit.call)
      spoil(listed[0]!)
      spoil(listed)
      await kit.isExactly(record)
      assert.deepEqual(await kit.keys(record.userId!), [record.key])
      const next = await kit.forward(record)
      spoil((await kit.store.read(record.key, kit.call))!)
      await kit.leadsTo(next, record)
    },
    async 'does not change what a caller got earlier'(kit) {
      const record = await kit.put({ userId: kit.user() })
      const before = await kit.find(record.key)
      const [listed] = await kit.store.listUser(record.userId!, 'session', kit.call)
      await kit.store.update(record.key, 1, kit.change(), kit.call)
      await kit.store.touch(record.key, kit.now + MINUTE, kit.now + HOUR, kit.call)
      same(before, record)
      same(listed, record)
    },
  }),
  ...rulesWith('corrupt', {
    async 'reports a corrupted record once, without its content, and removes it'(kit) {
      for (const userId of [null, kit.user()]) {
        const record = await corrupt(kit, { userId })
        const found = await kit.store.read(record.key, kit.call)
        assert.ok(found !== null && 'corrupt' in found, 'the record is damaged, but read does not say so')
        assert.equal(typeof found.corrupt, 'string')
        assert.ok(!found.corrupt.includes('never shown'), 'the report contains the data')
        assert.equal(await kit.store.read(record.key, kit.call), null)
      }
    },
    async 'leaves corrupted records out of the list'(kit) {
      const userId = kit.user()
      const sound = await kit.put({ userId })
      await corrupt(kit, { userId })
      assert.deepEqual(await kit.keys(userId), [sound.key])
    },
    async 'ends a session and a user although records are corrupted'(kit) {
      const userId = kit.user()
      const sound = await kit.put({ userId })
      const first = await corrupt(kit, { userId })
      const second = await corrupt(kit, { userId })
      await kit.store.delete(first.key, kit.call)
      await kit.deleteUser(userId, { minPasswordVersion: 1 })
      await kit.noneLives([sound, first, second])
      assert.deepEqual(await kit.keys(userId), [])
      await kit.put({ userId, passwordVersion: 1 })
    },
  }),
]
