import { setImmediate as turn } from 'node:timers/promises'
import type { Store } from 'coatcheck'
import { ReferenceStore } from 'coatcheck/custom-store/testing'

/** A file as processes share it, read and written whole. */
export interface SharedFile {
  text: string
}

/** Keeps all in one file, one call after the other: of this process, not of others. */
export function wholeFileStore(file: SharedFile): Store {
  const store = new ReferenceStore()
  const maps: Map<string, unknown>[] = [store.records, store.forwards, store.minPasswordVersions]
  const inFile = async (call: () => unknown) => {
    const kept: [string, unknown][][] = JSON.parse(file.text)
    for (const [index, map] of maps.entries()) {
      map.clear()
      for (const [key, value] of kept[index] ?? []) map.set(key, value)
    }
    const answer = await call()
    // Whoever reads meanwhile, reads what was there before. No timer, so that the calls of two processes always meet.
    await turn()
    file.text = JSON.stringify(maps.map(map => [...map]))
    return answer
  }
  let last: Promise<unknown> = Promise.resolve()
  return new Proxy<Store>(store, {
    get(_, name) {
      const call = Reflect.get(store, name, store)
      if (typeof call !== 'function') return call
      return (...args: unknown[]) => {
        last = last.then(() => inFile(() => call.apply(store, args)))
        return last
      }
    },
  })
}
