// The search is worth what it finds: stores with mistakes are met, and the library keeps its promises where it once did not.
import { expect, it } from 'vitest'
import { BUGS } from './bugs.ts'
import { loadLibrary } from './library.ts'
import { Broken, searchAll } from './search.ts'

it.each(BUGS.flatMap(({ name, store, scene }) => (store ? { name, store, scene } : [])))(
  '$name: is found',
  async ({ store, scene }) => {
    const library = await loadLibrary()
    const found = await searchAll({ library, store }, scene, { runs: 300 }).catch((error: unknown) => error)
    expect(found, `${scene.name}: not found`).toBeInstanceOf(Broken)
    const { runs, message } = found as Broken
    console.log(`found in run ${runs}: ${message.split('\n')[0]}`)
  },
  120_000,
)

it('the library as it is has none of them', async () => {
  const library = await loadLibrary()
  const large = new Set(BUGS.flatMap(({ scene, isLarge }) => (isLarge ? scene : [])))
  for (const scene of new Set(BUGS.map(bug => bug.scene))) {
    const { left } = await searchAll({ library }, scene, large.has(scene) ? { runs: 500 } : {})
    if (!large.has(scene)) expect(left, scene.name).toBe(0)
  }
}, 240_000)
