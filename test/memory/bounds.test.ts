import { SessionStoreError } from 'coatcheck'
import { FORWARD_LIFETIME, type SessionRecord, SWEEP_MARGIN } from 'coatcheck/custom-store'
import { MemoryStore } from 'coatcheck/stores/memory'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { fill, HOUR, NOW, put, record } from './records.ts'

const isLive = async (store: MemoryStore, { key }: SessionRecord) => (await store.read(key, { now: NOW })) !== null

describe('a full memory store', () => {
  it('lets what has expired go first, wherever it was created', async () => {
    const store = new MemoryStore({ maxRecords: 3 })
    const [anonymous, user] = [await put(store, null), await put(store, '1')]
    const expired = await put(store, '2', { expiresAt: NOW })
    const added = await put(store, '3')
    for (const kept of [anonymous, user, added]) expect(await isLive(store, kept)).toBe(true)
    expect(await store.read(expired.key, { now: NOW - 1 })).toBeNull()
  })

  it('lets the oldest anonymous session go next', async () => {
    const store = new MemoryStore({ maxRecords: 3 })
    const user = await put(store, '1')
    const [first, second] = [await put(store, null), await put(store, null)]
    const [third, fourth] = [await put(store, null), await put(store, null)]
    expect([await isLive(store, first), await isLive(store, second)]).toEqual([false, false])
    // One that has ended makes room for one more, and no longer stands in the order.
    await store.delete(third.key, { now: NOW })
    await put(store, '2')
    expect(await isLive(store, fourth)).toBe(true)
    await put(store, '3')
    expect([await isLive(store, fourth), await isLive(store, user)]).toEqual([false, true])
  })

  it('ends no session of a user for a new one: the call rejects, writes nothing and names the option', async () => {
    const store = new MemoryStore({ maxRecords: 2 })
    const users = [await put(store, '1'), await put(store, '2')]
    for (const userId of ['3', null]) {
      const refused = record(store, userId)
      const error = await store.create(refused, { now: NOW }).catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(SessionStoreError)
      expect(error).toMatchObject({
        operation: 'create',
        outcome: 'not-applied',
        status: 503,
        message: 'the session store is full',
      })
      expect(String((error as Error).cause)).toContain('maxRecords is 2')
      expect(String(error)).not.toContain('maxRecords')
      expect(await isLive(store, refused)).toBe(false)
    }
    for (const user of users) expect(await isLive(store, user)).toBe(true)
    await store.delete(users[0]!.key, { now: NOW })
    await put(store, '3')
  })

  it('drops no record without a user that is no session, such as the note of a logout, however many visitors come', async () => {
    const store = new MemoryStore({ maxRecords: 4 })
    const notes = [await put(store, null, { kind: 'remember' }), await put(store, null, { kind: 'remember' })]
    const visitors = [await put(store, null), await put(store, null)]
    for (let more = 0; more < 5; more++) visitors.push(await put(store, null))
    for (const note of notes) expect(await isLive(store, note)).toBe(true)
    expect(await Promise.all(visitors.slice(-3).map(visitor => isLive(store, visitor)))).toEqual([false, true, true])
    await store.delete(notes[0]!.key, { now: NOW })
    expect([await isLive(store, notes[0]!), await isLive(store, notes[1]!)]).toEqual([false, true])
    const last = new MemoryStore({ maxRecords: 1 })
    await put(last, null, { kind: 'remember' })
    const refused = await last.create(record(last, null), { now: NOW }).catch((thrown: unknown) => thrown)
    expect(refused).toMatchObject({ outcome: 'not-applied', message: 'the session store is full' })
  })

  it('replaces a session without asking for room', async () => {
    const store = new MemoryStore({ maxRecords: 1 })
    const old = await put(store, '1')
    const next = record(store, '1')
    expect(await store.replace(old.key, 1, next, {}, { now: NOW })).toBe('created')
    expect(await isLive(store, next)).toBe(true)
  })

  it('counts a forward, and refuses a renewal for which there is no room before it changes anything', async () => {
    const store = new MemoryStore({ maxRecords: 2 })
    const old = await put(store, '1')
    await put(store, '2')
    const options = { forward: { salt: '', until: NOW } }
    const next = record(store, '1')
    await expect(store.replace(old.key, 1, next, options, { now: NOW })).rejects.toMatchObject({
      operation: 'replace',
      outcome: 'not-applied',
    })
    expect(await store.read(old.key, { now: NOW })).toEqual(old)
    expect(await store.read(next.key, { now: NOW })).toBeNull()
  })

  it('does not take the anonymous session that is being renewed for the one that may go', async () => {
    const store = new MemoryStore({ maxRecords: 2 })
    const [old, other] = [await put(store, null), await put(store, null)]
    const options = { forward: { salt: '', until: NOW } }
    const next = record(store, null)
    expect(await store.replace(old.key, 1, next, options, { now: NOW })).toBe('created')
    expect(await isLive(store, other)).toBe(false)
    expect(await store.read(old.key, { now: NOW })).toMatchObject({ movedTo: next.key })
  })

  it('lets a thousandth go at once, the oldest anonymous sessions first', async () => {
    const store = new MemoryStore({ maxRecords: 3000 })
    const visitors = await fill(store, 3000)
    await put(store, '1')
    const isStored = (key: string) => store.read(key, { now: NOW }) !== null
    expect(visitors.map(isStored).indexOf(true)).toBe(3)
    await put(store, '2')
    await put(store, '3')
    expect(visitors.filter(isStored)).toHaveLength(2997)
  })

  it('keeps the forwards of one user for their life, and lets them go for the login of another after it', async () => {
    const store = new MemoryStore({ maxRecords: 10 })
    const forward = { salt: '', until: NOW }
    const traces: string[] = []
    let last = await put(store, 'mallory')
    for (let times = 0; times < 9; times++) {
      traces.push(last.key)
      const next = record(store, 'mallory')
      await store.replace(last.key, 1, next, { forward }, { now: NOW })
      last = next
    }
    const logIn = (now: number) => store.create(record(store, 'ada', { expiresAt: NOW + HOUR }), { now })
    const isOver = NOW + FORWARD_LIFETIME
    await expect(logIn(isOver - 1)).rejects.toMatchObject({ outcome: 'not-applied' })
    for (const key of traces) expect(await store.read(key, { now: isOver - 1 })).toMatchObject({ salt: '' })
    expect(await logIn(isOver)).toBe('created')
    expect(await isLive(store, last)).toBe(true)
  })

  it('keeps at most maxRecords and ends no session of a user, through any sequence of calls', async () => {
    const action = fc.tuple(fc.nat(4), fc.nat(5), fc.nat(20))
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 20, maxLength: 60 }), async actions => {
        const store = new MemoryStore({ maxRecords: 5 })
        const users = new Set<SessionRecord>()
        const all: SessionRecord[] = []
        const successors = new Map<SessionRecord, SessionRecord>()
        for (const [method, user, place] of actions) {
          const old = all[place % Math.max(1, all.length)]
          if (method === 0 && old !== undefined) {
            await store.delete(old.key, { now: NOW })
            for (let ended: SessionRecord | undefined = old; ended !== undefined; ended = successors.get(ended))
              users.delete(ended)
            continue
          }
          const next = record(store, user < 3 ? null : String(user))
          const renewed = method === 1 && old !== undefined && old.userId === next.userId ? old : undefined
          const forward = { salt: '', until: NOW }
          const call =
            renewed === undefined
              ? store.create(next, { now: NOW })
              : store.replace(renewed.key, 1, next, { forward }, { now: NOW })
          const outcome = await call.catch(() => 'full')
          if (outcome !== 'created') continue
          if (renewed !== undefined) {
            users.delete(renewed)
            successors.set(renewed, next)
          }
          all.push(next)
          if (next.userId !== null) users.add(next)
          let stored = 0
          for (const { key } of all) if ((await store.read(key, { now: NOW })) !== null) stored++
          expect(stored).toBeLessThanOrEqual(5)
          for (const kept of users) expect(await isLive(store, kept)).toBe(true)
        }
      }),
      { numRuns: 50 },
    )
  })

  it('is refused with a bound that is no whole number above 0, and with another option', () => {
    for (const maxRecords of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '5' as never])
      expect(() => new MemoryStore({ maxRecords })).toThrow('maxRecords: expected a whole number from 1, got ')
    expect(() => new MemoryStore({ checkPeriod: 5 } as never)).toThrow(
      'MemoryStore: "checkPeriod" is not an option (there are: maxRecords)',
    )
    expect(() => new MemoryStore(null as never)).toThrow(TypeError)
  })
})

