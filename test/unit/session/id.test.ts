import { createHash, createHmac } from 'node:crypto'
import { MemoryStore } from 'coatcheck/stores/memory'
import { afterEach, expect, it, vi } from 'vitest'
import { deriveId, isId, keyOf, newId } from '../../../src/session/id.ts'

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

afterEach(() => {
  vi.doUnmock('node:crypto')
  vi.resetModules()
})

/** The module anew, where node:crypto has these in place of its own. */
async function loadedWith(changes: (own: typeof import('node:crypto')) => object) {
  vi.resetModules()
  vi.doMock('node:crypto', async original => {
    const own = await original<typeof import('node:crypto')>()
    return { ...own, ...changes(own) }
  })
  return import('../../../src/session/id.ts')
}

it('text of another length, or with a byte of another alphabet at any place, is no ID', () => {
  for (let length = 0; length <= 100; length += 1)
    expect([length, isId('x'.repeat(length))]).toEqual([length, length === 43])
  const good = newId()
  for (let at = 0; at < 43; at += 1)
    for (let byte = 0; byte < 256; byte += 1) {
      const character = String.fromCharCode(byte)
      const isAllowed = ALPHABET.includes(character)
      if (isId(good.slice(0, at) + character + good.slice(at + 1)) !== isAllowed)
        expect.unreachable(`byte ${byte} at ${at}`)
    }
})

it('a key is the plain SHA-256 of the ID, so that an operator can find a session by hand', () => {
  const id = newId()
  expect(keyOf(id, '')).toBe(id.slice(0, 3) + createHash('sha256').update(id).digest('base64url'))
})

it('a key is the same on a Node.js that has no crypto.hash, before 20.12', async () => {
  const older = await loadedWith(() => ({ hash: undefined }))
  const id = newId()
  expect(older.keyOf(id, '')).toBe(keyOf(id, ''))
})

it('20,000 IDs differ, and every character is used in every random place', () => {
  const ids = Array.from({ length: 20_000 }, () => newId())
  expect(new Set(ids).size).toBe(ids.length)
  for (let at = 0; at < 43; at += 1) expect(new Set(ids.map(id => id[at])).size).toBe(64)
})

it('versions that run side by side agree on the ID that a secret and a salt lead to', () => {
  const hmac = createHmac('sha256', 's'.repeat(43))
    .update(`rotate\0${'t'.repeat(16)}`)
    .digest('base64url')
  expect(deriveId('abc', 's'.repeat(43), 'rotate', 't'.repeat(16))).toBe(`abc${hmac.slice(0, 40)}`)
})

it('write IDs differ where the clock stands still or is set back, and always have 12 characters', async () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 0 })
  const { newWriteId } = await loadedWith(() => ({}))
  const drawn = Array.from({ length: 100 }, newWriteId)
  vi.setSystemTime(50_000)
  drawn.push(newWriteId())
  vi.setSystemTime(0)
  drawn.push(...Array.from({ length: 100 }, newWriteId))
  expect(new Set(drawn).size).toBe(201)
  for (const id of drawn) expect(id).toMatch(/^[A-Za-z0-9_-]{12}$/)
})

it('no session begins where the generator fails, and none with old randomness afterwards', async () => {
  let broken = false
  await loadedWith(own => ({
    randomUUID: () => (broken ? expect.unreachable('entropy source failed') : own.randomUUID()),
  }))
  const { SessionManager } = await import('../../../src/manager/manager.ts')
  const sessions = new SessionManager({ store: new MemoryStore(), sweepInterval: false })
  const { secret } = await sessions.create()
  broken = true
  for (let count = 0; count < 300; count += 1) await expect(sessions.create()).rejects.toThrow('entropy source failed')
  broken = false
  expect((await sessions.create()).secret).not.toBe(secret)
})

it('two copies of one running process, as a restored snapshot of a virtual machine makes them, draw nothing twice', async () => {
  /** A copy whose generator, and all else, is in the same state. */
  const copy = () => {
    let drawn = 0
    return loadedWith(() => ({ randomUUID: () => `${drawn++}`.padStart(36, '0') }))
  }
  const copies = [await copy(), await copy()]
  for (const draw of ['newId', 'newSalt', 'newWriteId'] as const) {
    const seen = new Set(copies.flatMap(ids => Array.from({ length: 500 }, () => ids[draw]())))
    expect(seen.size).toBe(1000)
  }
  for (const shard of ['abc', undefined]) expect(new Set(copies.map(ids => ids.newId(shard))).size).toBe(2)
})
