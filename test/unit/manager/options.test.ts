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
  const given = {
    storeTimeout: '3s',
    rememberFor: '30d',
    sweepInterval: '10m',
    absoluteTimeout: '2h',
    idleTimeout: '2h',
  }
  expect(resolveOptions({ store, ...given, touchInterval: '1h' } as never)).toMatchObject({
    idle: 7_200_000,
    absolute: 7_200_000,
    touchInterval: 3_600_000,
    storeTimeout: 3000,
    rememberFor: 2_592_000_000,
    sweepInterval: 600_000,
    minPasswordVersionLifetime: 86_400_000,
  })
  const others = {
    userIds: 'string',
    maxDataBytes: 8,
    limit: { max: 9, onLimit: 'refuse' },
    onTheft: 'invalidate-user',
  }
  expect(resolveOptions({ store, ...others, maxPendingCalls: 7 } as never)).toMatchObject({
    ...others,
    maxPendingCalls: 7,
  })
  expect(resolveOptions({ store, sweepInterval: false }).sweepInterval).toBeNull()
  Object.defineProperty(store, 'sweep', { value: undefined })
  expect(resolveOptions({ store, sweepInterval: '10m' }).sweepInterval).toBeNull()
  expect(resolveOptions({ store, idleTimeout: '9ms' }).touchInterval).toBe(1)
})
