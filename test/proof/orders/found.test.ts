// The search is worth what it finds: stores that make a mistake, each with the scene that shows its fault.
import { expect, it } from 'vitest'
import { sceneOf } from './calls.ts'
import { loadLibrary } from './library.ts'
import { Broken, type Scene, searchAll } from './search.ts'
import { WRONG } from './wrong.ts'

const inTwo = { processes: [0, 1] }
const STORES: Record<keyof typeof WRONG, readonly Scene[]> = {
  'writes without a condition': [sceneOf({ before: 'a session', calls: ['update', 'logout'] })],
  'leaves no forward to a new ID': [sceneOf({ before: 'a session', calls: ['regenerate', 'logout'] })],
  'replaces whatever version is there': [
    sceneOf({ before: 'an anonymous session', calls: ['update', 'login'], ...inTwo }),
    sceneOf({ before: 'a session', calls: ['update', 'regenerate'], ...inTwo }),
  ],
  'keeps no minimum password version': [
    sceneOf({ before: 'a session', calls: ['login', 'invalidateUser, version 2'] }),
  ],
  'loses the spared session where that gets a new ID': [
    sceneOf({ before: 'a session', calls: ['regenerate', 'invalidateUser but this'] }),
  ],
  'begins sessions of a series that has ended': [
    sceneOf({ before: 'a token alone', calls: ['recall', 'forget'], ...inTwo }),
  ],
}

it.each(Object.entries(WRONG))('a store that %s is found', { timeout: 120_000 }, async (name, store) => {
  const library = await loadLibrary()
  for (const scene of STORES[name as keyof typeof WRONG]) {
    const search = searchAll({ library, store }, scene, { runs: 2000 })
    await expect(search, `${scene.name}: not found`).rejects.toBeInstanceOf(Broken)
  }
})
