import { HASH, KEY, NEXT, NONE, type Slots } from './slots.ts'

const BITS = 10
const PIECE = 1 << BITS
const LAST = PIECE - 1

// Keys are hashes of IDs that the manager draws: no client can choose the end of one, so a hash without a secret will do.
function hashOf(key: string): number {
  let hash = 0
  for (let at = key.length - 8; at < key.length; at++) hash = (Math.imul(hash, 31) + key.charCodeAt(at)) | 0
  hash = Math.imul(hash ^ (hash >>> 15), 0x9e3779b1)
  return hash ^ (hash >>> 15)
}

/** The bits in reverse order, as an unsigned number. */
function reversed(bits: number): number {
  let from = bits
  let to = 0
  for (let bit = 0; bit < 32; bit++) {
    to = (to << 1) | (from & 1)
    from >>>= 1
  }
  return to >>> 0
}

/** A key's place is its hash with the bits reversed; all places are below this. */
export const PLACES = 2 ** 32

/**
 * Finds the slot of a key. It has about as many buckets as keys and grows and shrinks by single buckets (linear hashing,
 * Litwin 1980): of a million keys, a Map stops the process for 50 ms at the set at which it grows. An entry takes
 * 4 bytes beside its slot, in a Map 28 to 56.
 */
export class KeyIndex {
  readonly #slots: Slots
  /** The first slot of each bucket, in pieces: growing copies nothing. */
  readonly #first: Int32Array[] = [new Int32Array(PIECE)]
  #buckets = PIECE
  /** The power of two that the buckets have reached; those below `#buckets - #round` are split into two. */
  #round = PIECE
  #size = 0

  constructor(slots: Slots) {
    this.#slots = slots
  }

  find(key: string): number {
    const slots = this.#slots
    const hash = hashOf(key)
    let slot = this.#firstOf(this.#bucketOf(hash))
    while (slot !== NONE && (slots.link(slot, HASH) !== hash || slots.text(slot, KEY) !== key))
      slot = slots.link(slot, NEXT)
    return slot
  }

  /** A slot whose key is not in the index. */
  add(slot: number): void {
    const hash = hashOf(this.#slots.text(slot, KEY)!)
    this.#slots.setLink(slot, HASH, hash)
    this.#put(slot, this.#bucketOf(hash))
    this.#size++
    if (this.#size > this.#buckets) this.#split()
  }

  /** A slot that is in the index. */
  remove(slot: number): void {
    const slots = this.#slots
    const bucket = this.#bucketOf(slots.link(slot, HASH))
    this.#redirect(bucket, slot, slots.link(slot, NEXT))
    this.#size--
    // One or two: before, there were at most twice as many as keys.
    while (this.#buckets > PIECE && this.#buckets > 2 * this.#size) this.#merge()
  }

  /**
   * The slots of the keys from a place on, bucket by bucket until there are `limit` or as many buckets were looked at;
   * and the place to go on from, `PLACES` at the end.
   *
   * A bucket has the keys whose hashes end with the same bits, so that in the order of places it is one piece, and what a
   * split or a merge makes of it is a part of that piece or contains it (as in the SCAN of Redis). So a walk meets each key
   * that stays once, however many come and go, and wherever their slots are.
   */
  from(place: number, limit: number): { readonly met: number[]; readonly next: number } {
    const slots = this.#slots
    const met: number[] = []
    let next = place
    for (let looks = 0; next < PLACES && looks < limit && met.length < limit; looks++) {
      const bucket = this.#bucketOf(reversed(next))
      const begin = next
      for (let slot = this.#firstOf(bucket); slot !== NONE; slot = slots.link(slot, NEXT))
        // Where a merge has put those before it, which were met already, into the same bucket.
        if (reversed(slots.link(slot, HASH)) >= begin) met.push(slot)
      const isSplit = bucket >= this.#round || bucket < this.#buckets - this.#round
      next = reversed(bucket) + PLACES / (isSplit ? 2 * this.#round : this.#round)
    }
    return { met, next }
  }

  /** A slot of the index has moved. */
  standIn(slot: number, copy: number): void {
    this.#redirect(this.#bucketOf(this.#slots.link(slot, HASH)), slot, copy)
  }

  /** How many buckets there are. */
  get buckets(): number {
    return this.#buckets
  }

  #bucketOf(hash: number): number {
    const bucket = hash & (2 * this.#round - 1)
    return bucket < this.#buckets ? bucket : bucket - this.#round
  }

  #firstOf(bucket: number): number {
    return this.#first[bucket >> BITS]![bucket & LAST]!
  }

  #setFirst(bucket: number, slot: number): void {
    this.#first[bucket >> BITS]![bucket & LAST] = slot
  }

  // Lets what leads to a slot of the bucket lead to another one.
  #redirect(bucket: number, slot: number, to: number): void {
    const slots = this.#slots
    let before = this.#firstOf(bucket)
    if (before === slot) this.#setFirst(bucket, to)
    else {
      while (slots.link(before, NEXT) !== slot) before = slots.link(before, NEXT)
      slots.setLink(before, NEXT, to)
    }
  }

  #put(slot: number, bucket: number): void {
    this.#slots.setLink(slot, NEXT, this.#firstOf(bucket))
    this.#setFirst(bucket, slot)
  }

  // One bucket more: the half of an old one whose hashes have the next bit.
  #split(): void {
    const added = this.#buckets++
    if ((added & LAST) === 0) this.#first.push(new Int32Array(PIECE))
    this.#move(added - this.#round)
    if (this.#buckets === 2 * this.#round) this.#round *= 2
  }

  #merge(): void {
    if (this.#buckets === this.#round) this.#round /= 2
    const last = --this.#buckets
    this.#move(last)
    if ((last & LAST) === 0) this.#first.pop()
  }

  // Puts what is in a bucket where it belongs now.
  #move(from: number): void {
    const slots = this.#slots
    let slot = this.#firstOf(from)
    this.#setFirst(from, NONE)
    while (slot !== NONE) {
      const next = slots.link(slot, NEXT)
      this.#put(slot, this.#bucketOf(slots.link(slot, HASH)))
      slot = next
    }
  }
}
