// Two simpler rules for requests under way over connect, each with the scene in which the search finds its fault.
import { expect, it } from 'vitest'
import { lateOf } from './late.ts'
import { buildLibrary } from './library.ts'
import { Broken, type Scene, searchAll } from './search.ts'

const RULES: readonly (readonly [string, Scene, file: string, from: string, to: string, finds: RegExp])[] = [
  [
    'a request under way may log in again',
    lateOf(['a new ID', 'a logout'], '@fastify/session'),
    'src/connect/kept-sessions.ts',
    'if (loaded === null || ended === userId ||',
    'if (loaded !== undefined ||',
    /logs in again/,
  ],
  [
    'a save finds its session again under any user',
    lateOf(['a save', 'a login of another user'], 'express-session'),
    'src/manager/write.ts',
    'found?.record.userId === userId ||',
    'userId !== null ||',
    /a save of 42 is in 43/,
  ],
]

it.each(RULES)(
  '%s: the search finds what breaks',
  async (_, scene, file, from, to, finds) => {
    const library = await buildLibrary({ file, from, to })
    const found = await searchAll({ library }, scene, { runs: 2000 }).catch((error: unknown) => error)
    expect(found).toBeInstanceOf(Broken)
    expect((found as Broken).message).toMatch(finds)
  },
  120_000,
)
