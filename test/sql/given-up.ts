// What becomes of statements that their callers have given up: they are not run late, not left behind at the server, and
// not kept in memory.
import type { Store } from 'coatcheck'
import type { SessionRecord } from 'coatcheck/custom-store'
import { expect, it, vi } from 'vitest'
import { collectGarbage } from '../support/collect-garbage.ts'
import { soon, within } from '../support/deadlines.ts'
import { failure } from '../support/failure.ts'
import { until } from '../support/services/process.ts'
import type { FaultProxy } from '../support/services/proxy.ts'
import { anonymous, NOW, newKey, newWriteId, record } from './records.ts'

export const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

interface Server {
  /** The database as it is, without the proxy. */
  readonly direct: Store
  readonly proxy: FaultProxy
  /** A store that reaches the database through the proxy. */
  open(max: number, name?: string): Store
  /** How many connections the server has of a store with this name (PostgreSQL) or of all such stores. */
  connections(name: string): Promise<number>
  /** Holds a lock of the whole table, as ALTER TABLE does; gives what ends it. */
  lockTable(): Promise<() => Promise<void>>
  /** How many connections of a pool of 5 there may be: what is destroyed goes a moment later. */
  readonly atMost: number
  /** What a COMMIT looks like on the wire, unlike READ COMMITTED. */
  readonly commit: string
}

