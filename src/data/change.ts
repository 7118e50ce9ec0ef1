import { isDeepStrictEqual } from 'node:util'
import { quote } from '../text/quote.ts'
import { isThenable } from '../time/within.ts'

/**
 * Keys to set, or a function that edits fresh data and is run again on a conflict (so: synchronous, no side effects). Its
 * result is not stored: `data => data.n++` is an edit, `data => ({ ...data, n: 1 })` a TypeError.
 */
export type Change<Data = Record<string, unknown>, R = unknown> =
  | Partial<Data>
  | ((
      draft: Data,
    ) => R extends PromiseLike<unknown>
      ? 'make the function synchronous: it may run again after a conflict'
      : R extends object
        ? R extends Partial<Data>
          ? 'edit the draft and return nothing: a returned value would be lost'
          : R
        : R)

/**
 * Runs a function on a draft. `unchanged` makes the draft once more.
 * @throws TypeError if it is asynchronous, or returned an object as if that were the new data
 */
export function runChange<Data extends object>(
  change: (draft: Data) => unknown,
  draft: Data,
  unchanged: () => Data,
): void {
  const before = objectsIn(draft)
  const value = change(draft)
  if (isThenable(value)) {
    Promise.resolve(value).catch(() => {})
    throw new TypeError('update: make the function synchronous: it may run again after a conflict')
  }
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return
  // An assignment, pop, shift and sort return a part of the draft, as it is or was.
  if (before.has(value) || objectsIn(draft).has(value)) return
  // Splice returns a new array.
  if (Array.isArray(value) && !isDeepStrictEqual(draft, unchanged())) return
  throw new TypeError(
    `update: ${quote(value)} that the function returned would be lost: edit the draft and return nothing, as in data => { data.n += 1 }`,
  )
}

function objectsIn(value: unknown, found = new Set<unknown>()): Set<unknown> {
  if (typeof value === 'object' && value !== null && !found.has(value)) {
    found.add(value)
    for (const member of Object.values(value)) objectsIn(member, found)
  }
  return found
}
