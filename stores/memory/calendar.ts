import { AFTER, BEFORE, EXPIRES_AT, KIND, NONE, type Slots } from './slots.ts'

const SPAN = 10_000 // ms
/** The kind of the slot that a span starts with. */
const START = -2
/** How many slots of the earliest span are asked whether they are due. */
const ASKED = 64

/**
 * Slots by the instant at which they expire, in rings of ten seconds. Adding and removing one takes the same time among
 * ten and among a million; a Set per span instead of a ring would cost 30 bytes more for each session.
 */
export class Calendar {
  readonly #slots: Slots
  /** The start of each ring, a slot of its own, by its first instant. */
  readonly #spans = new Map<number, number>()
  /** No span begins earlier than this. */
  #earliest = Number.POSITIVE_INFINITY

  constructor(slots: Slots) {
    this.#slots = slots
  }

  add(slot: number): void {
    const instant = this.#slots.number(slot, EXPIRES_AT)
    const begin = instant - (instant % SPAN)
    let start = this.#spans.get(begin)
    if (start === undefined) {
      start = this.#slots.take()
      this.#slots.setLink(start, KIND, START)
      this.#slots.setNumber(start, EXPIRES_AT, begin)
      this.#slots.join(start, NONE, BEFORE, AFTER)
      this.#spans.set(begin, start)
      if (begin < this.#earliest) this.#earliest = begin
    }
    this.#slots.join(slot, start, BEFORE, AFTER)
  }

  remove(slot: number): void {
    const next = this.#slots.leave(slot, BEFORE, AFTER)
    if (this.#slots.link(next, AFTER) !== next) return
    this.#spans.delete(this.#slots.number(next, EXPIRES_AT))
    this.#slots.release(next)
  }

  /** A slot of the calendar has moved. Answers whether that is all there is to it: it was the start of a span. */
  standIn(slot: number, copy: number): boolean {
    this.#slots.standIn(slot, copy, BEFORE, AFTER)
    const isStart = this.#slots.link(copy, KIND) === START
    if (isStart) this.#spans.set(this.#slots.number(copy, EXPIRES_AT), copy)
    return isStart
  }

  /** How many spans hold a slot. */
  get spans(): number {
    return this.#spans.size
  }

  /** A slot that expires before the instant. Of the span that the instant falls into, only the first 64 are asked. */
  dueBefore(instant: number): number | undefined {
    const start = this.#spanBefore(instant)
    if (start === undefined) return undefined
    let slot = this.#slots.link(start, AFTER)
    for (let asked = 0; slot !== start && asked < ASKED; asked++) {
      if (this.#slots.number(slot, EXPIRES_AT) < instant) return slot
      slot = this.#slots.link(slot, AFTER)
    }
    return undefined
  }

  // Steps to the next span. A gap may be years: after as many steps as there are spans, looking at all of them is cheaper.
  #spanBefore(instant: number): number | undefined {
    for (let steps = 0; this.#earliest < instant; steps++) {
      const start = this.#spans.get(this.#earliest)
      if (start !== undefined) return start
      if (steps < this.#spans.size) this.#earliest += SPAN
      else {
        this.#earliest = Number.POSITIVE_INFINITY
        for (const begin of this.#spans.keys()) if (begin < this.#earliest) this.#earliest = begin
      }
    }
    return undefined
  }
}
