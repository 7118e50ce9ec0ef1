import { unusable } from './retry.ts'

/** How old what is known of a connection's clock becomes before it is asked again, in ms: a clock may be set. */
const FRESH = 60_000
/** How long it is relied on where it was not asked again, in ms. */
const STALE = 600_000
/** No deadline is further away than this, in ms: settings of the databases are 32-bit numbers of ms. */
const FURTHEST = 1_000_000_000

/**
 * The databases' clocks, by connection: a pool may reach several servers, one after the other. A write carries its
 * deadline on the database's clock, so that it is refused where it arrives late; how much this process's clock and the
 * database's differ is of no effect.
 */
export class Clocks {
  // The database's clock minus performance.now().
  readonly #known = new WeakMap<object, { readonly ahead: number; readonly at: number }>()

  /** `end` (on the scale of `performance.now()`) in the database's epoch ms; `null` if its clock has to be asked first. */
  until(connection: object, end: number): number | null {
    const known = this.#known.get(connection)
    const now = performance.now()
    if (known === undefined || now - known.at > STALE) return null
    return Math.floor(known.ahead + Math.min(end, now + FURTHEST))
  }

  /**
   * Whether to ask this clock again, once the caller has the answer: a database that takes long for each statement would
   * answer no write in time that has to wait for two.
   */
  isOld(connection: object): boolean {
    const known = this.#known.get(connection)
    return known !== undefined && performance.now() - known.at > FRESH
  }

  /**
   * `clock` was told by the answer that has just come. It was read earlier, so that the difference is rather taken for
   * too small: a write may be refused that would have been answered too late, none runs late.
   */
  learn(connection: object, clock: number): void {
    if (!Number.isFinite(clock))
      throw unusable("the database's clock came as no number: an option of the driver changes values (binary, for one)")
    const at = performance.now()
    this.#known.set(connection, { ahead: clock - at, at })
  }

  /** The clock was wrong, or has been set. */
  forget(connection: object): void {
    this.#known.delete(connection)
  }
}
