import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { KeyIndex, PLACES } from '../../../stores/memory/key-index.ts'
import { NONE, type ShortTexts, Slots } from '../../../stores/memory/slots.ts'

const keyed = (key: string): ShortTexts => [key, null, null, null, null]

describe('the index of the memory store', () => {
  const index = () => {
    const slots = new Slots()
    const entries = new KeyIndex(slots)
    const add = (key: string) => {
      const slot = slots.take()
      slots.setShortTexts(slot, keyed(key))
      entries.add(slot)
      return slot
    }
    return { slots, entries, add }
  }

  it('finds a key that is shorter than what it hashes, and an empty one', () => {
    const { entries, add } = index()
    for (const key of ['', 'a', 'b', 'ab', '\u0000', '1234567', '12345678', '123456789']) {
      expect(entries.find(key)).toBe(NONE)
      const slot = add(key)
      expect(entries.find(key)).toBe(slot)
    }
  })

  it('is walked over in pages that look at no more buckets than they are told, and stop where they have enough keys', () => {
    const { entries, add } = index()
    const slot = add('alone')
    const met: number[] = []
    let pages = 0
    for (let place = 0; place < PLACES; pages++) {
      const answer = entries.from(place, 16)
      met.push(...answer.met)
      place = answer.next
    }
    expect([pages, met]).toEqual([1024 / 16, [slot]])
    for (let number = 0; number < 3000; number++) add(`key ${number}`)
    let place = 0
    const all = new Set<number>()
    while (place < PLACES) {
      const answer = entries.from(place, 10)
      // A bucket is met whole.
      expect(answer.met.length).toBeLessThan(10 + 20)
      for (const each of answer.met) all.add(each)
      place = answer.next
    }
    expect(all.size).toBe(3001)
  })

  it('has at least as many buckets as keys, and at most twice as many, as keys come and go', () => {
    const { slots, entries, add } = index()
    const kept = Array.from({ length: 3000 }, (_, number) => add(`key ${number}`))
    for (let size = kept.length; size > 0; size--) {
      expect(entries.buckets).toBeGreaterThanOrEqual(size)
      expect(entries.buckets).toBeLessThanOrEqual(Math.max(1024, 2 * size))
      const slot = kept.pop()!
      entries.remove(slot)
      slots.release(slot)
    }
  })

  it('takes about 4 bytes for each key', () => {
    const { add } = index()
    const made = vi.spyOn(globalThis, 'Int32Array')
    for (let number = 0; number < 10_000; number++) add(`key ${number}`)
    // Slots take views of memory of their own.
    const buckets = (made.mock.calls as unknown[][]).map(([size]) => size).filter(size => typeof size === 'number')
    made.mockRestore()
    expect(buckets.length).toBeGreaterThan(0)
    expect(buckets.reduce((sum, size) => sum + size, 0)).toBeLessThan(11_000)
  })

  it('stops a page at the bucket with which it has enough keys, however many keys end alike', () => {
    const { entries, add } = index()
    for (let group = 0; group < 16; group++)
      for (let number = 0; number < 50; number++) add(`${number} ${String(group).padStart(8, '0')}`)
    const sizes: number[] = []
    for (let place = 0; place < PLACES; ) {
      const { met, next } = entries.from(place, 50)
      sizes.push(met.length)
      place = next
    }
    expect(sizes.filter(size => size > 0)).toEqual(Array.from({ length: 16 }, () => 50))
  })

  it('meets no key again whose bucket was merged with those that the walk has behind it', () => {
    for (let stop = 1; stop <= 24; stop++) {
      const { slots, entries, add } = index()
      const all = Array.from({ length: 4500 }, (_, number) => add(`key ${number}`))
      const staying = all.filter((_, number) => number % 5 === 0)
      const met: number[] = []
      let place = 0
      const walk = (pages: number) => {
        for (let page = 0; page < pages && place < PLACES; page++) {
          const answer = entries.from(place, 1)
          met.push(...answer.met)
          place = answer.next
        }
      }
      walk(stop)
      for (const [number, slot] of all.entries())
        if (number % 5 !== 0) {
          entries.remove(slot)
          slots.release(slot)
        }
      expect(entries.buckets).toBeLessThan(2000)
      walk(Number.POSITIVE_INFINITY)
      const wanted = new Set(staying)
      expect(met.filter(slot => wanted.has(slot)).sort((a, b) => a - b)).toEqual(staying)
    }
  })

  it('meets the keys of the very first place', () => {
    const { entries, add } = index()
    const [none, zeros] = [add(''), add('\u0000'.repeat(8))]
    expect(entries.from(0, 1).met.toSorted((a, b) => a - b)).toEqual([none, zeros])
  })

  it('leads to a copy of a slot in its place', () => {
    const { slots, entries, add } = index()
    const keys = Array.from({ length: 5000 }, (_, number) => `key ${number}`)
    const at = new Map(keys.map(key => [key, add(key)]))
    for (const [key, slot] of at) {
      const copy = slots.take()
      slots.copy(slot, copy)
      entries.standIn(slot, copy)
      slots.release(slot)
      at.set(key, copy)
      if (entries.find(key) !== copy) throw new Error(`${key} was lost`)
    }
    for (const [key, slot] of at) if (entries.find(key) !== slot) throw new Error(`${key} was lost`)
    for (const slot of at.values()) entries.remove(slot)
    for (const key of keys) expect(entries.find(key)).toBe(NONE)
  })

  it('spreads keys that differ in a few characters alone', () => {
    const { entries, add } = index()
    const keys = Array.from({ length: 20_000 }, (_, number) => `AAA${String(number).padStart(43, '0')}`)
    for (const key of keys) add(key)
    const links = vi.spyOn(Slots.prototype, 'link')
    for (const key of keys) entries.find(key)
    const count = links.mock.calls.length
    links.mockRestore()
    // A hash that spreads evenly needs 1.5 looks at each key, one step in two, and a look at where the key found ends.
    expect(count / keys.length).toBeLessThan(4)
  })

  it('finds what a Map would find, through any growth and shrinking', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -3000, max: 3000 }), { maxLength: 8 }), fc.nat(), (runs, seed) => {
        const { slots, entries, add } = index()
        const model = new Map<string, number>()
        let drawn = 0
        for (const run of runs) {
          for (let times = 0; times < run; times++) {
            const key = `${seed}-${drawn++}`
            model.set(key, add(key))
          }
          const gone = [...model].slice(0, Math.max(0, -run))
          for (const [key, slot] of gone) {
            entries.remove(slot)
            slots.release(slot)
            model.delete(key)
          }
          for (const [key] of gone) if (entries.find(key) !== NONE) throw new Error(`${key} was found`)
          for (const [key, slot] of model) if (entries.find(key) !== slot) throw new Error(`${key} was lost`)
          expect(entries.buckets).toBeGreaterThanOrEqual(model.size)
          expect(entries.buckets).toBeLessThanOrEqual(Math.max(1024, 2 * model.size))
        }
        for (const slot of model.values()) entries.remove(slot)
        expect(entries.buckets).toBe(1024)
      }),
      { numRuns: 20 },
    )
  })

  it('is walked over by a page at a time, which meets each key that stays once while others come and go', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: -2500, max: 2500 }), { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 1, max: 1500 }),
        (changes, limit) => {
          const { slots, entries, add } = index()
          let drawn = 0
          const key = () => `key ${drawn++}`
          const staying = Array.from({ length: 1200 }, () => add(key()))
          const others = Array.from({ length: 1500 }, () => add(key()))
          const met: number[] = []
          let place = 0
          // Each change comes after some pages, so that it falls into the midst of the walk.
          for (let page = 0; place < PLACES; page++) {
            const answer = entries.from(place, limit)
            met.push(...answer.met)
            expect(answer.next).toBeGreaterThan(place)
            place = answer.next
            const change = page % 3 === 0 ? (changes[page / 3] ?? 0) : 0
            for (let times = 0; times < change; times++) others.push(add(key()))
            for (const slot of change < 0 ? others.splice(0, -change) : []) {
              entries.remove(slot)
              slots.release(slot)
            }
          }
          const wanted = new Set(staying)
          // A slot of another key may have been given again, one that stays not.
          expect(met.filter(slot => wanted.has(slot)).sort((a, b) => a - b)).toEqual(staying.sort((a, b) => a - b))
        },
      ),
      { numRuns: 20 },
    )
  })
})
