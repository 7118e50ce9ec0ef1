const BITS = 10
const BLOCK = 1 << BITS
const LAST = BLOCK - 1

/** No slot. */
export const NONE = 0

// The numbers of a slot.
export const CREATED_AT = 0
export const SEEN_AT = 1
/** When the slot may be given up. */
export const EXPIRES_AT = 2
export const ABSOLUTE_EXPIRES_AT = 3
export const VERSION = 4
/** NaN where there is none. */
export const PASSWORD_VERSION = 5
const NUMBERS = 6

// Its small numbers: what it is, and the slots that it is linked with.
export const KIND = 0
export const HASH = 1
/** The next slot of the same bucket of the index, or the next free one. */
export const NEXT = 2
export const BEFORE = 3
export const AFTER = 4
export const OLDER = 5
export const NEWER = 6
const LINKS = 8

// Its texts.
export const KEY = 0
export const USER_ID = 1
export const USERNAME = 2
export const DATA = 3
export const WRITE_ID = 4
export const PARENT = 5
const TEXTS = 6

/** Two small numbers take the place of one number. */
const WIDTH = NUMBERS + LINKS / 2
const FIRST_LINK = 2 * NUMBERS

/**
 * The fields of what a memory store keeps, in blocks of 1,024 slots; a slot is a number above 0. An object per session,
 * with boxed numbers and pointers of 8 bytes, takes 150 bytes more. All numbers of a slot are side by side: a read of one
 * among millions spends most of its time waiting for memory that it has not seen lately.
 *
 * A block without a slot in use is given back, save the one that the next slot comes from.
 */
export class Slots {
  readonly #numbers: Float64Array[] = []
  readonly #links: Int32Array[] = []
  readonly #texts: (string | null)[][] = []
  /** How many slots of each block are in use. */
  readonly #used: number[] = []
  readonly #free: number[] = []
  /** The blocks with a free slot. The next one comes from the last of them. */
  readonly #open: number[] = []

  number(slot: number, field: number): number {
    return this.#numbers[slot >> BITS]![(slot & LAST) * WIDTH + field]!
  }

  setNumber(slot: number, field: number, value: number): void {
    this.#numbers[slot >> BITS]![(slot & LAST) * WIDTH + field] = value
  }

  link(slot: number, field: number): number {
    return this.#links[slot >> BITS]![(slot & LAST) * 2 * WIDTH + FIRST_LINK + field]!
  }

  setLink(slot: number, field: number, value: number): void {
    this.#links[slot >> BITS]![(slot & LAST) * 2 * WIDTH + FIRST_LINK + field] = value
  }

  text(slot: number, field: number): string | null {
    return this.#texts[slot >> BITS]![(slot & LAST) * TEXTS + field]!
  }

  setText(slot: number, field: number, value: string | null): void {
    this.#texts[slot >> BITS]![(slot & LAST) * TEXTS + field] = value
  }

  /** A slot that nothing uses. Its numbers and links are those of whatever used it before. */
  take(): number {
    let block = this.#open.at(-1)
    if (block === undefined) {
      block = this.#used.length
      this.#open.push(block)
      // Slot 0 is none.
      this.#used.push(block === 0 ? 1 : 0)
      this.#clear(block)
    }
    if (this.#texts[block]!.length === 0) this.#fill(block)
    const slot = this.#free[block]!
    this.#free[block] = this.link(slot, NEXT)
    const used = this.#used[block]! + 1
    this.#used[block] = used
    if (used === BLOCK) this.#open.pop()
    return slot
  }

  release(slot: number): void {
    const block = slot >> BITS
    for (let field = 0; field < TEXTS; field++) this.setText(slot, field, null)
    this.setLink(slot, NEXT, this.#free[block]!)
    this.#free[block] = slot
    const next = this.#open.at(-1)
    const used = this.#used[block]! - 1
    this.#used[block] = used
    if (used === LAST) {
      // Slots come from this block next.
      if (next !== undefined && this.#used[next] === 0) this.#clear(next)
      this.#open.push(block)
    } else if (used === 0 && block !== next) this.#clear(block)
  }

  /** Puts a slot at the end of a ring, before its first; `NONE`: it is a ring of its own. */
  join(slot: number, first: number, back: number, forth: number): void {
    if (first === NONE) {
      this.setLink(slot, back, slot)
      this.setLink(slot, forth, slot)
      return
    }
    const end = this.link(first, back)
    this.setLink(slot, back, end)
    this.setLink(slot, forth, first)
    this.setLink(end, forth, slot)
    this.setLink(first, back, slot)
  }

  /** Takes a slot out of its ring; answers the next one, or `NONE` where it was alone. */
  leave(slot: number, back: number, forth: number): number {
    const next = this.link(slot, forth)
    if (next === slot) return NONE
    const previous = this.link(slot, back)
    this.setLink(previous, forth, next)
    this.setLink(next, back, previous)
    return next
  }

  /** How many blocks take memory. */
  get blocks(): number {
    return this.#texts.filter(({ length }) => length > 0).length
  }

  #fill(block: number): void {
    const buffer = new ArrayBuffer(BLOCK * WIDTH * 8)
    this.#numbers[block] = new Float64Array(buffer)
    this.#links[block] = new Int32Array(buffer)
    this.#texts[block] = new Array<string | null>(BLOCK * TEXTS).fill(null)
    const first = block << BITS
    const second = block === 0 ? 1 : first
    for (let slot = second; slot < first + LAST; slot++) this.setLink(slot, NEXT, slot + 1)
    this.#free[block] = second
  }

  #clear(block: number): void {
    this.#numbers[block] = NO_NUMBERS
    this.#links[block] = NO_LINKS
    this.#texts[block] = []
  }
}

const NO_NUMBERS = new Float64Array(0)
const NO_LINKS = new Int32Array(0)
