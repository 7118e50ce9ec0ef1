import { createHash, createHmac } from 'node:crypto'
import { type SessionId, SessionManager, sessionId } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { deriveId, isId, isKey, keyOf, newId, newSalt, newWriteId, shardOf } from '../../../src/session/id.ts'
import { BarrierStore } from '../../support/barrier-store.ts'

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const setUp = () => {
  const store = BarrierStore.over(new MemoryStore())
  return { store, sessions: new SessionManager({ store, sweepInterval: false, rememberFor: '30d' }) }
}

describe('a malformed ID leads to no session, and does not reach the store', () => {
  it('every length from 0 to 100 but 43', async () => {
    const { store, sessions } = setUp()
    for (let length = 0; length <= 100; length += 1) {
      const id = 'x'.repeat(length)
      expect(await sessions.get(id as SessionId)).toBeNull()
      expect(store.calls).toHaveLength(length === 43 ? 1 : 0)
      if (length === 43) store.reset()
    }
  })

  it('every byte at every position', async () => {
    const { store, sessions } = setUp()
    const good = newId()
    for (let at = 0; at < 43; at += 1) {
      for (let byte = 0; byte < 256; byte += 1) {
        const character = String.fromCharCode(byte)
        const id = good.slice(0, at) + character + good.slice(at + 1)
        const allowed = ALPHABET.includes(character)
        if (isId(id) !== allowed) expect.unreachable(`byte ${byte} at ${at}`)
        if (!allowed && (await sessions.get(id as SessionId)) !== null) expect.unreachable(`byte ${byte} at ${at}`)
      }
    }
    expect(store.calls).toHaveLength(0)
  })

  it.each([
    '__proto__',
    'constructor',
    'x'.repeat(1_000_000),
    `${'A'.repeat(43)}\n`,
    'Ａ'.repeat(43),
    '\ud800'.repeat(43),
    `${'a'.repeat(42)}=`,
    `${'a'.repeat(42)}/`,
  ])('%.50s', async id => {
    const { store, sessions } = setUp()
    expect(await sessions.get(id as SessionId)).toBeNull()
    expect(await sessions.regenerate(id as SessionId)).toBeNull()
    expect(await sessions.regenerate(id as SessionId, { grace: '1m' })).toBeNull()
    await sessions.destroy(id as SessionId)
    expect(await sessions.redeemRememberToken(id)).toBeNull()
    await sessions.revokeRememberToken(id)
    expect(await sessions.revoke(1, id)).toBe(false)
    expect(store.calls).toHaveLength(0)
    const login = await sessions.logIn(id as SessionId, { user: { id: 1, name: 'ada' } })
    expect(store.counts()).toEqual({ create: 1 })
    expect(login.secret).not.toBe(id)
  })

  it('a stored key has another shape than an ID: sent as a cookie it does not reach the store', async () => {
    const { store, sessions } = setUp()
    const { key } = await sessions.create()
    store.reset()
    expect(await sessions.get(key as unknown as SessionId)).toBeNull()
    await sessions.destroy(key as unknown as SessionId)
    for (const cut of [key.slice(0, 43), key.slice(3)]) expect(await sessions.get(cut as SessionId)).toBeNull()
    expect(store.counts()).toEqual({ read: 2 })
    expect(await sessions.list(1)).toEqual([])
  })
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

  it('differ in copies of a running process as soon as their clocks went on', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'], now: Date.now() })
    const { randomUUID } = await import('node:crypto')
    const same = randomUUID()
    vi.doMock('node:crypto', async original => ({
      ...(await original<typeof import('node:crypto')>()),
      randomUUID: () => same,
    }))
    const [one, two] = [await fresh(), await fresh()]
    vi.doUnmock('node:crypto')
    // Until now they are the same process.
    expect(one()).toBe(two())
    vi.advanceTimersByTime(1)
    const ofOne = Array.from({ length: 100 }, one)
    vi.advanceTimersByTime(1)
    const ofTwo = Array.from({ length: 100 }, two)
    expect(new Set([...ofOne, ...ofTwo]).size).toBe(200)
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

it('sessionId takes the value of a cookie, and nothing that is not an ID', async () => {
  const { sessions } = setUp()
  const { secret, key } = await sessions.create()
  expect(sessionId(secret)).toBe(secret)
  for (const value of [null, undefined, '', key, `session_id=${secret}`, ` ${secret}`, `${secret}\n`, secret.slice(1)])
    expect(sessionId(value)).toBeNull()
  for (const value of [42, [secret], { secret }]) expect(sessionId(value as never)).toBeNull()
})

it("a user's sessions begin with the shard that the store names, on every way to a session", async () => {
  const memory = new MemoryStore()
  const store = BarrierStore.over(Object.assign(memory, { shard: (user: string) => `_-${user.at(-1)}` }))
  const sessions = new SessionManager({ store, sweepInterval: false, rememberFor: '30d' })
  const user = { id: 37, name: 'ada' }
  const created = await sessions.create({ user })
  const login = await sessions.logIn((await sessions.create()).secret, { user })
  const next = (await sessions.regenerate(login))!
  const rotated = (await sessions.regenerate(next, { grace: '1m' }))!
  const token = await sessions.issueRememberToken(created)
  const recalled = (await sessions.redeemRememberToken(token))!
  for (const text of [
    created.secret,
    login.secret,
    next.secret,
    rotated.secret,
    token,
    recalled.session.secret,
    recalled.token!,
  ])
    expect(text.slice(0, 3)).toBe('_-7')
  for (const session of [created, rotated, recalled.session]) expect(session.key.slice(0, 3)).toBe('_-7')
  // The shard travels with the ID: an anonymous session's stays.
  const anonymous = await sessions.create()
  expect((await sessions.regenerate(anonymous))!.secret.slice(0, 3)).toBe(anonymous.secret.slice(0, 3))
})
