import { DEFAULTS } from 'coatcheck'
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it } from 'vitest'
import { resolveOptions } from '../../../src/manager/options.ts'
import { milliseconds } from '../../../src/text/duration.ts'

const store = new MemoryStore()
const resolved = (options: object = {}) => resolveOptions({ store, ...options } as never)

it('the defaults in milliseconds are what the manager works with', () => {
  expect(resolved()).toMatchObject({
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
  expect(resolved({ absoluteTimeout: '30d' }).minPasswordVersionLifetime).toBe(30 * 86_400_000)
  expect(resolved({ limit: { max: 2 } }).limit).toEqual({ max: 2, onLimit: 'end-oldest' })
  expect(milliseconds(DEFAULTS.touchInterval, 'touchInterval')).toBe(resolved().touchInterval)
})

it('the options in milliseconds are what the manager works with', () => {
  const others = { userIds: 'string', maxDataBytes: 8, onTheft: 'invalidate-user', maxPendingCalls: 7 }
  const times = { absoluteTimeout: '2h', idleTimeout: '2h', touchInterval: '1h' }
  const limit = { max: 9, onLimit: 'refuse' }
  const given = { ...others, ...times, limit, storeTimeout: '3s', rememberFor: '30d', sweepInterval: '10m' }
  expect(resolved(given)).toMatchObject({
    ...others,
    idle: 7_200_000,
    absolute: 7_200_000,
    touchInterval: 3_600_000,
    limit,
    storeTimeout: 3000,
    rememberFor: 2_592_000_000,
    sweepInterval: 600_000,
    minPasswordVersionLifetime: 86_400_000,
  })
  expect(resolved({ sweepInterval: false }).sweepInterval).toBeNull()
  const unswept = Object.defineProperty(new MemoryStore(), 'sweep', { value: undefined })
  expect(resolved({ store: unswept, sweepInterval: '10m' }).sweepInterval).toBeNull()
  expect(resolved({ idleTimeout: '9ms' }).touchInterval).toBe(1)
})
