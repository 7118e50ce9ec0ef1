// NODE_DEBUG=coatcheck says why a request has no session.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { build } from '../support/scripts/build.mjs'

const program = fileURLToPath(new URL('fixtures/no-session.mjs', import.meta.url))

/** What a process prints for each of some reasons. */
async function printed(NODE_DEBUG: string, reasons: readonly string[]) {
  const env = { ...process.env, NODE_DEBUG }
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [program, ...reasons], { env })
  const told: Record<string, { key: string; id: string }> = JSON.parse(stdout)
  const parts = stderr.split(/^reason: /m).slice(1)
  return new Map(
    reasons.map((reason, at) => {
      const { key, id } = told[reason]!
      expect(parts[at]).not.toContain(id)
      const lines = parts[at]!.split('\n').flatMap(line => /^COATCHECK \d+: (.*)$/.exec(line)?.[1] ?? [])
      return [reason, lines.map(line => line.replace(key, 'KEY'))]
    }),
  )
}

const NOT_LIVE = 'not live (unknown, expired or ended), key KEY'
describe('NODE_DEBUG=coatcheck prints one line', () => {
  const cases = [
    ['no cookie', 'no cookie'],
    ['malformed cookie', 'malformed cookie'],
    ['ambiguous cookies', 'ambiguous cookies'],
    ['without HTTPS', 'without HTTPS'],
    ['another origin', 'another origin'],
    ['expired', NOT_LIVE],
    ['ended', NOT_LIVE],
    ['ended in this process', 'ended in this process, key KEY'],
    ['under a new ID already', 'under a new ID already, key KEY'],
    ['refused by the password version', 'refused by the password version, key KEY'],
    ['past a shorter time limit', 'past a shorter time limit, key KEY'],
    ['refused by its device', 'refused by its device, key KEY'],
  ] as const
  beforeAll(build, 240_000)

  it('for each request without a session, and none for one that has its own', async () => {
    const lines = await printed('coatcheck', [...cases.map(([reason]) => reason), 'unknown', 'nothing'])
    expect(lines.get('unknown')).toEqual([expect.stringMatching(/^no session: not live .*, key [\w-]{46}$/)])
    lines.delete('unknown')
    expect([...lines]).toEqual([...cases.map(([reason, said]) => [reason, [`no session: ${said}`]]), ['nothing', []]])
  })

  it('and none for another NODE_DEBUG', async () => {
    expect((await printed('http', ['no cookie'])).get('no cookie')).toEqual([])
  })
})
