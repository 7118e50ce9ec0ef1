import { SessionStoreError } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it, vi } from 'vitest'
import { KeyIndex, PLACES } from '../../../stores/memory/key-index.ts'
import { fill, NOW, put, record } from '../../support/memory/records.ts'

const MAX_RECORDS = 200_000

describe('a walk over a memory store', () => {
  it('looks at no more buckets for a page than it is told, though few have a key', async () => {
    const store = new MemoryStore({ maxRecords: MAX_RECORDS })
    const [key] = await fill(store, 1)
    // An empty store has 1,024 buckets.
    let pages = 0
    let met = 0
    for (let cursor: string | null | undefined; cursor !== null; pages++) {
      const page = await store.scan(cursor ?? null, 16, { now: NOW })
      met += page.records.filter(each => each.key === key).length
      cursor = page.next
    }
    expect([pages, met]).toEqual([1024 / 16, 1])
  })

  it('shows the sessions and the forwards of a page, and nothing else', async () => {
    const store = new MemoryStore()
    expect(await store.scan(null, 2000, { now: NOW })).toEqual({ records: [], forwards: [], next: null })
    const old = await put(store, '1')
    const next = record(store, '1')
    await store.replace(old.key, 1, next, { forward: { salt: '', until: NOW } }, { now: NOW })
    expect(await store.scan(null, 2000, { now: NOW })).toEqual({ records: [next], forwards: [old.key], next: null })
  })

  it('begins and ends with an index that has no key', () => {
    const index = new KeyIndex({} as never)
    expect(index.from(0, 1024)).toEqual({ met: [], next: PLACES })
  })

  it('refuses a cursor that no page answered', async () => {
    const store = new MemoryStore()
    for (const cursor of ['', '-1', '1.5', 'x', '1e3', '99999999999'])
      await expect(store.scan(cursor, 10, { now: NOW })).rejects.toThrow(
        'cursor: expected what an earlier page answered',
      )
  })
})

describe('a count of a memory store', () => {
  it('lets others have the event loop, and is exact', async () => {
    const store = new MemoryStore({ maxRecords: MAX_RECORDS })
    await fill(store, 20_000)
    await fill(store, 3, '7')
    let turns = 0
    let isOver = false
    const loop = () => {
      turns += 1
      if (!isOver) setImmediate(loop)
    }
    setImmediate(loop)
    expect(await store.count({ now: NOW })).toBe(20_003)
    isOver = true
    // 10,000 in a turn.
    expect(turns).toBeGreaterThanOrEqual(2)
  })

  it('gives up by its deadline, and says that nothing was written', async () => {
    const store = new MemoryStore({ maxRecords: MAX_RECORDS })
    await fill(store, 10_001)
    const clock = vi.spyOn(performance, 'now').mockReturnValue(5)
    const [error, inTime] = await Promise.all(
      [5, 6].map(deadline => store.count({ now: NOW, deadline }).catch((thrown: unknown) => thrown)),
    )
    clock.mockRestore()
    expect(error).toBeInstanceOf(SessionStoreError)
    expect(error).toMatchObject({
      operation: 'count',
      outcome: 'not-applied',
      message: 'the session store failed in count',
      cause: new Error('the deadline passed before all sessions were counted'),
    })
    expect(inTime).toBe(10_001)
  })
})
