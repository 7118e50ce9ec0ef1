// NODE_DEBUG=coatcheck says why a request has no session, in a process of its own for each reason.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { build } from '../support/scripts/build.mjs'

beforeAll(build, 240_000)

const program = fileURLToPath(new URL('fixtures/no-session.mjs', import.meta.url))

async function printed(reason: string, NODE_DEBUG: string) {
  const env = { ...process.env, NODE_DEBUG }
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [program, reason], { env })
  const { key, id } = JSON.parse(stdout) as { key: string; id: string }
  expect(stderr).not.toContain(id)
  return { key, lines: stderr.split('\n').flatMap(line => /^COATCHECK \d+: (.*)$/.exec(line)?.[1] ?? []) }
}

describe('NODE_DEBUG=coatcheck prints one line', () => {
  it.each(['no cookie', 'malformed cookie', 'ambiguous cookies', 'without HTTPS', 'another origin'])(
    'for a request with %s',
    async reason => {
      expect((await printed(reason, 'coatcheck')).lines).toEqual([`no session: ${reason}`])
    },
    60_000,
  )

  it.each([
    ['expired', 'not live (unknown, expired or ended)'],
    ['ended', 'not live (unknown, expired or ended)'],
    ['ended in this process', 'ended in this process'],
    ['under a new ID already', 'under a new ID already'],
    ['refused by the password version', 'refused by the password version'],
    ['past a shorter time limit', 'past a shorter time limit'],
    ['refused by its device', 'refused by its device'],
  ])(
    'with its key for a session that is %s',
    async (reason, said) => {
      const { key, lines } = await printed(reason, 'coatcheck')
      expect(lines).toEqual([`no session: ${said}, key ${key}`])
    },
    60_000,
  )

  it('for an ID that nobody knows', async () => {
    const { lines } = await printed('unknown', 'coatcheck')
    expect(lines).toEqual([expect.stringMatching(/^no session: not live .*, key [\w-]{46}$/)])
  }, 60_000)
})

describe('nothing is printed', () => {
  it.each([
    ['for a session that is there', 'nothing', 'coatcheck'],
    ['without NODE_DEBUG', 'no cookie', ''],
    ['for another one', 'no cookie', 'http'],
  ])(
    '%s',
    async (_, reason, debug) => {
      expect((await printed(reason, debug)).lines).toEqual([])
    },
    60_000,
  )
})
