import type { Store } from 'coatcheck'

/** A store with one mistake, and cases of the suite that have to fail for it. */
export interface WrongStore {
  readonly mistake: string
  readonly open: () => Store
  readonly caughtBy: readonly string[]
}

/** Gives way to whatever else is running, as a store does that needs two commands for one step. */
export const pause = () => new Promise<void>(resolve => setImmediate(resolve))
