import { DEFAULTS } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it } from 'vitest'
import { resolveOptions } from '../../../src/manager/options.ts'
import { milliseconds } from '../../../src/text/duration.ts'

it('the defaults in milliseconds are what the manager works with', () => {
  const store = new MemoryStore()
  expect(resolveOptions({ store })).toMatchObject({
    idle: 1_800_000,
    absolute: 43_200_000,
    touchInterval: 180_000,
    storeTimeout: 2000,
    maxPendingCalls: 5000,
    userIds: 'bigint',
    maxDataBytes: 16_384,
    limit: null,
    rememberFor: null,
    onTheft: 'end-device',
    sweepInterval: 300_000,
    minPasswordVersionLifetime: 86_400_000,
  })
  expect(resolveOptions({ store, absoluteTimeout: '30d' }).minPasswordVersionLifetime).toBe(30 * 86_400_000)
  expect(resolveOptions({ store, limit: { max: 2 } }).limit).toEqual({ max: 2, onLimit: 'end-oldest' })
  expect(milliseconds(DEFAULTS.touchInterval, 'touchInterval')).toBe(resolveOptions({ store }).touchInterval)
})

it('the options in milliseconds are what the manager works with', () => {
  const store = new MemoryStore()
  const now = () => 7
  expect(
    resolveOptions({
      store,
      idleTimeout: '2h',
      absoluteTimeout: '2h',
      touchInterval: '1h',
      storeTimeout: '3s',
      maxPendingCalls: 7,
      userIds: 'string',
      maxDataBytes: 8,
      limit: { max: 9, onLimit: 'refuse' },
      rememberFor: '30d',
      onTheft: 'invalidate-user',
      sweepInterval: '10m',
      now,
    }),
  ).toMatchObject({
    store,
    idle: 7_200_000,
    absolute: 7_200_000,
    touchInterval: 3_600_000,
    storeTimeout: 3000,
    maxPendingCalls: 7,
    userIds: 'string',
    maxDataBytes: 8,
    limit: { max: 9, onLimit: 'refuse' },
    rememberFor: 2_592_000_000,
    onTheft: 'invalidate-user',
    sweepInterval: 600_000,
    minPasswordVersionLifetime: 86_400_000,
    now,
  })
  expect(resolveOptions({ store, sweepInterval: false }).sweepInterval).toBeNull()
  Object.defineProperty(store, 'sweep', { value: undefined })
  expect(resolveOptions({ store, sweepInterval: '10m' }).sweepInterval).toBeNull()
  expect(resolveOptions({ store, idleTimeout: '9ms' }).touchInterval).toBe(1)
})
