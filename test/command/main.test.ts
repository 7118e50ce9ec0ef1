// What the command ends with, and whom it asks.
import { existsSync } from 'node:fs'
import { SessionManager } from 'coatcheck'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import { describe, expect, it } from 'vitest'
import { runCommand } from '../support/command.ts'
import { describeEngine } from '../support/services/engines.ts'
import { openSqlite, sqliteFile } from '../support/services/sqlite.ts'

describe('a command line that is wrong', () => {
  it.each([
    [[], /^coatcheck: expected a command of ddl, .*\nSee coatcheck --help\.\n$/],
    [['count'], /^coatcheck: no store is named: set COATCHECK_STORE_URL, or give --store URL\n/],
    [['count', '--store', 'sqlite:a.db', '--prefix', 'a'], /^coatcheck: --prefix is for Redis alone\n/],
    [['count', '--store', 'redis://db', '--table', 'a'], /^coatcheck: --table is for SQL stores alone\n/],
    [['count', '--store', 'sqlite:a.db', '--timeout', '2h'], /^coatcheck: --timeout: expected a time of at most 1h/],
    [
      ['invalidate-user', '1', '--store', 'sqlite:a.db', '--min-password-version', 'x'],
      /^coatcheck: --min-password-version: expected a whole number from 0 to 4294967295\n/,
    ],
    [['invalidate-all', '--store', 'sqlite:a.db'], /no one is here to be asked: give --yes\n/],
    [
      ['count', '--store', 'postgres://app:2024/s3cret@db/x'],
      /^coatcheck: --store: there is an @ or a # after the host/,
    ],
  ])('%j ends with 2, before anything is opened', async (argv, message) => {
    const { code, out, err } = await runCommand(argv)
    expect([code, out, err]).toEqual([2, '', expect.stringMatching(message)])
    expect(err).not.toContain('s3cret')
    expect(existsSync('a.db')).toBe(false)
  })
})

it('does not repeat what is secret in the URL of a store where the driver does', async () => {
  const env = { COATCHECK_STORE_URL: 'postgres://ada@127.0.0.1:1/x?sslkey=hunter2.pem' }
  const { code, out, err } = await runCommand(['count'], { env })
  expect([code, out, err]).toEqual([
    1,
    '',
    expect.stringMatching(/ENOENT \(the driver's message is not shown: it contain/),
  ])
  expect(err).not.toContain('hunter2')
})

it('prints its help and its release without a store', async () => {
  expect(await runCommand(['--help'])).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^Usage: coatcheck COMMAND/),
  })
  expect(await runCommand(['--version'])).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^\d+\.\d+\.\d+/),
    err: '',
  })
})

describeEngine('libsql', 'a list', () => {
  it('goes on no longer than someone reads it', async () => {
    const { file, remove } = sqliteFile()
    const database = openSqlite('libsql', file)
    const store = new SqliteStore(database)
    await store.migrate()
    const sessions = new SessionManager({ store, sweepInterval: false })
    for (let times = 0; times < 101; times++) await sessions.create({ user: { id: 42, name: 'ada' } })
    const env = { COATCHECK_STORE_URL: `sqlite:${file}` }
    const whole = await runCommand(['list'], { env })
    expect(whole).toMatchObject({ code: 0, err: '101 sessions.\n' })
    expect(whole.out.split('\n')).toHaveLength(1 + 101 + 1)
    const { out, ...rest } = await runCommand(['list'], { env, isRead: false })
    expect(rest).toEqual({ code: 0, err: '' })
    expect(out.split('\n')).toHaveLength(1 + 100 + 1)
    database.close()
    remove()
  })
})
