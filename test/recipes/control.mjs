// Preloaded into a recipe: its store fails, its clock runs ahead, and what a login calls throws as other packages do, while
// the file that CONTROL names says so.
import { readFileSync } from 'node:fs'
import process from 'node:process'
import '../support/cheap-passwords.mjs'

/** @returns {{ isDown?: boolean, ahead?: number, breaks?: object }} */
const state = () => JSON.parse(readFileSync(`${process.env.CONTROL}`, 'utf8'))

const now = Date.now
Date.now = () => now() + (state().ahead ?? 0)

const VERBS = ['create', 'read', 'update', 'touch', 'replace', 'delete', 'deleteUser', 'listUser']
const ruled = new WeakSet()

/** @param {any} store */
function rule(store) {
  const prototype = Object.getPrototypeOf(store)
  if (ruled.has(prototype)) return
  ruled.add(prototype)
  const { shard } = prototype
  // Asked at each login, outside of what the library takes for an outage.
  Object.defineProperty(prototype, 'shard', {
    get: () => {
      const { breaks } = state()
      if (breaks) throw Object.assign(new Error('Incorrect API key sk-live-12 at db.internal:5432'), breaks)
      return shard
    },
  })
  for (const verb of VERBS) {
    const works = prototype[verb]
    /** @param {unknown[]} all */
    prototype[verb] = function (...all) {
      if (state().isDown) throw new Error('no table "users" at db.internal:5432')
      return works.apply(this, all)
    }
  }
}

// A bundler may give a recipe several copies of the package, each with a MemoryStore of its own. Each manager looks at the
// names of its options, and one of them is the store.
const { keys } = Object
Object.keys = (/** @type {any} */ value) => {
  const store = value?.store
  if (typeof store?.deleteUser === 'function') rule(store)
  return keys(value)
}
