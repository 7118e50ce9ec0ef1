// What only a process of its own can show: that it ends, and what a session weighs.
import { spawnSync } from 'node:child_process'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { build } from '../support/scripts/build.mjs'

const root = fileURLToPath(new URL('../../', import.meta.url))
const url = (path: string) => JSON.stringify(pathToFileURL(`${root}dist/${path}`).href)

function node(script: string, ...flags: string[]): string {
  const args = [...flags, '--input-type=module', '--eval', script]
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 60_000 })
  expect(stderr).toBe('')
  expect(status).toBe(0)
  return stdout
}

describe('a process with a memory store', () => {
  beforeAll(build, 180_000)

  it('ends by itself although a manager with its sweep timer and live sessions are in it', () => {
    const script = `
      import { SessionManager } from ${url('index.js')}
      import { MemoryStore } from ${url('stores/memory.js')}
      const sessions = new SessionManager({ store: new MemoryStore() })
      const session = await sessions.create({ user: { id: 1, name: 'Ada' } })
      console.log((await sessions.get(session.secret)).user.name)
    `
    expect(node(script)).toBe('Ada\n')
  })

  it('keeps no text that a user ID or a name was cut out of, for a session or for a password version', () => {
    const script = `
      import { SessionManager } from ${url('index.js')}
      import { MemoryStore } from ${url('stores/memory.js')}
      const sessions = new SessionManager({ store: new MemoryStore(), userIds: 'string', sweepInterval: false })
      const used = () => {
        for (let times = 0; times < 4; times++) gc()
        return process.memoryUsage().heapUsed
      }
      const before = used()
      for (let number = 0; number < 400; number++) {
        const said = '<id>the-user-number-' + number + '</id><name>Ada Lovelace, number ' + number + '</name>'
        const answer = 'x'.repeat(50_000) + said + Math.random()
        const [, id, name] = /<id>(.*)<.id><name>(.*)<.name>/.exec(answer)
        await sessions.create({ user: { id, name } })
        await sessions.invalidateUser(id + '', { minPasswordVersion: 1 })
        await sessions.create({ user: { id, name, passwordVersion: 1 } })
      }
      console.log((used() - before) / 400 < 5_000 ? 'small' : (used() - before) / 400 + ' bytes each')
    `
    expect(node(script, '--expose-gc')).toBe('small\n')
  })

  it('keeps a session of its own user with empty data in at most 520 bytes, index included', () => {
    const script = `
      import { createHash, randomBytes } from 'node:crypto'
      import { MemoryStore } from ${url('stores/memory.js')}
      const COUNT = 50_000
      // The first finishes what was begun before, the second finds what is dead; what frees it is done before the next.
      const used = () => {
        for (let times = 0; times < 4; times++) gc()
        const { heapUsed, external } = process.memoryUsage()
        return heapUsed + external
      }
      const now = Date.now()
      const store = new MemoryStore()
      const before = used()
      for (let number = 0; number < COUNT; number++) {
        const id = randomBytes(32).toString('base64url')
        await store.create({
          key: id.slice(0, 3) + createHash('sha256').update(id).digest('base64url'), kind: 'session', parent: null,
          userId: String(10_000_000_000 + number), userName: 'user' + number, passwordVersion: null, data: '{}', version: 1,
          writeId: randomBytes(12).toString('base64url'), createdAt: now, seenAt: now, expiresAt: now + 1_800_000,
          absoluteExpiresAt: now + 43_200_000,
        }, {}, { now })
      }
      console.log(Math.round((used() - before) / COUNT))
      let removed = 0
      for (let step = 1; step > 0; removed += step) step = await store.sweep(1000, { now: now + 86_400_000 })
      console.log(removed, (used() - before) / COUNT)
    `
    const [bytes, swept] = node(script, '--expose-gc').split('\n')
    expect(Number(bytes)).toBeGreaterThan(100)
    expect(Number(bytes)).toBeLessThanOrEqual(520)
    const [removed, left] = swept!.split(' ')
    expect(removed).toBe('50000')
    // What an empty store keeps to begin with, and what the engine compiled meanwhile: 7 to 10 where this was written.
    expect(Number(left)).toBeLessThan(20)
  })
})
