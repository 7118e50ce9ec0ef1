import { existsSync } from 'node:fs'
import { readFile, rename, writeFile } from 'node:fs/promises'
import type { Store } from 'coatcheck'
import { ReferenceStore } from 'coatcheck/custom-store/testing'

/** Keeps all in one file, one call after the other: of this process, not of others. */
export function fileStore(file: string): Store {
  const store = new ReferenceStore()
  const maps: Map<string, unknown>[] = [store.records, store.forwards, store.minPasswordVersions]
  const inFile = async (call: () => unknown) => {
    const kept: [string, unknown][][] = existsSync(file) ? JSON.parse(await readFile(file, 'utf8')) : []
    for (const [index, map] of maps.entries()) {
      map.clear()
      for (const [key, value] of kept[index] ?? []) map.set(key, value)
    }
    const answer = await call()
    // No reader meets half of it.
    const next = `${file}.${Math.random()}`
    await writeFile(next, JSON.stringify(maps.map(map => [...map])))
    await rename(next, file)
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
