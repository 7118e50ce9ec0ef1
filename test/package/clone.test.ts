// A clone as its reader meets it: what runs right after `npm ci`.
import { execFile, execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { root } from '../support/consumer.ts'

const exec = promisify(execFile)

it('a clone can be installed without the development dependencies: nothing is built, and npm does not fail', async () => {
  const clone = mkdtempSync(join(tmpdir(), 'coatcheck-clone-'))
  onTestFinished(() => rmSync(clone, { recursive: true }))
  const list = ['-c', 'safe.directory=*', 'ls-files', '-co', '--exclude-standard']
  for (const path of execFileSync('git', list, { cwd: root, encoding: 'utf8' }).trim().split('\n'))
    if (existsSync(join(root, path))) cpSync(join(root, path), join(clone, path))
  await exec('npm', ['ci', '--omit=dev', '--prefer-offline'], { cwd: clone })
  expect(readdirSync(join(clone, 'node_modules')).filter(name => !name.startsWith('.'))).toEqual(['cookie'])
  expect(existsSync(join(clone, 'dist'))).toBe(false)
}, 120_000)
