import { afterEach, describe, expect, it, vi } from 'vitest'
import { Rate } from '../../src/device-bound/rate.ts'

describe('so many per second', () => {
  afterEach(() => {
    vi.restoreAllMocks()
  })
  const taken = (rate: Rate, tries: number) => Array.from({ length: tries }, () => rate.take()).filter(Boolean).length

  it('are let through at once, the next ones evenly, and what is not used is not saved', () => {
    const now = vi.spyOn(performance, 'now').mockReturnValue(1_000_000)
    const rate = new Rate(5)
    expect(taken(rate, 20)).toBe(5)
    now.mockReturnValue(1_000_199)
    expect(taken(rate, 20)).toBe(0)
    now.mockReturnValue(1_000_200)
    expect(taken(rate, 20)).toBe(1)
    now.mockReturnValue(1_000_800)
    expect(taken(rate, 20)).toBe(3)
    now.mockReturnValue(1_060_000)
    expect(taken(rate, 20)).toBe(5)
  })

  it('may be one', () => {
    const now = vi.spyOn(performance, 'now').mockReturnValue(0)
    const rate = new Rate(1)
    expect(taken(rate, 3)).toBe(1)
    now.mockReturnValue(1000)
    expect(taken(rate, 3)).toBe(1)
  })
})