export function givenUp(get: () => Server) {
  const change = () => ({ data: '"late"', seenAt: NOW + 5, expiresAt: NOW + 9e6, writeId: newWriteId() })
  const forward = { salt: 'c2FsdA', until: NOW }
  type Write = (store: Store, one: SessionRecord, other: SessionRecord, deadline: number) => Promise<unknown>
  const writes: Record<string, Write> = {
    update: (store, one, _, deadline) => store.update(one.key, 1, change(), { now: NOW, deadline }),
    touch: (store, one, _, deadline) => store.touch(one.key, NOW + 5, NOW + 9e6, { now: NOW, deadline }),
    logout: (store, one, _, deadline) => store.delete(one.key, { now: NOW, deadline }),
    login: (store, _, other, deadline) => store.create(other, { now: NOW, deadline }),
    'new anonymous session': (store, _, { key }, deadline) => store.create(anonymous({ key }), { now: NOW, deadline }),
    'new ID': (store, one, other, deadline) => store.replace(one.key, 1, other, {}, { now: NOW, deadline }),
    'new ID with a forward': (store, one, other, deadline) =>
      store.replace(one.key, 1, other, { forward }, { now: NOW, deadline }),
    'logout everywhere': (store, one, _, deadline) =>
      store.deleteUser(
        one.userId!,
        { minPasswordVersion: 3, minPasswordVersionUntil: NOW + 1e9 },
        { now: NOW, deadline },
      ),
  }
  const everywhere = writes['logout everywhere']!
  let user = 7000
  it('does not run a logout everywhere that was given up in a stalled network when the network heals', async () => {
    const { direct, open, proxy } = get()
    const one = record({ userId: `${++user}` })
    const other = record({ userId: one.userId })
    await direct.create(one, { now: NOW })
    const store = open(1)
    // As on any connection that has been in use for some time: nothing is left to be prepared.
    const before = record({ userId: `${++user}` })
    await direct.create(before, { now: NOW })
    await everywhere(store, before, record({ userId: before.userId }), within(5000))
    proxy.stall()
    expect(await failure(everywhere(store, one, other, within(250)))).toMatchObject({ status: 503 })
    await pause(50)
    await proxy.heal()
    expect(await direct.read(one.key, { now: NOW })).toEqual(one)
    expect(await direct.read(other.key, { now: NOW })).toBe(null)
    expect(await direct.create(other, { now: NOW })).toBe('created')
    expect((await store.listUser(one.userId!, 'session', { now: NOW, deadline: within(5000) })).length).toBe(2)
  })

  // Only the difference between the two clocks counts: a network that delivers a write late is told by it, too.
  const behind = async (ms: number, work: () => Promise<void>) => {
    const real = Date.now.bind(Date)
    const set = vi.spyOn(Date, 'now').mockImplementation(() => real() - ms)
    await work().finally(() => set.mockRestore())
  }
  const ENDING = new Set(['touch', 'logout', 'logout everywhere'])
  for (const [name, write] of Object.entries(writes)) {
    const set = async () => {
      const one = record({ userId: `${++user}` })
      await get().direct.create(one, { now: NOW })
      const other = record({ userId: one.userId })
      return { one, run: () => write(get().direct, one, other, soon()), other }
    }
    if (ENDING.has(name))
      it(`runs a ${name} whenever it comes to the database`, async () => {
        const { one, run } = await set()
        await behind(400_000, async () => expect(await run()).toBeTruthy())
        if (name !== 'touch') expect(await get().direct.read(one.key, { now: NOW })).toBe(null)
      })
    else
      it(`refuses a ${name} that comes to the database after the tolerance of clocks, and names both clocks`, async () => {
        const { one, other, run } = await set()
        await behind(400_000, async () => {
          const error = await failure(run())
          expect(error.outcome).toBe('not-applied')
          expect(String(error.cause)).toMatch(
            /came too late: the clock of the database says 2.*Z, that of this process 2/,
          )
        })
        expect(await get().direct.read(one.key, { now: NOW })).toEqual(one)
        expect(await get().direct.read(other.key, { now: NOW })).toBe(null)
        await behind(240_000, async () => expect(await run()).toBeTruthy())
      })
  }

  it('does not end a user’s sessions when the last step of that was given up in a stalled network', async () => {
    const { direct, open, proxy, commit } = get()
    const one = record({ userId: `${++user}` })
    await direct.create(one, { now: NOW })
    const store = open(1)
    await store.touch(newKey(), NOW, NOW, { now: NOW })
    let isStalled = false
    void proxy.stallAt(commit).then(() => {
      isStalled = true
    })
    // On a busy machine it is given up before its last step.
    for (let time = 400; !isStalled; time *= 2) await failure(everywhere(store, one, one, within(time)))
    // The databases count whole seconds here.
    await pause(1500)
    await proxy.heal()
    expect(await direct.read(one.key, { now: NOW })).toEqual(one)
  })

  it.each([-30_000, 30_000])('loses no write when one of the clocks is set by %d ms', async difference => {
    const store = get().open(1)
    const one = record({ userId: `${++user}` })
    await store.create(one, { now: NOW })
    const real = performance.now.bind(performance)
    // Only the difference between the two clocks counts, so that it does not matter which of them was set.
    const set = vi.spyOn(performance, 'now').mockImplementation(() => real() + difference)
    try {
      expect(await store.update(one.key, 1, change(), { now: NOW, deadline: within(20_000) })).toBe('updated')
      expect(await store.delete(one.key, { now: NOW, deadline: within(20_000) })).toBe(true)
    } finally {
      set.mockRestore()
    }
  })

  it('answers writes of a slow database within the time of one statement', async () => {
    const { open, proxy } = get()
    const store = open(1)
    const one = record({ userId: `${++user}` })
    await store.create(one, { now: NOW })
    await store.touch(one.key, NOW + 1, NOW + 8e6, { now: NOW })
    let at = 1
    const touch = (deadline: number) => store.touch(one.key, NOW + ++at, NOW + 8e6 + at, { now: NOW, deadline })
    // A busy machine may take more time than one statement; not each time.
    await until('two of them in time', async () => {
      // On a connection that is in use: nothing but the statement itself is asked.
      await touch(soon())
      proxy.slow(600)
      try {
        for (let times = 0; times < 2; times++) expect(await touch(within(1150))).toBe('touched')
      } finally {
        proxy.slow(0)
      }
    })
  })

  it('never holds more connections than the pool while the table is locked, however long callers go on', async () => {
    const { direct, open, connections, lockTable, atMost } = get()
    const store = open(5, 'crowd')
    await Promise.all(Array.from({ length: 5 }, () => store.read(newKey(), { now: NOW })))
    const release = await lockTable()
    let most = 0
    let failed = 0
    let over = false
    const call = async (number: number) => {
      while (!over) {
        const key = newKey()
        const verb =
          number % 3 === 0
            ? store.read(key, { now: NOW, deadline: within(150) })
            : number % 3 === 1
              ? store.touch(key, NOW, NOW, { now: NOW, deadline: within(150) })
              : store.deleteUser('1', { minPasswordVersionUntil: NOW }, { now: NOW, deadline: within(150) })
        await failure(Promise.resolve(verb))
        failed += 1
      }
    }
    const calls = Array.from({ length: 12 }, (_, number) => call(number))
    for (let i = 0; i < 20; i++) {
      await pause(50)
      most = Math.max(most, await connections('crowd'))
    }
    over = true
    await Promise.all(calls)
    await release()
    expect(failed).toBeGreaterThan(25)
    expect(most).toBeLessThanOrEqual(atMost)
    await until('an answer', async () =>
      expect(await store.read(newKey(), { now: NOW, deadline: within(1000) })).toBe(null),
    )
    await until('the end of what was left behind', async () =>
      expect(await connections('crowd')).toBeLessThanOrEqual(5),
    )
    expect(await direct.read(newKey(), { now: NOW })).toBe(null)
  })

  it('keeps nothing of 15,000 gets that were given up while the network stalls', async () => {
    const { open, proxy } = get()
    const store = open(5)
    await store.read(newKey(), { now: NOW })
    const wave = () =>
      Promise.all(
        Array.from({ length: 1000 }, async () => store.read(newKey(), { now: NOW, deadline: within(60) })).map(read =>
          read.catch(() => {}),
        ),
      )
    proxy.stall()
    await wave()
    collectGarbage()
    const before = process.memoryUsage().heapUsed
    for (let i = 0; i < 15; i++) await wave()
    await pause(10)
    collectGarbage()
    const kept = (process.memoryUsage().heapUsed - before) / 1e6
    await proxy.heal()
    if (process.env.COATCHECK_LONG === '1') console.log(`kept of 15,000 gets: ${kept.toFixed(1)} MB`)
    expect(kept).toBeLessThan(3)
    await until('an answer', async () =>
      expect(await store.read(newKey(), { now: NOW, deadline: within(1000) })).toBe(null),
    )
  }, 60_000)

  it('hears an answer that came in time while the event loop was blocked', async () => {
    // Without the proxy, which runs in this event loop too: an answer would pass it too late.
    const { direct: store } = get()
    await store.read(newKey(), { now: NOW })
    const answer = store.read(newKey(), { now: NOW, deadline: within(200) })
    // So long that the statement is on its way, and nothing has come back.
    await new Promise(resolve => setImmediate(resolve))
    for (const end = within(500); performance.now() < end; );
    expect(await answer).toBe(null)
  })
}
