// Writes that come late to a database on a network. The clock of this process is behind instead: the same difference tells.
import { expect, it, vi } from 'vitest'
import { failure } from '../support/failure.ts'
import { onEach, SERVERS } from './databases.ts'
import { call, record } from './records.ts'
import { LATE, WHENEVER } from './writes.ts'

/** Works while the clock of this process is behind. */
async function behind<T>(ms: number, work: () => Promise<T>): Promise<T> {
  const real = Date.now.bind(Date)
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => real() - ms)
  return work().finally(() => clock.mockRestore())
}

let users = 9000
onEach([...SERVERS, 'D1'], 'a write that comes late to', get => {
  /** Two sessions of a new user, of which the first is stored. */
  const begun = async () => {
    const store = get().open()
    const userId = `${++users}`
    const [one, other] = [record({ userId }), record({ userId })]
    await store.create(one, call())
    return { store, one, other }
  }

  it.each(Object.entries(WHENEVER))('is done whenever it comes if it is a %s', async (what, write) => {
    const { store, one, other } = await begun()
    expect(await behind(400_000, () => write(store, one, other))).toBeTruthy()
    if (what !== 'touch') expect(await store.read(one.key, call())).toBe(null)
  })

  it.each(Object.entries(LATE))(
    'is refused after the tolerance of clocks, which names both, if it is a %s',
    async (_, write) => {
      const { store, one, other } = await begun()
      const error = await behind(400_000, () => failure(write(store, one, other)))
      expect(error.outcome).toBe('not-applied')
      expect(String(error.cause)).toMatch(/came too late: the clock of the database says 2.*Z, that of this process 2/)
      expect(await store.read(one.key, call())).toEqual(one)
      expect(await store.read(other.key, call())).toBe(null)
      expect(await behind(240_000, () => write(store, one, other))).toBeTruthy()
    },
  )
})
