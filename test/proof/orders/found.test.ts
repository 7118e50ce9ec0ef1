// The search is worth what it finds: stores that make a mistake, and simpler rules in the place of ours, each with the scene
// that shows its fault.
import { expect, it } from 'vitest'
import { sceneOf } from './calls.ts'
import { lateOf } from './late.ts'
import { buildLibrary, loadLibrary, type Mistake } from './library.ts'
import { moveOf } from './moves.ts'
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

const LATE = 'src/connect/kept-sessions.ts'
const OLD = 'src/connect/old-store.ts'
/** Simpler rules: each with the line of a source that makes it. */
const RULES: readonly (readonly [rule: string, Scene, Mistake, finds: RegExp])[] = [
  [
    'a request under way may log in again',
    lateOf(['a new ID', 'a logout'], '@fastify/session'),
    { file: LATE, from: 'if (loaded === null || ended === userId ||', to: 'if (loaded !== undefined ||' },
    /logs in again/,
  ],
  [
    'a save finds its session again under any user',
    lateOf(['a save', 'a login of another user'], 'express-session'),
    { file: 'src/manager/write.ts', from: 'found?.record.userId === userId ||', to: 'userId !== null ||' },
    /a save of 42 is in 43/,
  ],
  [
    'what the old store does not have is not there',
    moveOf({ requests: ['a page view', 'a page view'] }),
    { file: OLD, from: 'return kept ?? super.load(sid)', to: 'return kept' },
    /is logged out/,
  ],
  [
    'what ends leaves no note',
    moveOf({ requests: ['a logout', 'a late save of an old node'] }),
    { file: OLD, from: 'await this.#end(held, isThere)', to: 'await this.#end(held, false)' },
    /a logout is undone/,
  ],
  [
    'who moved a session does not look for it again',
    moveOf({ requests: ['a page view', 'a logout at an old node'] }),
    { file: OLD, from: " || (await this.#ask('get', sid)) === null)", to: ')' },
    /a logout at an old node is undone/,
  ],
  [
    'a second logout ends the note of the first',
    moveOf({ requests: ['a logout', 'a logout'] }),
    { file: OLD, from: "!== 'remember'; )", to: "!== ('none' as string); )" },
    /a logout is undone/,
  ],
]

const found = (subject: Parameters<typeof searchAll>[0], scene: Scene) =>
  expect(searchAll(subject, scene, { runs: 2000 }), `${scene.name}: not found`).rejects

it.each(Object.entries(WRONG))('a store that %s is found', { timeout: 120_000 }, async (name, store) => {
  const library = await loadLibrary()
  for (const scene of STORES[name as keyof typeof WRONG]) await found({ library, store }, scene).toBeInstanceOf(Broken)
})

it.each(RULES)('the rule that %s is found', { timeout: 120_000 }, async (_, scene, mistake, finds) => {
  await found({ library: await buildLibrary(mistake) }, scene).toThrow(finds)
})
