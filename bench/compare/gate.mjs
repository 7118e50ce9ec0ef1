// @ts-check
// A request says `?gate=NAME` if it shall wait in the middle, as for a slow query: the driver sees that it has arrived, does
// something else, and lets it go on. So the order of events is the same at each run, and no clock decides.
import { AsyncLocalStorage } from 'node:async_hooks'

/** @type {Map<string, { arrived: number, wake: () => void, opened: Promise<void>, open: () => void }>} */
const gates = new Map()

/** The gate of the request that is being answered, for code that does not see the request. */
export const current = /** @type {AsyncLocalStorage<string | undefined>} */ (new AsyncLocalStorage())

/** @param {string} name */
export function gate(name) {
  let open = () => {}
  const opened = /** @type {Promise<void>} */ (
    new Promise(resolve => {
      open = resolve
    })
  )
  const own = { arrived: 0, wake: () => {}, opened, open }
  gates.set(name, own)
  return {
    name,
    /** Resolves when so many requests are waiting. @param {number} count */
    async arrived(count) {
      while (own.arrived < count)
        await new Promise(resolve => {
          own.wake = () => resolve(undefined)
        })
    },
    open,
  }
}

/** Waits if the request names a gate. @param {string | undefined} [name] */
export async function pass(name = current.getStore()) {
  const own = gates.get(name ?? '')
  if (!own) return
  own.arrived += 1
  own.wake()
  await own.opened
}
