// The search itself: it leaves out nothing by cutting runs at states that were seen, and shows what it finds.
import assert from 'node:assert/strict'
import { expect, it } from 'vitest'
import { sceneOf } from './calls.ts'
import { loadLibrary } from './library.ts'
import { tabsOf } from './requests.ts'
import { Broken, runChoices, type Scene, searchAll, searchSome } from './search.ts'
import type { World } from './world.ts'

/** A scene that tells each of its ends. */
function told(scene: Scene, ends: Set<string>): Scene {
  return {
    ...scene,
    async judge(world) {
      ends.add(world.state())
      await scene.judge(world)
    },
  }
}

it.each([
  sceneOf({ before: 'a session', calls: ['regenerate', 'logout'] }),
  sceneOf({ before: 'a session', calls: ['update', 'logout of what is held'], faults: 1 }),
  tabsOf({ before: 'an anonymous session', requests: ['a save', 'a logout'] }),
])(
  '$name: runs that are cut at a state that was seen miss no end, and no order',
  async scene => {
    const library = await loadLibrary()
    const [some, all] = [new Set<string>(), new Set<string>()]
    const cut = await searchAll({ library }, told(scene, some))
    const whole = await searchAll({ library }, told(scene, all), { cut: false })
    expect([cut.left, whole.left]).toEqual([0, 0])
    expect(cut.orders).toBe(whole.orders)
    expect(whole.runs).toBe(whole.orders)
    expect(cut.runs).toBeLessThanOrEqual(whole.runs)
    expect([...some].sort()).toEqual([...all].sort())
  },
  120_000,
)

it('the orders of two calls of one store command each are counted by hand: begin, run, answer, in any order', async () => {
  const library = await loadLibrary()
  const scene = sceneOf({ before: 'a session', calls: ['get', 'get'] })
  // Each call has three steps: 6 over 3.
  expect(await searchAll({ library }, scene)).toMatchObject({ orders: 20, left: 0 })
})

/** Two saves to one store of which each reads and writes: the later one wins, where it should not. */
function racing(): Scene {
  const saved: { value: number } = { value: 0 }
  return {
    name: 'a race',
    options: { faults: 0 },
    async prepare(world: World) {
      saved.value = 0
      world.notes = saved
      for (const name of ['one', 'two'])
        world.act(name, async () => {
          const value = await world.callback('read', () => saved.value)
          await world.callback('write', () => {
            saved.value = value + 1
          })
        })
    },
    async judge() {
      assert.equal(saved.value, 2, 'an update is lost')
    },
  }
}

it('a race is found, by the walk and by lot, and shown with the fewest choices and its steps', async () => {
  const library = await loadLibrary()
  const found = await searchAll({ library }, racing()).catch((error: unknown) => error)
  expect(found).toBeInstanceOf(Broken)
  const { message, choices } = found as Broken
  expect(message).toMatch(/a race: an update is lost/)
  expect(message).toMatch(/0: read runs/)
  const drawn = await searchSome({ library }, racing(), { runs: 200, seed: 1 }).catch((error: unknown) => error)
  expect((drawn as Broken).message).toMatch(/seed \d+/)
  expect((drawn as Broken).choices.length).toBeLessThanOrEqual(choices.length + 2)
  // The printed choices show it again.
  await expect(runChoices({ library }, racing(), choices)).rejects.toThrow('an update is lost')
})
