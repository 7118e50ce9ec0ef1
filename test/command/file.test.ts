// The command on a SQLite file: what it opens and makes; the built one: where it prints, whom it asks.
import { existsSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SessionManager } from 'coatcheck'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { COMMAND, coatcheck, commandOn, startCoatcheck } from '../support/command.ts'
import { root } from '../support/pages.ts'
import { build } from '../support/scripts/build.mjs'
import { describeEngine } from '../support/services/engines.ts'
import { findBinary, start, until } from '../support/services/process.ts'
import { openSqlite } from '../support/services/sqlite.ts'

// Each command is a process of its own.
vi.setConfig({ testTimeout: 120_000 })

beforeAll(() => build(), 240_000)

describeEngine('libsql', 'coatcheck on a file', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'coatcheck-command-'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const on = (file: string) => commandOn(`sqlite:${join(folder, file)}`)

  it('makes no file but with migrate: a name that is mistyped is no empty store', async () => {
    const { code, err } = await on('none.db').run('list', '42')
    expect([code, err]).toEqual([1, expect.stringMatching(/there is no such file: coatcheck migrate makes one/)])
    expect(existsSync(join(folder, 'none.db'))).toBe(false)
    const nowhere = await on('no/folder/a.db').run('migrate')
    expect([nowhere.code, nowhere.out]).toEqual([1, ''])
    expect(nowhere.err).toMatch(/^coatcheck: SQLite in [^\n]*\n$/)
  })

  it('says what is wrong with a file that is no database, or is a folder', async () => {
    writeFileSync(
      join(folder, 'text.db'),
      'this is a text of some length, and no database of SQLite at all\n'.repeat(20),
    )
    const text = await on('text.db').run('list', '42')
    expect([text.code, text.err]).toEqual([1, expect.stringMatching(/^coatcheck: SQLite in [^\n]*not a database\n$/)])
    mkdirSync(join(folder, 'folder.db'))
    const directory = await on('folder.db').run('list', '42')
    expect([directory.code, directory.err]).toEqual([
      1,
      expect.stringMatching(/^coatcheck: SQLite in [^\n]*open[^\n]*\n$/),
    ])
  })

  it('says that its output could not be written, and ends quietly where its reader is gone', async () => {
    await on('a.db').text('migrate')
    const env = { COATCHECK_STORE_URL: `sqlite:${join(folder, 'a.db')}` }
    if (existsSync('/dev/full')) {
      const full = await coatcheck(['ddl'], { env, stdout: openSync('/dev/full', 'w') })
      expect(full).toMatchObject({
        code: 1,
        err: expect.stringMatching(/^coatcheck: the output could not be written: /),
      })
    }
    const running = startCoatcheck(['ddl'], env)
    running.child.stdout!.destroy()
    await running.stop('SIGCONT')
    expect(running.child.exitCode).toBe(0)
  })

  it('lists a session that lives by the longer limits of its application', async () => {
    await on('limits.db').text('migrate')
    const database = openSqlite('libsql', join(folder, 'limits.db'))
    const [idleTimeout, absoluteTimeout] = ['90d', '90d'] as const
    const now = () => Date.now() - 60 * 86_400_000
    const sessions = new SessionManager({ store: new SqliteStore(database), now, idleTimeout, absoluteTimeout })
    const { key } = await sessions.create({ user: { id: 42, name: 'ada' } })
    await sessions.close()
    database.close()
    expect(await on('limits.db').text('list', '42')).toContain(key)
  })

  it('ends with 1 where doctor finds something, though its reader is gone', async () => {
    writeFileSync(join(folder, 'empty.db'), '')
    const running = startCoatcheck(['doctor', `sqlite:${join(folder, 'empty.db')}`], {})
    running.child.stdout!.destroy()
    await until('the end', () => expect(running.ended()).toBe(true))
    expect(running.child.exitCode).toBe(1)
  })

  const terminal = findBinary('script')
  it.skipIf(terminal === null)(
    'asks a person before it ends all',
    async () => {
      const command = on('asked.db')
      await command.text('migrate')
      const database = openSqlite('libsql', join(folder, 'asked.db'))
      const sessions = new SessionManager({ store: new SqliteStore(database), sweepInterval: false })
      const session = await sessions.create({ user: { id: 42, name: 'ada' } })
      for (const [answer, code, said] of [
        ['y\n', 1, /nothing was ended, since the answer was not yes/],
        ['\u0004', 1, /nothing was ended, since the answer was not yes/],
        ['\u0003', 130, /Type yes to go on:/],
        [' YES \n', 0, /1 session ended\./],
      ] as const) {
        expect(await sessions.get(session.secret), answer).not.toBeNull()
        const running = start(terminal!, ['-qec', `'${process.execPath}' '${COMMAND}' invalidate-all`, '/dev/null'], {
          env: { ...process.env, COATCHECK_STORE_URL: `sqlite:${join(folder, 'asked.db')}` },
          cwd: root,
          stdio: ['pipe', 'pipe', 'pipe'],
        })
        await until('the question', () => expect(running.output()).toContain('Type yes to go on:'))
        expect(running.output()).toMatch(/this logs every user out\. It ends 1 session, and all remember tokens\./)
        running.child.stdin!.write(answer)
        await until('the end', () => expect(running.ended()).toBe(true))
        expect(running.output()).toMatch(said)
        expect(running.child.exitCode).toBe(code)
      }
      expect(await sessions.get(session.secret)).toBeNull()
      database.close()
    },
    60_000,
  )
})
