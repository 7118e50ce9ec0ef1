// What calls keep that were given up, while their store hangs.
import { type SessionId, SessionManager, type Store } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it } from 'vitest'
import { collectGarbage } from '../support/collect-garbage.ts'

it('30,000 calls given up while a store hangs keep less than 20 MB', async () => {
  const used = () => {
    collectGarbage()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  const kept: unknown[] = []
  const store: Store = Object.assign(new MemoryStore(), {
    // As much as a client keeps of a command that has no answer: its text, its promise.
    read: (key: string) =>
      new Promise<never>(resolve => {
        kept.push({ resolve, command: Array.from({ length: 200 }, () => key) })
      }),
  })
  const sessions = new SessionManager({ store, sweepInterval: false, storeTimeout: '50ms' })
  const before = used()
  const told: Record<string, number> = {}
  for (let round = 0; round < 30; round += 1)
    await Promise.all(
      Array.from({ length: 1000 }, () =>
        sessions.get('A'.repeat(43) as SessionId).catch(({ outcome }) => {
          told[outcome] = (told[outcome] ?? 0) + 1
        }),
      ),
    )
  expect(told).toEqual({ 'not-applied': 30_000 })
  expect(kept.length).toBeGreaterThan(1000)
  expect(used() - before).toBeLessThan(20_000_000)
})
