import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { Calendar } from '../../../stores/memory/calendar.ts'
import { AFTER, BEFORE, EXPIRES_AT, KIND, Slots } from '../../../stores/memory/slots.ts'

describe('the calendar of the memory store', () => {
  const diary = () => {
    const slots = new Slots()
    const calendar = new Calendar(slots)
    const add = (due: number, slot = slots.take()) => {
      slots.setNumber(slot, EXPIRES_AT, due)
      calendar.add(slot)
      return slot
    }
    return { slots, calendar, add, dueOf: (slot: number) => slots.number(slot, EXPIRES_AT) }
  }

  it('keeps the others of a span when one leaves it, and gives none of their slots away', () => {
    for (const leaving of [0, 1, 2]) {
      const { slots, calendar, add } = diary()
      const kept = [add(1), add(2), add(3)]
      const [gone] = kept.splice(leaving, 1)
      calendar.remove(gone!)
      expect(calendar.spans).toBe(1)
      expect(kept).not.toContain(slots.take())
      for (const slot of kept) {
        expect(calendar.dueBefore(10)).toBe(slot)
        calendar.remove(slot)
      }
      expect(calendar.dueBefore(10)).toBeUndefined()
    }
  })

  it('gives up what is due in the order of spans, whatever was added, moved and removed', () => {
    const action = fc.tuple(fc.nat(2), fc.nat(2_000_000), fc.nat(100))
    fc.assert(
      fc.property(fc.array(action, { maxLength: 300 }), fc.nat(2_000_000), (actions, instant) => {
        const { calendar, add, dueOf } = diary()
        const kept: number[] = []
        for (const [verb, due, place] of actions) {
          const slot = kept[place % Math.max(1, kept.length)]
          if (verb === 0 || slot === undefined) kept.push(add(due))
          else {
            calendar.remove(slot)
            if (verb === 1) add(due, slot)
            else kept.splice(kept.indexOf(slot), 1)
          }
        }
        const gone: number[] = []
        for (let slot = calendar.dueBefore(instant); slot !== undefined; slot = calendar.dueBefore(instant)) {
          gone.push(slot)
          calendar.remove(slot)
        }
        expect(new Set(gone)).toEqual(new Set(kept.filter(slot => dueOf(slot) < instant)))
        const spans = gone.map(slot => Math.floor(dueOf(slot) / 10_000))
        expect(spans).toEqual(spans.toSorted((a, b) => a - b))
      }),
    )
  })

  it('forgets the spans of what left before its time, and keeps the order of the rest', () => {
    const { calendar, add, dueOf } = diary()
    const far = Array.from({ length: 20_000 }, (_, number) => add(((number * 7919) % 20_000) * 10_000))
    for (const slot of far.filter((_, number) => number % 200 !== 0)) calendar.remove(slot)
    expect(calendar.spans).toBeLessThan(300)
    for (const slot of far.slice(1, 50)) calendar.add(slot)
    const order: number[] = []
    for (let slot = calendar.dueBefore(1e12); slot !== undefined; slot = calendar.dueBefore(1e12)) {
      order.push(dueOf(slot))
      calendar.remove(slot)
    }
    expect(order).toHaveLength(149)
    expect(order).toEqual(order.toSorted((a, b) => a - b))
    expect(calendar.spans).toBe(0)
  })

  it('finds what is due after a gap of 250,000 years', () => {
    const { calendar, add, dueOf } = diary()
    const [last, first] = [add(8_000_000_000_000_000), add(0)]
    expect(calendar.dueBefore(1)).toBe(first)
    calendar.remove(first)
    expect(calendar.dueBefore(dueOf(last))).toBeUndefined()
    expect(calendar.dueBefore(dueOf(last) + 1)).toBe(last)
  })

  it('asks 64 slots at most to find that none is due', () => {
    const { slots, calendar, add } = diary()
    for (let number = 0; number < 1000; number++) add(15_000)
    const asked = vi.spyOn(slots, 'number')
    expect(calendar.dueBefore(12_000)).toBeUndefined()
    expect(asked).toHaveBeenCalledTimes(64)
    expect(calendar.dueBefore(15_001)).toBeDefined()
    expect(asked).toHaveBeenCalledTimes(65)
  })

  it('takes what expires at the very instant for not due yet', () => {
    const { calendar, add } = diary()
    const slot = add(15_000)
    expect(calendar.dueBefore(15_000)).toBeUndefined()
    expect(calendar.dueBefore(15_001)).toBe(slot)
  })

  it('goes from one span to the next without a look at all of them', () => {
    const { calendar, add } = diary()
    for (let number = 0; number < 1000; number++) add(number * 10_000)
    const looks = vi.spyOn(Map.prototype, 'keys')
    for (let slot = calendar.dueBefore(1e12); slot !== undefined; slot = calendar.dueBefore(1e12)) calendar.remove(slot)
    expect(looks.mock.calls.length).toBeLessThanOrEqual(1)
    looks.mockRestore()
  })

  it('keeps what has moved, the starts of its spans too, and tells these from the rest', () => {
    const { slots, calendar, add, dueOf } = diary()
    const kept = Array.from({ length: 100 }, (_, number) => {
      const slot = add((number % 20) * 10_000 + number)
      // Sessions, series, forwards and floors.
      slots.setLink(slot, KIND, number % 4)
      return slot
    })
    const move = (slot: number) => {
      const copy = slots.take()
      slots.copy(slot, copy)
      const isStart = calendar.standIn(slot, copy)
      slots.release(slot)
      return { copy, isStart }
    }
    const starts = kept.slice(0, 20).map(slot => slots.link(slot, BEFORE))
    for (const start of starts) {
      const { copy, isStart } = move(start)
      expect(isStart).toBe(true)
      expect(slots.link(slots.link(copy, AFTER), BEFORE)).toBe(copy)
    }
    const copies = kept.map(slot => {
      const { copy, isStart } = move(slot)
      expect(isStart).toBe(false)
      return copy
    })
    const before = calendar.spans
    const late = add(15)
    expect(calendar.spans).toBe(before)
    const due: number[] = []
    for (let slot = calendar.dueBefore(1e12); slot !== undefined; slot = calendar.dueBefore(1e12)) {
      due.push(slot)
      calendar.remove(slot)
    }
    expect(due.toSorted((a, b) => a - b)).toEqual([...copies, late].sort((a, b) => a - b))
    const spans = due.map(slot => Math.floor(dueOf(slot) / 10_000))
    expect(spans).toEqual(spans.toSorted((a, b) => a - b))
    expect(calendar.spans).toBe(0)
  })
})
