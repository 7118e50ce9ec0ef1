// Sweeps beside everything else that goes on.
import { expect, it } from 'vitest'
import { onEach, SERVERS, type SqlStore } from './databases.ts'
import { isLive, newWriteId, record } from './records.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const living = (changes = {}) => {
  const now = Date.now()
  return record({ createdAt: now, seenAt: now, expiresAt: now + HOUR, absoluteExpiresAt: now + 12 * HOUR, ...changes })
}

/** Logins, reads, touches, updates and logouts by some users at once, until told to stop. */
const traffic = (store: SqlStore, isOver: () => boolean) =>
  Promise.all(
    ['1', '2', '3', '4'].map(async userId => {
      while (!isOver()) {
        const one = living({ userId })
        const now = Date.now()
        const change = { data: '{"n":1}', seenAt: now, expiresAt: now + HOUR, writeId: newWriteId() }
        expect(await store.create(one, { now })).toBe('created')
        expect(await store.touch(one.key, now + 1, now + HOUR, { now })).toBe('touched')
        expect(await store.update(one.key, 1, change, { now })).toBe('updated')
        expect(await store.delete(one.key, { now })).toBe(true)
        await store.deleteUser(userId, { minPasswordVersionUntil: now }, { now })
      }
    }),
  )

onEach(SERVERS, 'a sweep of', get => {
  const old = (count: number) => get().fill({ count, expiresAt: `${Date.now() - HOUR} - n` })
  const stored = () => get().number('SELECT count(*) FROM coatcheck_sessions')

  it('goes on beside logins and logouts, without a deadlock', async () => {
    const store = get().open()
    await old(3000)
    const kept = living()
    await store.create(kept, { now: Date.now() })
    let isOver = false
    const others = traffic(store, () => isOver)
    let removed = 0
    for (let last = 1; last > 0; removed += last) last = await store.sweep(250, { now: Date.now() })
    isOver = true
    await others
    expect([removed, await stored()]).toEqual([3000, 1])
    expect(await isLive(store, kept.key, Date.now())).toBe(true)
    await store.delete(kept.key, { now: Date.now() })
  })

  it('keeps what a login makes beside a session for 30 days after it', async () => {
    const store = get().open()
    const swept = async (userId: string, ago: number) => {
      const end = Date.now() - ago
      const one = living({ userId, createdAt: end - DAY, seenAt: end - DAY, expiresAt: end, absoluteExpiresAt: end })
      await store.create(one, { now: end - 1 })
      return store.sweep(1000, { now: Date.now() })
    }
    expect(await swept('601', 30 * DAY - HOUR)).toBe(1)
    expect(await swept('602', 30 * DAY + HOUR)).toBe(2)
  })
})
