import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { AFTER, BEFORE, KEY, NONE, type ShortTexts, Slots } from '../../../stores/memory/slots.ts'

const keyed = (key: string): ShortTexts => [key, null, null, null, null]

describe('the slots of the memory store', () => {
  it('are never given twice, and keep what was written into them', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -1500, max: 1500 }), { maxLength: 20 }), runs => {
        const slots = new Slots()
        const kept: number[] = []
        for (const run of runs) {
          for (let times = 0; times < run; times++) {
            const slot = slots.take()
            slots.setShortTexts(slot, keyed(`key of ${slot}`))
            slots.setNumber(slot, 0, slot + 0.5)
            kept.push(slot)
          }
          // Taken from both ends, so that blocks become empty in any order.
          for (let times = 0; times < -run && kept.length > 0; times++)
            slots.release(times % 3 === 0 ? kept.shift()! : kept.pop()!)
        }
        expect(new Set(kept).size).toBe(kept.length)
        expect(kept).not.toContain(NONE)
        for (const slot of kept) {
          if (slots.text(slot, KEY) !== `key of ${slot}` || slots.number(slot, 0) !== slot + 0.5)
            throw new Error(`slot ${slot} was overwritten`)
        }
        for (const slot of kept) slots.release(slot)
        expect(slots.blocks).toBeLessThanOrEqual(2)
      }),
      { numRuns: 30 },
    )
  })

  it('take no block again and again where one session comes and goes', () => {
    const slots = new Slots()
    const kept = Array.from({ length: 2047 }, () => slots.take())
    const made = vi.spyOn(globalThis, 'ArrayBuffer')
    for (let times = 0; times < 100; times++) slots.release(slots.take())
    expect(made.mock.calls.length).toBeLessThanOrEqual(1)
    made.mockRestore()
    expect(kept).toHaveLength(2047)
  })

  it('stay in the order of their ring, whoever leaves', () => {
    const slots = new Slots()
    const [a, b, c] = [slots.take(), slots.take(), slots.take()]
    slots.join(a, NONE, BEFORE, AFTER)
    slots.join(b, a, BEFORE, AFTER)
    slots.join(c, a, BEFORE, AFTER)
    expect(slots.leave(a, BEFORE, AFTER)).toBe(b)
    expect([slots.link(b, AFTER), slots.link(c, AFTER), slots.link(b, BEFORE)]).toEqual([c, b, c])
    expect(slots.leave(c, BEFORE, AFTER)).toBe(b)
    expect(slots.leave(b, BEFORE, AFTER)).toBe(NONE)
  })
})
