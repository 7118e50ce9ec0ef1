import { createHash, createHmac } from 'node:crypto'
import { MemoryStore } from 'coatcheck/stores/memory'
import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { deriveId, isId, isKey, keyOf, newId, newSalt, newWriteId, shardOf } from '../../../src/session/id.ts'

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

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

it('an ID is 43 characters of base64url, its key 46: both begin with the shard', () => {
  fc.assert(
    fc.property(fc.constantFrom('abc', '-_0', undefined), shard => {
      const id = newId(shard)
      const key = keyOf(id, '')
      expect(isId(id) && isKey(key) && !isId(key) && !isKey(id)).toBe(true)
      expect(shardOf(id)).toBe(shardOf(key))
      if (shard) expect(shardOf(id)).toBe(shard)
    }),
  )
})

it('a key is the plain SHA-256 of the ID, so that an operator can find a session by hand', () => {
  const id = newId()
  expect(keyOf(id, '')).toBe(id.slice(0, 3) + createHash('sha256').update(id).digest('base64url'))
})

it('a key is the same on a Node.js that has no crypto.hash, before 20.12', async () => {
  vi.resetModules()
  vi.doMock('node:crypto', async original => ({
    ...(await original<typeof import('node:crypto')>()),
    hash: undefined,
  }))
  const older = await import('../../../src/session/id.ts')
  vi.doUnmock('node:crypto')
  vi.resetModules()
  const id = newId()
  expect(older.keyOf(id, '')).toBe(keyOf(id, ''))
})

it('kinds and tenants have keys of their own', () => {
  const id = newId()
  const spaces = ['', 'namespace\0a', 'namespace\0b', 'remember\0', 'remember\0a']
  expect(new Set(spaces.map(space => keyOf(id, space))).size).toBe(spaces.length)
})

it('20,000 IDs differ, and every character is used in every random place', () => {
  const ids = Array.from({ length: 20_000 }, () => newId())
  expect(new Set(ids).size).toBe(ids.length)
  for (let at = 0; at < 43; at += 1) expect(new Set(ids.map(id => id[at])).size).toBe(64)
})

it('salts and write IDs never repeat, and write IDs keep to their alphabet and length', () => {
  const made = Array.from({ length: 10_000 }, () => [newSalt(), newWriteId()]).flat()
  expect(new Set(made).size).toBe(made.length)
  expect(made.filter(id => !/^[A-Za-z0-9_-]{8,32}$/.test(id))).toEqual([])
  // A longer one costs each record in memory 80 bytes more.
  expect(newWriteId()).toHaveLength(12)
})

it('who holds the secret derives the same ID, another secret, salt or purpose gives another', () => {
  const derived = (secret: string, purpose: string, salt: string) => deriveId('abc', secret, purpose, salt)
  expect(derived('s', 'rotate', 't')).toBe(derived('s', 'rotate', 't'))
  expect(isId(derived('s', 'rotate', 't'))).toBe(true)
  expect(
    new Set([
      derived('s', 'rotate', 't'),
      derived('S', 'rotate', 't'),
      derived('s', 'x', 't'),
      derived('s', 'rotate', 'T'),
    ]).size,
  ).toBe(4)
})

it('a stored key is text, not what turns into it', () => {
  const key = keyOf(newId(), '')
  for (const value of [[key], { toString: () => key }, new String(key), 46, null, undefined])
    expect(isKey(value)).toBe(false)
})

it('versions that run side by side agree on the ID that a secret and a salt lead to', () => {
  const hmac = createHmac('sha256', 's'.repeat(43))
    .update(`rotate\0${'t'.repeat(16)}`)
    .digest('base64url')
  expect(deriveId('abc', 's'.repeat(43), 'rotate', 't'.repeat(16))).toBe(`abc${hmac.slice(0, 40)}`)
})

