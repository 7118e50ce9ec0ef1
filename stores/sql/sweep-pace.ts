/** The place before all rows. */
export const BEGINNING = Number.MIN_SAFE_INTEGER
/** How long the place where a call ended is kept for the next one, in ms. */
const KEPT = 300_000
/** A statement whose rows took longer than this, in ms, had too many; one whose rows took a quarter of it may have more. */
const LONG = 100
/** A statement that was given up is repeated with this part of its rows. */
const GIVEN_UP = 8
/** How many measures of the way to the database are kept. */
const WAYS = 4

/**
 * How many rows a statement of a sweep may remove, by what the last one took, and where each table's next one looks. On a
 * slow disk some rows take as long as 250 elsewhere. Between the calls of one sweep the place is kept, because a server whose
 * long transaction keeps what was deleted would pass by all of it again.
 */
export class SweepPace {
  readonly #most: number
  readonly #places = new Map<string, { readonly from: number; readonly at: number }>()
  #rows: number
  /** How long the last statement took for each row that it might remove, in ms, and the last ones whatever their rows. */
  #each = 0
  #ways: readonly number[] = []

  constructor(most: number) {
    this.#most = most
    this.#rows = most
  }

  get rows(): number {
    return this.#rows
  }

  // The shortest: one slow moment taken for the way would let the statements of a whole sweep be as long.
  get #way(): number {
    return this.#ways.length === 0 ? 0 : Math.min(...this.#ways)
  }

  /** How long a statement of so many rows is going to take, in ms. */
  expected(rows: number): number {
    return this.#way + this.#each * rows
  }

  /** A statement of so many rows at the most removed so many. */
  took(rows: number, removed: number, ms: number): void {
    // The way to a database far away, or a slow disk's writing of whatever it is, becomes no shorter by fewer rows.
    if (removed <= 1) this.#ways = [ms, ...this.#ways.slice(0, WAYS - 1)]
    const work = Math.max(0, ms - this.#way)
    this.#each = work / rows
    if (work > LONG) this.#rows = Math.max(1, Math.floor(rows / 2))
    else if (work < LONG / 4 && rows === this.#rows) this.#rows = Math.min(this.#most, rows * 2)
  }

  /** A statement of so many rows was given up. */
  tooMany(rows: number): void {
    this.#rows = Math.max(1, Math.floor(rows / GIVEN_UP))
  }

  placeOf(table: string): number {
    const place = this.#places.get(table)
    return place !== undefined && performance.now() - place.at < KEPT ? place.from : BEGINNING
  }

  keep(table: string, from: number): void {
    this.#places.set(table, { from, at: performance.now() })
  }
}
