const BITS = 11
const BLOCK = 1 << BITS
const LAST = BLOCK - 1

/** No slot, and no block. */
export const NONE = 0

const NO_NUMBERS = new Float64Array(0)
const NO_LINKS = new Int32Array(0)

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
/** Where each of the short texts ends; the complement of it where there is none. */
const ENDS = 7
const LINKS = 12

// Its texts: short ones, of which only the last changes, and the data.
export const KEY = 0
export const USER_ID = 1
export const USERNAME = 2
export const PARENT = 3
export const WRITE_ID = 4
export const DATA = 5
/** All texts but the data, in their order. */
export type ShortTexts = readonly [
  key: string | null,
  userId: string | null,
  username: string | null,
  parent: string | null,
  writeId: string | null,
]
// The cells of a slot that keep its texts.
const SHORT = 0
const LONG = 1
const CELLS = 2

/** Two small numbers take the place of one number. */
const WIDTH = NUMBERS + LINKS / 2
const FIRST_LINK = 2 * NUMBERS

/** The kind of a slot that is in no use. */
const FREE = -1
/** With so many slots in use for each of the other blocks, a block is worth emptying. */
const FEW = (3 / 4) * BLOCK
/** How many slots are looked at for one that has to move. */
const LOOKS = 64

const placeOf = (end: number) => (end < 0 ? ~end : end)

/**
 * The fields of what a memory store keeps, in blocks of 2,048 slots; a slot is a number above 0. An object per session,
 * with boxed numbers and pointers of 8 bytes, takes 150 bytes more.
 *
 * A read of one session among millions spends most of its time waiting for memory that it has not seen lately, on pages
 * that the processor has to look up. So all numbers of a slot are side by side, its short texts are one string, and the
 * blocks are so large that what leads to them stays at hand.
 *
 * A block without a slot in use is given back, save the one that the next slot comes from. Where a few slots in use keep
 * many blocks, `straggler` names those that have to move.
 */
export class Slots {
  // A slot has the number of its block in its upper bits. There is no block 0, and so no slot 0.
  readonly #numbers = [NO_NUMBERS]
  readonly #links = [NO_LINKS]
  readonly #texts: (string | null)[][] = [[]]
  /** How many slots of each block are in use. */
  readonly #used = [0]
  /** How many slots of each block have ever been in use: the first ones. */
  readonly #begun = [0]
  /** The first free slot of each block among those. */
  readonly #free = [NONE]
  /** The blocks that have a free slot, save the one that is being emptied. The next slot comes from the last of them. */
  readonly #open: number[] = []
  /** The blocks that were given back. */
  readonly #gone: number[] = []
  #size = 0
  /** The block that is being emptied, and how many of its slots were looked at. */
  #leaving = NONE
  #looked = 0

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

  /** A text that was set; of a long key it is a view, which keeps the other short texts as long as it is kept. */
  text(slot: number, field: number): string | null {
    const texts = this.#texts[slot >> BITS]!
    const cell = (slot & LAST) * CELLS
    if (field === DATA) return texts[cell + LONG]!
    const end = this.link(slot, ENDS + field)
    if (end < 0) return null
    const begin = field === KEY ? 0 : placeOf(this.link(slot, ENDS + field - 1))
    return texts[cell + SHORT]!.slice(begin, end)
  }

  setShortTexts(slot: number, texts: ShortTexts): void {
    let end = 0
    for (let field = KEY; field <= WRITE_ID; field++) {
      const text = texts[field]!
      end += text?.length ?? 0
      this.setLink(slot, ENDS + field, text === null ? ~end : end)
    }
    // Joined, not added: a sum would keep its parts until it is read, and the collector would have a tree to visit.
    this.#texts[slot >> BITS]![(slot & LAST) * CELLS + SHORT] = texts.join('')
  }

  setWriteId(slot: number, writeId: string): void {
    const texts = this.#texts[slot >> BITS]!
    const cell = (slot & LAST) * CELLS + SHORT
    const begin = placeOf(this.link(slot, ENDS + WRITE_ID - 1))
    this.setLink(slot, ENDS + WRITE_ID, begin + writeId.length)
    texts[cell] = [texts[cell]!.slice(0, begin), writeId].join('')
  }

  setData(slot: number, data: string): void {
    this.#texts[slot >> BITS]![(slot & LAST) * CELLS + LONG] = data
  }

