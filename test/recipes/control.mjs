// Preloaded into a recipe: its store fails and its clock runs ahead while the file that CONTROL names says so.
import { readFileSync } from 'node:fs'
import process from 'node:process'
import { MemoryStore } from 'coatcheck/stores/memory'

/** @returns {{ isDown?: boolean, ahead?: number }} */
const state = () => JSON.parse(readFileSync(`${process.env.CONTROL}`, 'utf8'))

const now = Date.now
Date.now = () => now() + (state().ahead ?? 0)

/** @type {Record<string, (...all: unknown[]) => unknown>} */
const verbs = /** @type {any} */ (MemoryStore.prototype)
for (const verb of ['create', 'read', 'update', 'touch', 'replace', 'delete', 'deleteUser', 'listUser']) {
  const works = verbs[verb]
  if (!works) throw new Error(`MemoryStore has no verb ${verb}`)
  verbs[verb] = function (...all) {
    if (state().isDown) throw new Error('no table "users" at db.internal:5432')
    return works.apply(this, all)
  }
}