describe('the memory store in the course of time', () => {
  it('sweeps in steps, and forwards and minimum password versions with the sessions', async () => {
    // A step also ends after some time: none passes here.
    vi.spyOn(performance, 'now').mockReturnValue(0)
    const store = new MemoryStore()
    for (let number = 0; number < 25; number++) await put(store, String(number), { expiresAt: NOW + number })
    const old = await put(store, 'ada')
    await store.replace(old.key, 1, record(store, 'ada'), { forward: { salt: '', until: NOW } }, { now: NOW })
    for (const [times, userId] of ['eve', 'max', 'eve'].entries()) {
      const minPasswordVersionUntil = NOW + (times === 2 ? 5 : 1) * HOUR
      await store.deleteUser(userId, { minPasswordVersion: 3, minPasswordVersionUntil }, { now: NOW })
    }
    const later = NOW + SWEEP_MARGIN + 25
    expect([
      await store.sweep(10, { now: later }),
      await store.sweep(10, { now: later }),
      await store.sweep(10, { now: later }),
    ]).toEqual([10, 10, 5])
    expect(await store.sweep(10, { now: NOW + FORWARD_LIFETIME + SWEEP_MARGIN })).toBe(0)
    expect(await store.sweep(10, { now: NOW + FORWARD_LIFETIME + SWEEP_MARGIN + 1 })).toBe(1)
    expect(await store.delete(old.key, { now: NOW })).toBe(false)
    expect(await store.sweep(10, { now: NOW + HOUR + SWEEP_MARGIN + 10_000 })).toBe(2)
    const login = record(store, 'max', { expiresAt: NOW + 9 * HOUR })
    expect(await store.create(login, { now: NOW })).toBe('created')
  })

  it('keeps nothing of a session that was prolonged and then ended: no sweep meets it', async () => {
    const store = new MemoryStore()
    const { key } = await put(store, '1')
    await store.touch(key, NOW + 1, NOW + 2 * HOUR, { now: NOW })
    await store.delete(key, { now: NOW })
    expect(await store.sweep(10, { now: NOW + 3 * HOUR })).toBe(0)
  })

  it('stops a sweep after some time, and goes on with the next one', async () => {
    const store = new MemoryStore()
    await fill(store, 100)
    let time = 0
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => time++)
    const steps: number[] = []
    for (let removed = 1; removed > 0; steps.push(removed)) removed = await store.sweep(1000, { now: NOW + 2 * HOUR })
    clock.mockRestore()
    expect(steps.reduce((sum, step) => sum + step)).toBe(100)
    expect(Math.max(...steps)).toBeLessThan(20)
  })

  it('sets no timer', async () => {
    const timers = (['setTimeout', 'setInterval', 'setImmediate'] as const).map(name => vi.spyOn(globalThis, name))
    const store = new MemoryStore()
    const stored = await put(store, '1')
    await store.touch(stored.key, NOW + 1, NOW + HOUR, { now: NOW })
    await store.deleteUser('1', { minPasswordVersion: 1, minPasswordVersionUntil: NOW + HOUR }, { now: NOW })
    await store.sweep(100, { now: NOW + 24 * HOUR })
    for (const timer of timers) {
      expect(timer).not.toHaveBeenCalled()
      timer.mockRestore()
    }
  })
})
