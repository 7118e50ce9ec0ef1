// A clone as its reader meets it: what runs right after `npm ci`.
import { execFile, execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { root } from '../support/consumer.ts'
import { isInstalled } from '../support/installed.ts'
import { build } from '../support/scripts/build.mjs'
import { freePort, type Running, start, until } from '../support/services/process.ts'

const exec = promisify(execFile)

let clone: string
beforeAll(() => {
  clone = mkdtempSync(join(tmpdir(), 'coatcheck-clone-'))
  const list = ['-c', 'safe.directory=*', 'ls-files', '-co', '--exclude-standard']
  for (const path of execFileSync('git', list, { cwd: root, encoding: 'utf8' }).trim().split('\n'))
    if (existsSync(join(root, path))) cpSync(join(root, path), join(clone, path))
})
afterAll(() => rmSync(clone, { recursive: true, force: true }))

describe('a clone', () => {
  it('can be installed without the development dependencies: nothing is built, and npm does not fail', async () => {
    await exec('npm', ['ci', '--omit=dev', '--prefer-offline'], { cwd: clone })
    expect(readdirSync(join(clone, 'node_modules')).filter(name => !name.startsWith('.'))).toEqual(['cookie'])
    expect(existsSync(join(clone, 'dist'))).toBe(false)
  }, 120_000)
})

describe('a clone that was built', () => {
  beforeAll(async () => {
    await build()
    rmSync(join(clone, 'node_modules'), { recursive: true, force: true })
    for (const name of ['node_modules', 'dist']) symlinkSync(join(root, name), join(clone, name))
  }, 240_000)

  const examples = readdirSync(join(root, 'examples')).filter(
    name => name.endsWith('.mjs') && isInstalled(readFileSync(join(root, 'examples', name), 'utf8')),
  )
  it.each(examples)('runs examples/%s with plain node', async name => {
    const ports = { PORT: '0', HTTP_PORT: `${await freePort()}`, FRONT_PORT: `${await freePort()}` }
    const run = () => start(process.execPath, [`examples/${name}`], { cwd: clone, env: { ...process.env, ...ports } })
    // A service prints where it listens, a module or a test ends by itself.
    const runs = (example: Running) =>
      until(`${name} runs`, () => {
        if (example.child.exitCode === null) expect(example.output()).toMatch(/https?:\/\/[\w.]+:\d+|port: \d+/)
      })
    let example = run()
    await runs(example)
    const openssl = /^ {2}(openssl .+)$/m.exec(example.output())?.[1]
    if (openssl !== undefined) {
      await exec('sh', ['-c', openssl], { cwd: clone })
      example = run()
      await runs(example)
    }
    await example.stop()
    // A service stops at a signal.
    expect([0, null]).toContain(example.child.exitCode)
  })
})
