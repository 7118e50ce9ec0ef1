// Four simpler rules for the move of a session from an old store, each with the scene in which the search finds its fault.
import { expect, it } from 'vitest'
import { buildLibrary } from './library.ts'
import { type MoveScene, moveOf } from './moves.ts'
import { Broken, searchAll } from './search.ts'

const RULES: readonly (readonly [string, MoveScene, from: string, to: string, finds: RegExp])[] = [
  [
    'what the old store does not have is not there',
    { requests: ['a page view', 'a page view'] },
    'return kept ?? super.load(sid)',
    'return kept',
    /is logged out/,
  ],
  [
    'what ends leaves no note',
    { requests: ['a logout', 'a late save of an old node'] },
    'await this.#end(held, isThere)',
    'await this.#end(held, false)',
    /a logout is undone/,
  ],
  [
    'who moved a session does not look for it again',
    { requests: ['a page view', 'a logout at an old node'] },
    " || (await this.#ask('get', sid)) === null)",
    ')',
    /a logout at an old node is undone/,
  ],
  [
    'a second logout ends the note of the first',
    { requests: ['a logout', 'a logout'] },
    "!== 'remember'; )",
    "!== ('none' as string); )",
    /a logout is undone/,
  ],
]

it.each(RULES)(
  '%s: the search finds what breaks',
  async (_, scene, from, to, finds) => {
    const library = await buildLibrary({ file: 'src/connect/old-store.ts', from, to })
    const found = await searchAll({ library }, moveOf(scene), { runs: 2000 }).catch((error: unknown) => error)
    expect(found).toBeInstanceOf(Broken)
    expect((found as Broken).message).toMatch(finds)
  },
  120_000,
)