  /** A slot that nothing uses. Its numbers and links are those of whatever used it before. */
  take(): number {
    const block = this.#open.at(-1) ?? this.#add()
    let slot = this.#free[block]!
    if (slot === NONE) slot = (block << BITS) + this.#begun[block]!++
    else this.#free[block] = this.link(slot, NEXT)
    this.setLink(slot, KIND, NONE)
    this.#size++
    const used = this.#used[block]! + 1
    this.#used[block] = used
    if (used === BLOCK) this.#open.pop()
    return slot
  }

  release(slot: number): void {
    const block = slot >> BITS
    const texts = this.#texts[block]!
    texts[(slot & LAST) * CELLS + SHORT] = null
    texts[(slot & LAST) * CELLS + LONG] = null
    this.setLink(slot, KIND, FREE)
    this.setLink(slot, NEXT, this.#free[block]!)
    this.#free[block] = slot
    this.#size--
    const used = this.#used[block]! - 1
    this.#used[block] = used
    if (block === this.#leaving) {
      if (used > 0) return
      this.#leaving = NONE
      this.#giveBack(block)
      return
    }
    const next = this.#open.at(-1)
    if (used === LAST) {
      // Slots come from this block next.
      if (next !== undefined && this.#used[next] === 0) this.#giveBack(this.#open.pop()!)
      this.#open.push(block)
    } else if (used === 0 && block !== next) {
      this.#open.splice(this.#open.indexOf(block), 1)
      this.#giveBack(block)
    }
  }

  /**
   * A slot that has to move to one of `take`, so that the others of its block are given back; `NONE` where there was none
   * among the next 64, `undefined` where no block is worth it. The caller moves each slot before it asks for the next.
   */
  straggler(): number | undefined {
    if (this.#leaving === NONE) this.#choose()
    const block = this.#leaving
    if (block === NONE) return undefined
    const end = Math.min(this.#looked + LOOKS, this.#begun[block]!)
    while (this.#looked < end) {
      const slot = (block << BITS) + this.#looked++
      if (this.link(slot, KIND) !== FREE) return slot
    }
    return NONE
  }

  /** Gives a slot the fields of another one. */
  copy(from: number, to: number): void {
    const row = (from & LAST) * 2 * WIDTH
    this.#links[to >> BITS]!.set(this.#links[from >> BITS]!.subarray(row, row + 2 * WIDTH), (to & LAST) * 2 * WIDTH)
    const texts = this.#texts[from >> BITS]!
    for (let cell = 0; cell < CELLS; cell++)
      this.#texts[to >> BITS]![(to & LAST) * CELLS + cell] = texts[(from & LAST) * CELLS + cell]!
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

  /** Puts a copy of a slot into its place in a ring. */
  standIn(slot: number, copy: number, back: number, forth: number): void {
    const next = this.link(slot, forth)
    if (next === slot) this.join(copy, NONE, back, forth)
    else {
      this.setLink(this.link(slot, back), forth, copy)
      this.setLink(next, back, copy)
    }
  }

  /** How many blocks take memory. */
  get blocks(): number {
    return this.#used.length - 1 - this.#gone.length
  }

  #add(): number {
    const block = this.#gone.pop() ?? this.#used.length
    const buffer = new ArrayBuffer(BLOCK * WIDTH * 8)
    this.#numbers[block] = new Float64Array(buffer)
    this.#links[block] = new Int32Array(buffer)
    this.#texts[block] = new Array<string | null>(BLOCK * CELLS).fill(null)
    this.#used[block] = 0
    this.#begun[block] = 0
    this.#free[block] = NONE
    this.#open.push(block)
    return block
  }

  #giveBack(block: number): void {
    this.#numbers[block] = NO_NUMBERS
    this.#links[block] = NO_LINKS
    this.#texts[block] = []
    this.#gone.push(block)
  }

  // The block with the fewest slots in use, where the others have room for them and for as many again as are free then.
  #choose(): void {
    if (this.#size > (this.blocks - 1) * FEW) return
    let least = NONE
    for (const block of this.#open)
      if (this.#used[block]! > 0 && (least === NONE || this.#used[block]! < this.#used[least]!)) least = block
    if (least === NONE) return
    this.#open.splice(this.#open.indexOf(least), 1)
    this.#leaving = least
    this.#looked = 0
  }
}
