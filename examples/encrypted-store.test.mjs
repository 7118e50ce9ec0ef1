// @ts-check
// The contract as a suite, in any runner: node --test examples/encrypted-store.test.mjs
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { it } from 'node:test'
import { SessionManager } from 'coatcheck'
import { testStore } from 'coatcheck/custom-store/testing'
import { MemoryStore } from 'coatcheck/stores/memory'
import { encryptedStore } from './encrypted-store.mjs'

testStore(it, () => encryptedStore(new MemoryStore(), randomBytes(32)))

it('keeps what a session knows from those who read the database', async () => {
  const inner = new MemoryStore()
  const sessions = new SessionManager({
    store: encryptedStore(inner, randomBytes(32)),
    initial: () => ({ illness: '' }),
  })
  const session = await sessions.create({ user: { id: 42n, name: 'ada' }, data: { illness: 'hay fever' } })
  assert.equal((await sessions.get(session))?.data.illness, 'hay fever')
  const [stored] = await inner.listUser('42', 'session', { now: Date.now() })
  assert.doesNotMatch(stored?.data ?? '', /hay fever/)
  await sessions.close()
})