describe('write IDs', () => {
  const fresh = async () => {
    vi.resetModules()
    return (await import('../../../src/session/id.ts')).newWriteId
  }
  afterEach(() => {
    vi.useRealTimers()
    vi.resetModules()
  })

  it('differ where the clock stands still or is set back, and always have 12 characters', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 0 })
    const draw = await fresh()
    const drawn = Array.from({ length: 100 }, draw)
    vi.setSystemTime(50_000)
    drawn.push(draw())
    vi.setSystemTime(0)
    drawn.push(...Array.from({ length: 100 }, draw))
    expect(new Set(drawn).size).toBe(201)
    for (const id of drawn) expect(id).toMatch(/^[A-Za-z0-9_-]{12}$/)
  })
})

describe('when the generator fails', () => {
  afterEach(() => {
    vi.doUnmock('node:crypto')
    vi.resetModules()
  })

  it('no session begins, and none with old randomness afterwards', async () => {
    let broken = false
    vi.resetModules()
    vi.doMock('node:crypto', async original => {
      const crypto = await original<typeof import('node:crypto')>()
      return {
        ...crypto,
        randomUUID: () => {
          if (broken) throw new Error('entropy source failed')
          return crypto.randomUUID()
        },
      }
    })
    const fresh = await import('../../../src/session/id.ts')
    const { SessionManager: Manager } = await import('../../../src/manager/manager.ts')
    const sessions = new Manager({ store: new MemoryStore(), sweepInterval: false })
    const seen = new Set<string>()
    for (let count = 0; count < 50; count += 1) seen.add((await sessions.create()).secret)
    broken = true
    let failures = 0
    for (let count = 0; count < 300; count += 1) {
      try {
        const id = fresh.newId()
        expect(seen.has(id)).toBe(false)
        seen.add(id)
      } catch (error) {
        failures += 1
        expect((error as Error).message).toBe('entropy source failed')
      }
    }
    expect(failures).toBe(300)
    await expect(sessions.create()).rejects.toThrow('entropy source failed')
    broken = false
    const { secret } = await sessions.create()
    expect(seen.has(secret)).toBe(false)
  })
})

describe('two copies of one running process, as a restored snapshot of a virtual machine makes them,', () => {
  afterEach(() => {
    vi.doUnmock('node:crypto')
    vi.resetModules()
  })

  /** Copies whose generators, and all else, are in the same state. */
  async function copies() {
    const make = async () => {
      vi.resetModules()
      let drawn = 0
      vi.doMock('node:crypto', async original => ({
        ...(await original<typeof import('node:crypto')>()),
        randomUUID: () => `${drawn++}`.padStart(36, '0'),
      }))
      const { SessionManager } = await import('../../../src/manager/manager.ts')
      return { SessionManager, ids: await import('../../../src/session/id.ts') }
    }
    return [await make(), await make()] as const
  }

  it('draw different IDs, salts and write IDs', async () => {
    const [one, two] = await copies()
    for (const draw of ['newId', 'newSalt', 'newWriteId'] as const) {
      const seen = new Set([one, two].flatMap(({ ids }) => Array.from({ length: 500 }, () => ids[draw]())))
      expect(seen.size).toBe(1000)
    }
    for (const shard of ['abc', undefined]) expect(one.ids.newId(shard)).not.toBe(two.ids.newId(shard))
  })

  it('acknowledge no update that the other one wrote', async () => {
    const store = new MemoryStore()
    const [one, two] = (await copies()).map(
      ({ SessionManager: Manager }) =>
        new Manager({ store, sweepInterval: false, initial: () => ({ one: 0, two: 0 }) }),
    )
    const session = await one!.create()
    // As many writes in both: then the next write ID of both was the same.
    await two!.create()
    const held = (await two!.get(session.secret))!
    await Promise.all([one!.update(session, { one: 1 }), two!.update(held, { two: 1 })])
    expect((await one!.get(session.secret))?.data).toEqual({ one: 1, two: 1 })
  })
})
