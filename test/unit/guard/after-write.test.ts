// What the failure of a step says whose earlier steps have written.
import { SessionStoreError } from 'coatcheck'
import { expect, it } from 'vitest'
import { afterWrite, eachWrite } from '../../../src/guard/store-calls.ts'

const full = () => Promise.reject(new SessionStoreError('update', 'not-applied', 'update: the store is full'))

it('a step after a write that was not applied is told as one of unknown outcome, with the failure as its cause', async () => {
  const cause = await full().catch(error => error)
  const told = await afterWrite(() => Promise.reject(cause)).catch(error => error)
  expect(told).toBeInstanceOf(SessionStoreError)
  expect(told).toMatchObject({ operation: 'update', outcome: 'unknown', message: 'update: the store is full', cause })
})

it('a step after a write answers, and fails in any other way, as it does', async () => {
  expect(await afterWrite(async () => 1)).toBe(1)
  for (const error of [new SessionStoreError('delete', 'unknown', 'delete: no answer'), new RangeError('no clock')])
    await expect(afterWrite(() => Promise.reject(error))).rejects.toBe(error)
})

it('of several writes a failure is told as it is at the first, and of unknown outcome after that', async () => {
  await expect(eachWrite([1, 2], full)).rejects.toMatchObject({ outcome: 'not-applied' })
  await expect(eachWrite([1, 2], async each => each === 2 && full())).rejects.toMatchObject({ outcome: 'unknown' })
})
