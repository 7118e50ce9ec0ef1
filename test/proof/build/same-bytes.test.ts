// SECURITY.md tells how to build a release anew and compare: the bytes depend neither on the path nor on who built.
import { execFile, execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { pack, root } from '../../support/consumer.ts'

const run = promisify(execFile)

it('a clone that npm ci has built packs the same bytes as this folder', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'coatcheck-packs-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const clone = join(folder, 'clone')
  const list = ['-c', 'safe.directory=*', 'ls-files', '-co', '--exclude-standard']
  for (const path of execFileSync('git', list, { cwd: root, encoding: 'utf8' }).trim().split('\n'))
    if (existsSync(join(root, path))) cpSync(join(root, path), join(clone, path))
  symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'))
  await run('npm', ['run', 'dependencies'], { cwd: clone })
  const here = await pack(folder)
  const args = ['pack', '--json', '--dry-run', '--ignore-scripts']
  const [there] = JSON.parse((await run('npm', args, { cwd: clone, maxBuffer: 2 ** 26 })).stdout)
  expect(here.integrity).toMatch(/^sha512-/)
  expect(there.integrity).toBe(here.integrity)
}, 600_000)
