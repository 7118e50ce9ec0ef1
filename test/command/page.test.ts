// The page of the command is what the command does: its tables, and its transcripts, run one after the other.
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SessionManager } from 'coatcheck'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { COMMAND_NAMES, COMMANDS, OPTION_NAMES, usageOf } from '../../src/command/arguments.ts'
import { EXIT } from '../../src/command/errors.ts'
import { coatcheck } from '../support/command.ts'
import { BLOCKS, root, table } from '../support/pages.ts'
import { build } from '../support/scripts/build.mjs'
import { describeEngine } from '../support/services/engines.ts'
import { openSqlite } from '../support/services/sqlite.ts'

// Each command is a process of its own.
vi.setConfig({ testTimeout: 120_000 })

const PAGE = 'docs/command.md'
const plain = (cell = '') => cell.replaceAll('`', '')

describe('the page of the command', () => {
  it('lists every command, with what its help says', () => {
    expect(table(PAGE, 'Commands').map(row => row.map(plain))).toEqual(
      COMMAND_NAMES.map(name => [usageOf(name), COMMANDS[name].text]),
    )
  })

  it('lists every option and every exit code', () => {
    const first = (heading: string) => table(PAGE, heading).map(([cell]) => plain(cell))
    expect(first('Options')).toEqual(OPTION_NAMES.map(name => `--${name}`))
    expect(first('Exit codes')).toEqual(Object.values(EXIT).map(String))
  })
})

/** Without what differs from run to run. */
const steady = (text: string) =>
  text
    .replaceAll(/(?<![\w-])[\w-]{46}(?![\w-])/g, 'KEY')
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, 'DATE')
    .replaceAll(/\b\d{13}\b/g, 'INSTANT')
    .trim()

describeEngine('libsql', 'the transcripts of the page of the command', () => {
  it('are what it prints', async () => {
    await build()
    const folder = mkdtempSync(join(tmpdir(), 'coatcheck-page-'))
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    const env: Record<string, string> = {}
    const keys: string[] = []
    let isSeeded = false
    const seed = async () => {
      const database = openSqlite('libsql', join(folder, 'sessions.db'))
      let now = Date.now() - 3000
      const sessions = new SessionManager({ store: new SqliteStore(database), sweepInterval: false, now: () => now })
      for (const user of [
        { id: 18446744073709551615n, name: 'max' },
        { id: 42, name: 'ada' },
        { id: 42, name: 'ada' },
      ]) {
        now += 1000
        keys.unshift((await sessions.create({ user })).key)
      }
      database.close()
    }
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const steps = BLOCKS.filter(({ page, language }) => page === PAGE && language === 'console').flatMap(({ code }) =>
      code.split(/^\$ /m).slice(1),
    )
    const said: string[] = []
    for (const step of steps) {
      const [line = ''] = step.split('\n')
      const [, name, value] = /^export (\w+)=(.*)$/.exec(line) ?? []
      if (name !== undefined) env[name] = value!
      const words = line.split(' ')
      if (words.shift() !== 'npx') {
        said.push(line)
        continue
      }
      expect(words.shift()).toBe('coatcheck')
      if (!isSeeded && words[0] === 'count') {
        await seed()
        isSeeded = true
      }
      const args = words.map(word => (word.length === 46 ? keys[0]! : word))
      const { code, out, err } = await coatcheck(args, { env, cwd: folder })
      expect(code, line).toBe(0)
      said.push(`${line}\n${out}${err}`)
    }
    expect(said.length).toBeGreaterThan(7)
    expect(said.map(steady)).toEqual(steps.map(steady))
  })
})
