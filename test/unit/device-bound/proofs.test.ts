import { afterEach, describe, expect, it, vi } from 'vitest'
import { Proofs } from '../../../src/device-bound/proofs.ts'

describe('proofs that are verified in a second', () => {
  afterEach(() => {
    vi.restoreAllMocks()
  })
  const taken = (proofs: Proofs, tries: number, session: string) =>
    Array.from({ length: tries }, () => proofs.take(session)).filter(Boolean).length

  it('are so many in all, and 20 of one session', () => {
    const now = vi.spyOn(performance, 'now').mockReturnValue(1_000_000)
    const proofs = new Proofs(50)
    expect([taken(proofs, 100, 'one'), taken(proofs, 100, 'two'), taken(proofs, 100, 'three')]).toEqual([20, 20, 10])
    now.mockReturnValue(1_000_999)
    expect(taken(proofs, 100, 'four')).toBe(0)
    now.mockReturnValue(1_001_000)
    expect([taken(proofs, 100, 'four'), taken(proofs, 100, 'one')]).toEqual([20, 20])
  })

  it('may be one, and what was not used is not saved', () => {
    const now = vi.spyOn(performance, 'now').mockReturnValue(0)
    const proofs = new Proofs(1)
    expect(taken(proofs, 3, 'one')).toBe(1)
    now.mockReturnValue(60_000)
    expect(taken(proofs, 3, 'one')).toBe(1)
  })
})
