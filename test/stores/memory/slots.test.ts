import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import {
  AFTER,
  BEFORE,
  DATA,
  HASH,
  KEY,
  KIND,
  NONE,
  PARENT,
  type ShortTexts,
  Slots,
  USER_ID,
  USERNAME,
  WRITE_ID,
} from '../../../stores/memory/slots.ts'

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

  it('take 96 bytes each, and their texts none until they are set', () => {
    const slots = new Slots()
    const made = vi.spyOn(globalThis, 'ArrayBuffer')
    const all = Array.from({ length: 2048 }, () => slots.take())
    expect(made.mock.calls).toEqual([[2048 * 96]])
    made.mockRestore()
    for (const slot of all) expect(slots.text(slot, DATA)).toBeNull()
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

  const textsOf = (slots: Slots, slot: number) =>
    [KEY, USER_ID, USERNAME, PARENT, WRITE_ID, DATA].map(field => slots.text(slot, field))

  it('keep each text apart from its neighbours: null, empty, and a write ID that becomes longer or shorter', () => {
    const text = fc.option(fc.string({ maxLength: 5 }))
    const slots = new Slots()
    const [before, slot, after] = [slots.take(), slots.take(), slots.take()]
    const neighbour: ShortTexts = ['key', null, 'name', '', 'write']
    for (const each of [before, after]) {
      slots.setShortTexts(each, neighbour)
      slots.setData(each, 'data')
    }
    fc.assert(
      fc.property(
        fc.tuple(text, text, text, text, text),
        fc.string(),
        fc.array(fc.string()),
        (short, data, writeIds) => {
          slots.setShortTexts(slot, short)
          slots.setData(slot, data)
          expect(textsOf(slots, slot)).toEqual([...short, data])
          for (const writeId of writeIds) {
            slots.setWriteId(slot, writeId)
            expect(textsOf(slots, slot)).toEqual([...short.slice(0, -1), writeId, data])
          }
          for (const each of [before, after]) expect(textsOf(slots, each)).toEqual([...neighbour, 'data'])
        },
      ),
    )
  })

  it('give a block back that is empty, though slots come from another one', () => {
    const slots = new Slots()
    const [first, second] = [0, 1].map(() => Array.from({ length: 2048 }, () => slots.take())) as [number[], number[]]
    slots.release(first.pop()!)
    slots.release(second.pop()!)
    expect(slots.blocks).toBe(2)
    for (const slot of first) slots.release(slot)
    expect(slots.blocks).toBe(1)
  })

  it('let go of their texts when they are released, and leave their neighbours theirs', () => {
    const slots = new Slots()
    const all = [slots.take(), slots.take(), slots.take()]
    for (const slot of all) {
      slots.setShortTexts(slot, keyed(`key ${slot}`))
      slots.setData(slot, `data ${slot}`)
    }
    const [before, gone, after] = all as [number, number, number]
    slots.release(gone)
    expect(slots.text(gone, DATA)).toBeNull()
    expect(() => slots.text(gone, KEY)).toThrow(TypeError)
    for (const slot of [before, after])
      expect([slots.text(slot, KEY), slots.text(slot, DATA)]).toEqual([`key ${slot}`, `data ${slot}`])
  })

  it('are copied with all of their fields, and nothing else is', () => {
    const slots = new Slots()
    const all = Array.from({ length: 2100 }, (_, number) => {
      const slot = slots.take()
      slots.setShortTexts(slot, [`key ${number}`, `${number}`, null, '', `w${number}`])
      slots.setData(slot, `data ${number}`)
      for (let field = 0; field < 6; field++) slots.setNumber(slot, field, number + field / 10)
      for (let field = KIND; field <= 6; field++) slots.setLink(slot, field, number * 10 + field)
      return slot
    })
    const fields = (slot: number) => [
      ...textsOf(slots, slot),
      ...Array.from({ length: 6 }, (_, field) => slots.number(slot, field)),
      ...Array.from({ length: 7 }, (_, field) => slots.link(slot, field)),
    ]
    for (const number of [0, 1, 2047, 2048, 2099])
      expect(fields(all[number]!)).toEqual([
        ...[`key ${number}`, `${number}`, null, '', `w${number}`, `data ${number}`],
        ...Array.from({ length: 6 }, (_, field) => number + field / 10),
        ...Array.from({ length: 7 }, (_, field) => number * 10 + field),
      ])
    // From the first block into the second, and within each.
    for (const [from, to] of [
      [all[5]!, all.at(-7)!],
      [all[2000]!, all[1000]!],
      [all.at(-3)!, all[2]!],
    ] as const) {
      const around = [from - 1, from, from + 1, to - 1, to + 1].map(fields)
      slots.copy(from, to)
      expect(fields(to)).toEqual(fields(from))
      expect([from - 1, from, from + 1, to - 1, to + 1].map(fields)).toEqual(around)
    }
  })

  it('let a copy stand in for one of a ring, and for one that is alone', () => {
    const slots = new Slots()
    const [a, b, c, copy] = [slots.take(), slots.take(), slots.take(), slots.take()]
    for (const slot of [a, b, c]) slots.join(slot, slot === a ? NONE : a, BEFORE, AFTER)
    slots.copy(b, copy)
    slots.standIn(b, copy, BEFORE, AFTER)
    expect([a, copy, c].map(slot => slots.link(slot, AFTER))).toEqual([copy, c, a])
    expect([a, copy, c].map(slot => slots.link(slot, BEFORE))).toEqual([c, a, copy])
    const [alone, other] = [slots.take(), slots.take()]
    slots.join(alone, NONE, BEFORE, AFTER)
    slots.copy(alone, other)
    slots.standIn(alone, other, BEFORE, AFTER)
    expect([slots.link(other, AFTER), slots.link(other, BEFORE)]).toEqual([other, other])
  })

  describe('of which few are in use', () => {
    /** Full blocks of 2,048, of each of which so many are left: every other one, from the first on. */
    const thinned = (...left: number[]) => {
      const slots = new Slots()
      const all = left.map(() => Array.from({ length: 2048 }, () => slots.take()))
      const kept = all.map((block, number) => block.filter((_, place) => place % 2 === 0).slice(0, left[number]))
      for (const [number, block] of all.entries())
        for (const slot of block) if (!kept[number]!.includes(slot)) slots.release(slot)
      return { slots, kept }
    }
    /** Moves what has to move, as the store does; answers what moved, and how often nothing was found. */
    const settle = (slots: Slots) => {
      const moved: number[] = []
      let looks = 0
      for (let slot = slots.straggler(); slot !== undefined; slot = slots.straggler()) {
        looks++
        if (looks > 10_000) throw new Error('it never ends')
        if (slot === NONE) continue
        slots.setLink(slot, HASH, 1)
        slots.copy(slot, slots.take())
        slots.release(slot)
        moved.push(slot)
      }
      return { moved, looks }
    }

    it('move out of the block with the fewest, which is given back', () => {
      const { slots, kept } = thinned(300, 100, 200)
      expect(slots.blocks).toBe(3)
      const { moved, looks } = settle(slots)
      // What has moved into the third block moves again with it, or what was in the first comes to it.
      expect(moved.slice(0, 100)).toEqual(kept[1])
      expect(moved).toHaveLength(100 + 300)
      expect(slots.blocks).toBe(1)
      // 64 places at a time.
      expect(looks).toBeLessThanOrEqual(moved.length + (2 * 2048) / 64)
    })

    it('stay where the others have no room for them and for as many again', () => {
      for (const [left, moves] of [
        [[769, 768], 0],
        [[768, 768], 768],
        [[2048, 1025, 1], 1],
        [[2048, 1025], 0],
        [[1], 0],
      ] as const) {
        const { slots } = thinned(...left)
        expect(settle(slots).moved.length, `${left}`).toBe(moves)
      }
    })

    it('are none: nothing has to move, and one block is kept at most, from which the next one comes', () => {
      const { slots } = thinned(0, 0, 0)
      expect(slots.straggler()).toBeUndefined()
      expect(slots.blocks).toBe(1)
      slots.take()
      expect(slots.blocks).toBe(1)
    })

    it('are looked for at 64 places at a time', () => {
      const slots = new Slots()
      const [first, second] = [0, 1].map(() => Array.from({ length: 2048 }, () => slots.take())) as [number[], number[]]
      for (const slot of [...first.slice(10), ...second.slice(0, -1)]) slots.release(slot)
      const looks = Array.from({ length: 2048 / 64 }, () => slots.straggler())
      expect(looks).toEqual([...Array.from({ length: 2048 / 64 - 1 }, () => NONE), second.at(-1)])
    })

    it('may leave by themselves while their block is emptied, and come meanwhile', () => {
      const { slots, kept } = thinned(300, 100)
      expect(slots.straggler()).toBe(kept[1]![0])
      // None comes from the block that is being emptied.
      const block = (slot: number) => slot >> 11
      const come = Array.from({ length: 50 }, () => slots.take())
      expect(come.map(block)).toEqual(come.map(() => block(kept[0]![0]!)))
      for (const slot of kept[1]!) slots.release(slot)
      expect(slots.blocks).toBe(1)
      expect(slots.straggler()).toBeUndefined()
      for (const slot of [...come, ...kept[0]!]) slots.release(slot)
      expect(slots.blocks).toBe(1)
    })
  })
})
