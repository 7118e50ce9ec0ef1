// How long the SQL stores wait and try again, and what they make of errors, by a clock of the test.
import { SessionStoreError } from 'coatcheck'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import {
  cameLate,
  endOf,
  type Failure,
  inputError,
  notBegun,
  Refusal,
  retry,
  storeError,
  tooLate,
  unusable,
} from '../../../stores/sql/retry.ts'

const BUSY: Failure = { outcome: 'not-applied', retry: true }
const LOST: Failure = { outcome: 'unknown', retry: false }

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
  vi.advanceTimersByTime(300)
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const never = () => expect.unreachable()
const now = () => performance.now()
/** The error that a promise is rejected with, though timers have to ring first. */
const errorOf = async (promise: Promise<unknown>): Promise<SessionStoreError> => {
  const thrown = promise.then(never, error => error)
  await vi.runAllTimersAsync()
  return thrown
}

it('gives up 10 ms before the deadline, and 10 s from now where there is none', () => {
  expect(endOf(2000)).toBe(1990)
  expect(endOf(0)).toBe(-10)
  expect(endOf(undefined)).toBe(now() + 10_000)
})

it('tries again what may succeed, until it does', async () => {
  let tries = 0
  const attempt = async () => {
    if (++tries < 4) throw new Error('locked')
    return tries
  }
  const answer = retry('touch', now() + 1000, () => BUSY, attempt)
  await vi.runAllTimersAsync()
  expect(await answer).toBe(4)
})

it('does not try again what failed for good, and says whether it may have been written', async () => {
  let tries = 0
  const attempt = async () => {
    tries += 1
    throw new Error('gone')
  }
  const error = await errorOf(retry('update', now() + 1000, () => LOST, attempt))
  expect(tries).toBe(1)
  expect(error).toBeInstanceOf(SessionStoreError)
  expect(error).toMatchObject({
    operation: 'update',
    outcome: 'unknown',
    message: 'the session store failed in update',
  })
  expect((error.cause as Error).message).toBe('gone')
})

it('believes what the store itself has said of an error, rather than asking what the driver means', async () => {
  let tries = 0
  const attempt = async () => {
    tries += 1
    throw tries === 1 ? new Refusal('changed', BUSY) : notBegun('closed')
  }
  const error = await errorOf(retry('delete', now() + 1000, never, attempt))
  expect(tries).toBe(2)
  expect(error).toMatchObject({ outcome: 'not-applied', cause: { message: 'closed' } })
})

it('pauses longer from try to try, at most 50 ms, and at random, so that two calls do not meet again', async () => {
  vi.spyOn(Math, 'random').mockReturnValue(0.5)
  const at: number[] = []
  const begun = now()
  const attempt = async () => {
    at.push(now() - begun)
    if (at.length < 9) throw new Error('locked')
  }
  const answer = retry('touch', begun + 1000, () => BUSY, attempt)
  await vi.runAllTimersAsync()
  await answer
  // Half of 2, 4, 8, 16, 32, 50, 50 and 50 ms.
  expect(at).toEqual([0, 1, 3, 7, 15, 31, 56, 81, 106])
})

it('does not begin a pause that would last until the end', async () => {
  vi.spyOn(Math, 'random').mockReturnValue(1)
  let tries = 0
  const attempt = async () => {
    tries += 1
    throw new Error('locked')
  }
  const begun = now()
  const error = await errorOf(retry('touch', begun + 6, () => BUSY, attempt))
  // Tries at 0 and 2 ms; the next would come at 6.
  expect([tries, now() - begun]).toEqual([2, 2])
  expect(error).toMatchObject({ operation: 'touch', outcome: 'not-applied', cause: { message: 'locked' } })
})

it('asks the database nothing when the time is over', async () => {
  const error = await errorOf(retry('create', now(), () => BUSY, never))
  expect(error).toMatchObject({
    operation: 'create',
    outcome: 'not-applied',
    cause: { message: 'the deadline passed before the database was asked' },
  })
  expect(tooLate('create').cause).toMatchObject({ message: 'the deadline passed before the database was asked' })
})

it.each(['read', 'listUser', 'scan', 'count'] as const)(
  'says of a %s that failed that nothing was lost by it',
  operation => {
    expect(storeError(operation, LOST, new Error('gone')).outcome).toBe('not-applied')
  },
)

it('says of input that cannot be stored what is wrong with it, by an error of its own kind', () => {
  const error = inputError('update', 'the data is not text')
  expect(error).toMatchObject({ operation: 'update', outcome: 'not-applied' })
  expect(error.cause).toBeInstanceOf(TypeError)
  expect((error.cause as Error).message).toBe('the data is not text')
})

it('tells of what a driver threw nothing but what is no value, also where that is a TypeError', () => {
  const driver = Object.assign(new TypeError("a value 'ada'"), { detail: 'ada' })
  const { cause } = storeError('update', LOST, driver)
  expect((cause as Error).message).toBe('a value …')
  expect(cause).not.toHaveProperty('detail')
  const refused = storeError('update', LOST, notBegun('no connection', new Error("a value 'ada'"))).cause
  expect(refused).toMatchObject({ message: 'no connection', cause: { message: 'a value …' } })
})

it('knows what was refused before or at the database for not written', () => {
  const cause = new Error('no')
  expect(notBegun('closed', cause)).toMatchObject({
    message: 'closed',
    cause,
    failure: { outcome: 'not-applied', retry: false },
  })
  expect(Object.hasOwn(notBegun('closed'), 'cause')).toBe(false)
  expect(unusable('no driver').failure).toEqual({ outcome: 'not-applied', retry: false })
  const late = { message: 'the statement came to the database after its deadline', cause }
  expect(cameLate(cause)).toMatchObject({ ...late, failure: { outcome: 'not-applied', retry: true } })
})
