import { SessionManager, type Store } from 'coatcheck'
import { testStore } from 'coatcheck/custom-store/testing'
import { MemoryStore } from 'coatcheck/stores/memory'
import { describe, expect, it } from 'vitest'
import { observedStore } from '../../examples/observed-store.mjs'

type Told = [operation: string, outcome: string]

function observed(inner: Store): { store: Store; told: Told[] } {
  const told: Told[] = []
  const store = observedStore(inner, (operation, run) => run(outcome => told.push([operation, outcome])))
  return { store, told }
}

describe('a store that is observed', () => {
  testStore(it, () => {
    const inner = new MemoryStore()
    return [observed(inner).store, observed(inner).store]
  })

  it('tells once of each call what came of it', async () => {
    // The shard of a user is computed: nothing is asked.
    const { store, told } = observed(Object.assign(new MemoryStore(), { shard: () => 'abc' }))
    const sessions = new SessionManager({ store, sweepInterval: false })
    const session = await sessions.create({ user: { id: 1, name: 'ada' } })
    await sessions.get(session)
    await sessions.update(session, { n: 1 })
    await sessions.update(session, { n: 2 })
    await sessions.regenerate(session, { grace: '1m' })
    await sessions.get(session.secret)
    await sessions.list(1)
    await sessions.destroy(session)
    await sessions.get(session.secret)
    expect(told).toEqual([
      ['create', 'created'],
      ['read', 'found'],
      ['update', 'updated'],
      ['update', 'conflict'],
      ['read', 'found'],
      ['update', 'updated'],
      ['replace', 'conflict'],
      ['read', 'found'],
      ['replace', 'created'],
      ['read', 'moved'],
      ['read', 'found'],
      ['listUser', 'done'],
      ['delete', 'done'],
      ['read', 'none'],
    ])
  })

  it('tells of an error, thrown or rejected, and passes it on as it is', async () => {
    const down = new Error('down')
    const inner = Object.assign(new MemoryStore(), {
      read: () => {
        throw down
      },
      delete: () => Promise.reject(down),
    })
    const errors: unknown[] = []
    const store = observedStore(inner, (_, run) => run((outcome, error) => errors.push([outcome, error])))
    expect(() => store.read('key', { now: 0 })).toThrow(down)
    await expect(store.delete('key', { now: 0 })).rejects.toBe(down)
    expect(errors).toEqual([
      ['error', down],
      ['error', down],
    ])
  })

  it('answers at once where the store does, and waits for whatever can be waited for', async () => {
    const { store, told } = observed(new MemoryStore())
    expect(store.read('key', { now: 0 })).toBeNull()
    const later = Object.defineProperty({}, 'then', { value: (done: (answer: boolean) => void) => done(true) })
    const inner = Object.assign(new MemoryStore(), { delete: () => later })
    const own = observed(inner as unknown as Store)
    expect(await own.store.delete('key', { now: 0 })).toBe(true)
    expect([told, own.told]).toEqual([[['read', 'none']], [['delete', 'done']]])
  })

  it('has the verbs that the store has, and no others', () => {
    const few = Object.assign(new MemoryStore(), { sweep: undefined, scan: undefined, count: undefined })
    const { store } = observed(few as unknown as Store)
    for (const verb of ['sweep', 'scan', 'count'] as const) expect(store[verb]).toBeUndefined()
    expect(store.read).toBeTypeOf('function')
  })
})
