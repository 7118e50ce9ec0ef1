// @ts-check
// The contract as a suite, in any runner: node --test examples/encrypted-store.test.mjs
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { it } from 'node:test'
import { SessionManager } from 'coatcheck'
import { testStore } from 'coatcheck/custom-store/testing'
import { MemoryStore } from 'coatcheck/stores/memory'
import { encryptedStore } from './encrypted-store.mjs'

testStore(it, () => {
  // As two nodes have it: each with a store of its own over one database.
  const inner = new MemoryStore()
  const secrets = [randomBytes(32), randomBytes(32)]
  return [encryptedStore(inner, secrets), encryptedStore(inner, secrets)]
})

const ada = { id: 42n, name: 'ada' }
/** @param {MemoryStore} inner @param {Buffer[]} secrets */
const managerOf = (inner, ...secrets) =>
  new SessionManager({ store: encryptedStore(inner, secrets), initial: () => ({ illness: '' }) })

it('keeps what a session knows from those who read the database', async () => {
  const inner = new MemoryStore()
  const sessions = managerOf(inner, randomBytes(32))
  const session = await sessions.create({ user: ada, data: { illness: 'hay fever' } })
  assert.equal((await sessions.get(session))?.data.illness, 'hay fever')
  const [stored] = await inner.listUser('42', 'session', { now: Date.now() })
  assert.doesNotMatch(stored?.data ?? '', /hay fever/)
  await sessions.close()
})

it('fails on a node with a wrong secret, which ends no session', async () => {
  const inner = new MemoryStore()
  const sessions = managerOf(inner, randomBytes(32))
  const wrong = managerOf(inner, randomBytes(32))
  const { secret } = await sessions.create({ user: ada, data: { illness: 'hay fever' } })
  const failure = { code: 'ERR_SESSION_STORE', status: 503 }
  await assert.rejects(wrong.get(secret), failure)
  await assert.rejects(wrong.list(42n), failure)
  await assert.rejects(wrong.invalidateAll(), failure)
  // A logout by ID looks for the remember token that began the session, and is repeated at a node that can read it.
  await assert.rejects(wrong.destroy(secret), failure)
  assert.equal((await sessions.get(secret))?.data.illness, 'hay fever')
  await sessions.destroy(secret)
  assert.equal(await sessions.get(secret), null)
  await Promise.all([sessions.close(), wrong.close()])
})

it('goes on with a new secret, and ends no session by it', async () => {
  const inner = new MemoryStore()
  const [old, next] = [randomBytes(32), randomBytes(32)]
  const before = managerOf(inner, old)
  const reading = managerOf(inner, old, next)
  const writing = managerOf(inner, next, old)
  const after = managerOf(inner, next)
  const first = await before.create({ user: ada })
  assert.notEqual(await reading.get(first), null)
  // The nodes get each step one after the other: what one writes the other reads.
  const second = await reading.create({ user: ada })
  for (const sessions of [before, writing]) assert.notEqual(await sessions.get(second), null)
  const third = await writing.create({ user: ada })
  assert.notEqual(await reading.get(third), null)
  assert.notEqual(await after.get(third), null)
  // What is written again no longer needs the old one.
  await writing.update(first, { illness: 'none' })
  assert.equal((await after.get(first))?.data.illness, 'none')
  await Promise.all([before, reading, writing, after].map(sessions => sessions.close()))
})

it('takes secrets of 32 bytes alone, and one at least', () => {
  for (const secrets of [[], [randomBytes(16)], [randomBytes(32), randomBytes(33)]])
    assert.throws(() => encryptedStore(new MemoryStore(), secrets), /^TypeError: secrets: expected 32 bytes each$/)
})
