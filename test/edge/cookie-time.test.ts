import { performance } from 'node:perf_hooks'
import { expect, it } from 'vitest'
import { SessionCookie } from '../../src/visits/cookie.ts'

const cookie = new SessionCookie()

it('reading the cookie takes linear time for hostile headers', () => {
  const hostile = (size: number) => [
    'session_id'.repeat(size / 10),
    'session_id '.repeat(size / 11),
    ' '.repeat(size),
    ';'.repeat(size),
    '='.repeat(size),
    `session_id${' '.repeat(size)}`,
    `session_id=${' '.repeat(size)}x${' '.repeat(size)}`,
    Array.from({ length: size / 10 }, (_, index) => `c${index}=${index}`).join('; '),
  ]
  const cost = (size: number) => {
    const headers = hostile(size)
    let least = Number.POSITIVE_INFINITY
    for (let round = 0; round < 5; round++) {
      const start = performance.now()
      for (const header of headers) cookie.parse(header)
      least = Math.min(least, performance.now() - start)
    }
    return least
  }
  cost(20_000)
  // 32 times the length: a quadratic parser takes 1,024 times as long. A busy machine, whose caches others fill, was
  // seen to take 206 times as long in each of five tries.
  const ratios = Array.from({ length: 5 }, () => cost(640_000) / Math.max(cost(20_000), 0.05))
  expect(Math.min(...ratios)).toBeLessThan(500)
})
