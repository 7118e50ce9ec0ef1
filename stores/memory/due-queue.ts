/** What waits in a `DueQueue`; the queue keeps the position up to date. */
export interface Waiting {
  position: number
}

const FIRST_CAPACITY = 64

/**
 * Items in the order of the instants at which they fall due: a binary heap whose items know their place, so that one
 * that goes early leaves no tombstone. The instants lie side by side in a typed array: comparing touches no object.
 */
export class DueQueue<T extends Waiting> {
  readonly #items: T[] = []
  #due = new Float64Array(FIRST_CAPACITY)

  get size(): number {
    return this.#items.length
  }

  /** The instant at which the first item falls due; `Infinity` for an empty queue. */
  get nextDue(): number {
    return this.#items.length === 0 ? Number.POSITIVE_INFINITY : this.#due[0]!
  }

  first(): T | undefined {
    return this.#items[0]
  }

  add(item: T, due: number): void {
    const position = this.#items.length
    if (position === this.#due.length) this.#resize(position * 2)
    this.#items.push(item)
    this.#rise(item, due, position)
  }

  /** Moves an item to another instant. */
  move(item: T, due: number): void {
    if (due < this.#due[item.position]!) this.#rise(item, due, item.position)
    else this.#sink(item, due, item.position)
  }

  remove(item: T): void {
    const { position } = item
    const last = this.#items.pop()!
    if (last !== item) {
      const due = this.#due[this.#items.length]!
      if (due < this.#due[position]!) this.#rise(last, due, position)
      else this.#sink(last, due, position)
    }
    const used = this.#items.length
    if (used >= FIRST_CAPACITY && used < this.#due.length / 4) this.#resize(this.#due.length / 2)
  }

  #rise(item: T, due: number, position: number): void {
    let at = position
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (this.#due[parent]! <= due) break
      this.#put(this.#items[parent]!, this.#due[parent]!, at)
      at = parent
    }
    this.#put(item, due, at)
  }

  #sink(item: T, due: number, position: number): void {
    const end = this.#items.length
    let at = position
    for (let child = 2 * at + 1; child < end; child = 2 * at + 1) {
      if (child + 1 < end && this.#due[child + 1]! < this.#due[child]!) child++
      if (this.#due[child]! >= due) break
      this.#put(this.#items[child]!, this.#due[child]!, at)
      at = child
    }
    this.#put(item, due, at)
  }

  #put(item: T, due: number, at: number): void {
    this.#items[at] = item
    this.#due[at] = due
    item.position = at
  }

  #resize(capacity: number): void {
    const due = new Float64Array(capacity)
    due.set(this.#due.subarray(0, Math.min(capacity, this.#items.length)))
    this.#due = due
  }
}
