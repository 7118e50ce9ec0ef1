// The built command against real stores, in a process of its own.
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, openSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SessionManager, type Store } from 'coatcheck'
import { RedisStore } from 'coatcheck/stores/redis'
import { MysqlStore, PostgresStore, SqliteStore } from 'coatcheck/stores/sql'
import type pg from 'pg'
import { createClient, createCluster } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { build } from '../scripts/build.mjs'
import { describeEngine, ENGINES, type EngineName } from '../services/engines.ts'
import { startMariadb } from '../services/mariadb.ts'
import { type PostgresServer, startPostgres } from '../services/postgres.ts'
import { until } from '../services/process.ts'
import { startRedis, startRedisCluster } from '../services/redis.ts'
import { openSqlite, sqliteFile } from '../services/sqlite.ts'
import { coatcheck, commandOn, startCoatcheck } from '../support/command.ts'
import { root } from '../support/pages.ts'

const MAX = 2n ** 64n - 1n
const PASSWORD = 'hunter2-of-the-store'

interface Opened {
  /** As an operator writes it, with a password. */
  readonly url: string
  readonly name: RegExp
  readonly store: Store
  /** Ends the server. */
  readonly kill?: () => Promise<void>
  close(): Promise<unknown>
}

const STORES: readonly { name: string; engine: EngineName; sql: boolean; open(): Promise<Opened> }[] = [
  {
    name: 'SQLite',
    engine: 'libsql',
    sql: true,
    async open() {
      const { file, remove } = sqliteFile()
      const database = openSqlite('libsql', file)
      const close = async () => {
        database.close()
        remove()
      }
      return { url: `sqlite:${file}`, name: /^SQLite in /, store: new SqliteStore(database), close }
    },
  },
  {
    name: 'Redis',
    engine: 'redis',
    sql: false,
    async open() {
      const server = await startRedis(['--requirepass', PASSWORD])
      const url = server.url.replace('://', `://:${PASSWORD}@`)
      const client = createClient({ url })
      client.on('error', () => {})
      await client.connect()
      const close = async () => {
        client.destroy()
        await server.stop()
      }
      return { url, name: /^Redis at 127\.0\.0\.1:\d+/, store: new RedisStore(client), kill: server.kill, close }
    },
  },
  {
    name: 'Redis Cluster',
    engine: 'redis',
    sql: false,
    async open() {
      const cluster = await startRedisCluster()
      const client = createCluster({ rootNodes: cluster.nodes.map(({ url }) => ({ url })) })
      client.on('error', () => {})
      await client.connect()
      const hosts = cluster.addresses.map(({ host, port }) => `${host}:${port}`).join(',')
      const close = async () => {
        client.destroy()
        await cluster.stop()
      }
      return { url: `redis+cluster://${hosts}`, name: /^Redis Cluster at /, store: new RedisStore(client), close }
    },
  },
  {
    name: 'PostgreSQL',
    engine: 'postgresql',
    sql: true,
    async open() {
      const server = await startPostgres()
      // It asks for no password; one that is sent is in the URL all the same.
      const url = server.url().replace('postgres@', `postgres:${PASSWORD}@`)
      const store = new PostgresStore(server.pool())
      return {
        url,
        name: /^PostgreSQL at 127\.0\.0\.1:\d+, database postgres/,
        store,
        kill: server.kill,
        close: server.stop,
      }
    },
  },
  {
    name: 'MariaDB',
    engine: 'mariadb',
    sql: true,
    async open() {
      const server = await startMariadb()
      await server.pool().query(`CREATE USER operator IDENTIFIED BY '${PASSWORD}'`)
      await server.pool().query('GRANT ALL ON test.* TO operator')
      const url = server.url().replace('mysql://root@', `mariadb://operator:${PASSWORD}@`)
      const store = new MysqlStore(server.pool())
      return { url, name: /^MariaDB at 127\.0\.0\.1:\d+, database test/, store, kill: server.kill, close: server.stop }
    },
  },
]

beforeAll(() => build(), 240_000)

for (const { name, engine, sql, open } of STORES)
  describeEngine(engine, `coatcheck on ${name}`, () => {
    let opened: Opened
    let on: ReturnType<typeof commandOn>
    let now = Date.now()
    let sessions: SessionManager
    const secrets: string[] = []
    /** A session of this user, as the application begins it. */
    const logIn = async (id: bigint | number, name = 'ada', manager = sessions) => {
      const session = await manager.create({ user: { id, name }, data: { secret: 'kept-by-the-application' } })
      secrets.push(session.secret)
      return session
    }
    beforeAll(async () => {
      opened = await open()
      on = commandOn(opened.url)
      sessions = new SessionManager({ store: opened.store, remember: '30d', sweepInterval: false, now: () => now })
    }, 240_000)
    afterAll(() => opened?.close())

    const itOnSql = sql ? it : () => {}
    itOnSql('says that the tables are missing, and creates them', async () => {
      const { code, out, err } = await on.run('list', '42')
      expect({ code, out }).toEqual({ code: 1, out: '' })
      expect(err).toMatch(/^coatcheck: \w+ .*: the tables are not there: coatcheck migrate creates them; --table/)
      const created = await on.text('migrate')
      expect(created).toMatch(opened.name)
      expect(created).toMatch(/the tables were missing and have been created\.$/)
      expect(await on.text('migrate')).toMatch(/the tables are there, nothing was changed\.$/)
      expect(await on.json('migrate')).toEqual([{ migrated: false }])
    })

    itOnSql('prints the DDL that migrate runs, without a connection', async () => {
      const scheme = opened.url.slice(0, opened.url.indexOf(':') + 1)
      const Sql = opened.store.constructor as typeof SqliteStore
      expect(await on.text('schema', '--store', scheme)).toBe(Sql.schema().trim())
      expect(await on.json('schema', '--table', 'mine', '--user-ids', 'text')).toEqual([
        { schema: Sql.schema({ table: 'mine', userIds: 'text' }) },
      ])
    })

    itOnSql('refuses a table that is not there, or is another application’s', async () => {
      const other = await on.run('list', '42', '--table', 'other')
      expect([other.code, other.err]).toEqual([1, expect.stringMatching(/the tables are not there/)])
      const wrong = await on.run('list', '42', '--table', 'drop table')
      expect([wrong.code, wrong.err]).toEqual([
        2,
        expect.stringMatching(/^coatcheck: --table: expected 1 to 48 letters/),
      ])
      const redis = await on.run('list', '42', '--key-prefix', 'a:')
      expect([redis.code, redis.err]).toEqual([
        2,
        expect.stringMatching(/--key-prefix is for Redis: SQL stores have --t/),
      ])
      // In SQLite the IDs of every kind are the same text.
      if (name === 'SQLite') return
      const kinds = await on.run('list', 'ada', '--user-ids', 'text')
      expect([kinds.code, kinds.err]).toEqual([1, expect.stringMatching(/column user_id is .*, not /)])
    })

    const itOnRedis = sql ? () => {} : it
    itOnRedis('needs no schema, and sweeps by itself', async () => {
      const schema = await on.run('schema')
      expect(schema).toEqual({ code: 0, out: '', err: 'Redis needs no schema.\n' })
      expect(await on.json('schema')).toEqual([{ schema: null }])
      expect(await on.text('migrate')).toMatch(/there is nothing to migrate/)
      expect(await on.text('sweep')).toMatch(/removes expired sessions by itself/)
      const table = await on.run('list', '42', '--table', 'a')
      expect([table.code, table.err]).toEqual([
        2,
        expect.stringMatching(/--table is for SQL stores: Redis has --key-p/),
      ])
      const prefix = await on.run('list', '42', '--key-prefix', 'a{b}')
      expect([prefix.code, prefix.err]).toEqual([
        2,
        expect.stringMatching(/^coatcheck: --key-prefix: expected at most/),
      ])
    })

    it('lists the sessions of exactly this user, for people and in JSON', async () => {
      const mine = await logIn(MAX, 'max\u001b[2J')
      await logIn(MAX - 1n)
      const text = await on.run('list', `${MAX}`)
      expect(text.code).toBe(0)
      expect(text.out.split('\n')).toHaveLength(3)
      expect(text.out).toContain(`${mine.key}  ${MAX}  ${new Date(mine.createdAt).toISOString().slice(0, 19)}Z`)
      expect(text.out).toContain('max\\u001b[2J')
      expect(text.err).toBe(`1 session of user ${MAX}.\n`)
      const { key, createdAt, seenAt, expiresAt, absoluteExpiresAt } = mine
      expect(await on.json('list', `${MAX}`)).toEqual([
        {
          key,
          userId: `${MAX}`,
          username: 'max\u001b[2J',
          createdAt,
          seenAt,
          expiresAt,
          absoluteExpiresAt,
          remembered: false,
        },
      ])
    })

    it('says so where a user has no session', async () => {
      const none = await on.run('list', '7')
      expect(none).toMatchObject({ code: 0, out: '' })
      expect(none.err).toMatch(/^0 sessions of user 7\.\nIf there should be some, see whether an option differs/)
      expect(await on.json('list', '7')).toEqual([])
      const end = await on.run('end-user', '7')
      expect(end.out).toBe('0 sessions of user 7 ended.\n')
    })

    it('revokes one session with the remember tokens of its device, and no session of another user', async () => {
      const [one, other, foreign] = [await logIn(1), await logIn(1), await logIn(2)]
      const token = await sessions.remember(one)
      secrets.push(...token.split('.'))
      expect(await on.json('revoke', '1', foreign.key)).toEqual([{ ended: 0 }])
      expect((await on.run('revoke', '1', foreign.key)).out).toBe('0 sessions ended: user 1 has none with this key.\n')
      expect(await on.text('revoke', '1', one.key)).toBe('1 session of user 1 ended.')
      expect(await sessions.get(one.secret)).toBeNull()
      expect(await sessions.recall(token)).toBeNull()
      for (const alive of [other, foreign]) expect(await sessions.get(alive.secret)).not.toBeNull()
      expect(await on.json('revoke', '1', one.key)).toEqual([{ ended: 0 }])
    })

    it('ends all sessions and remember tokens of a user, and late log-ins with an older password', async () => {
      const [one, other] = [await logIn(3), await logIn(4)]
      await logIn(3)
      const token = await sessions.remember(one)
      secrets.push(...token.split('.'))
      expect(await on.text('end-user', '3', '--password-version', '5')).toBe(
        '2 sessions of user 3 ended. Log-ins below password version 5 are refused.',
      )
      expect(await sessions.get(one.secret)).toBeNull()
      expect(await sessions.recall(token)).toBeNull()
      expect(await sessions.get(other.secret)).not.toBeNull()
      const late = sessions.create({ user: { id: 3, name: 'ada', passwordVersion: 4 } })
      await expect(late).rejects.toMatchObject({ code: 'ERR_SESSION_STALE_LOGIN' })
    })

    it('keeps to the tenant that is named', async () => {
      const tenant = sessions.namespace('acme')
      const [theirs, ours] = [await logIn(5, 'ada', tenant), await logIn(5)]
      expect((await on.json('list', '5', '--namespace', 'acme')).map(({ key }) => key)).toEqual([theirs.key])
      expect((await on.json('list', '5')).map(({ key }) => key)).toEqual([ours.key])
      expect(await on.json('end-user', '5', '--namespace', 'acme')).toEqual([{ ended: 1 }])
      expect(await tenant.get(theirs.secret)).toBeNull()
      expect(await sessions.get(ours.secret)).not.toBeNull()
      const wrong = await on.run('list', '5', '--namespace', 'a b')
      expect([wrong.code, wrong.err]).toEqual([2, expect.stringMatching(/^coatcheck: --namespace: expected 1 to 32/)])
    })

    itOnSql('sweeps what has been expired for 5 minutes', async () => {
      const alive = await logIn(6)
      now = Date.now() - 86_400_000
      for (let count = 0; count < 3; count++) await logIn(6)
      now = Date.now()
      const [{ removed }] = await on.json('sweep')
      expect(removed).toBeGreaterThanOrEqual(3)
      expect(await on.json('sweep')).toEqual([{ removed: 0, interrupted: false }])
      expect(await on.text('sweep')).toBe('0 expired records removed.')
      expect(await sessions.get(alive.secret)).not.toBeNull()
    })

    it('names the store without its password where the store is down, in one line', async () => {
      if (opened.kill === undefined) return
      await opened.kill()
      for (const args of [
        ['list', '42'],
        ['revoke', '42', 'x'.repeat(46)],
        ['end-user', '42'],
        ['sweep'],
        ['migrate'],
      ]) {
        const { code, out, err } = await on.run(...args)
        expect({ code, out }).toEqual({ code: 1, out: '' })
        expect(err).toMatch(/^coatcheck: [^\n]* at 127\.0\.0\.1:\d+[^\n]*\n$/)
      }
    }, 60_000)

    it('has printed no session ID, no remember token, no data and no password in all of this', () => {
      expect(secrets.length).toBeGreaterThan(8)
      for (const secret of [...secrets, PASSWORD, 'kept-by-the-application']) expect(on.printed()).not.toContain(secret)
    })
  })

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
      const full = await coatcheck(['schema'], { env, stdout: openSync('/dev/full', 'w') })
      expect(full).toMatchObject({
        code: 1,
        err: expect.stringMatching(/^coatcheck: the output could not be written: /),
      })
    }
    const running = startCoatcheck(['schema'], env)
    running.child.stdout!.destroy()
    await running.stop('SIGCONT')
    expect(running.child.exitCode).toBe(0)
  })

  it('ends with 2 for a wrong command line, and opens nothing', async () => {
    for (const args of [[], ['frobnicate'], ['list'], ['list', 'ada'], ['list', '42', '--timeout', '5']]) {
      const { code, out, err } = await on('never.db').run(...args)
      expect({ code, out }).toEqual({ code: 2, out: '' })
      expect(err).toMatch(/^coatcheck: .*\nSee coatcheck .*--help\.\n$/)
    }
    const none = await coatcheck(['list', '42'])
    expect(none).toMatchObject({
      code: 2,
      err: expect.stringMatching(/no store is named: set COATCHECK_STORE_URL, or/),
    })
    expect(existsSync(join(folder, 'never.db'))).toBe(false)
  })

  it('prints its release and its help', async () => {
    const version = await coatcheck(['--version'])
    expect(version).toMatchObject({ code: 0, err: '', out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
    expect((await coatcheck(['end-user', '--help'])).out).toMatch(/^Usage: coatcheck end-user USER \[options\]\n/)
  })
})

/** What an installation without development has: the package, and these drivers. */
function installation(...drivers: string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'coatcheck-installed-'))
  for (const path of ['package.json', 'dist', 'node_modules/cookie'])
    cpSync(join(root, path), join(folder, path), { recursive: true })
  for (const driver of drivers) symlinkSync(join(root, 'node_modules', driver), join(folder, 'node_modules', driver))
  const run = (url: string, ...args: string[]) =>
    coatcheck(args, { env: { COATCHECK_STORE_URL: url }, cwd: folder, program: join(folder, 'dist/command.js') })
  return { folder, run, remove: () => rmSync(folder, { recursive: true }) }
}

describe('coatcheck without a driver', () => {
  it('says what to install', async () => {
    const { folder, run, remove } = installation()
    try {
      for (const [url, line] of [
        ['redis://127.0.0.1:1', 'npm i redis (or ioredis)'],
        ['redis+cluster://127.0.0.1:1', 'npm i redis (or ioredis)'],
        ['postgres://127.0.0.1:1/x', 'npm i pg'],
        ['mysql://127.0.0.1:1/x', 'npm i mysql2'],
      ] as const) {
        const { code, err } = await run(url, 'list', '42')
        expect([code, err]).toEqual([1, expect.stringContaining(`needs a driver that is not installed here: ${line}`)])
      }
      // Of Node.js itself, from 22.5.
      const sqlite = await run(`sqlite:${join(folder, 'a.db')}`, 'migrate')
      if (ENGINES['node:sqlite'].missing() === null) expect(sqlite.code).toBe(0)
      else expect(sqlite.err).toContain('npm i better-sqlite3 (or libsql)')
    } finally {
      remove()
    }
  })

  it('does not take one that is broken for one that is missing', async () => {
    const { folder, run, remove } = installation()
    try {
      mkdirSync(join(folder, 'node_modules/pg'))
      writeFileSync(join(folder, 'node_modules/pg/index.js'), "require('something-it-needs')")
      const { code, err } = await run('postgres://127.0.0.1:1/x', 'list', '42')
      expect([code, err]).toEqual([
        1,
        expect.stringMatching(/pg cannot be loaded \(Cannot find module 'something-it-ne/),
      ])
    } finally {
      remove()
    }
  })
})

describeEngine('redis', 'coatcheck with redis and with ioredis', () => {
  it('works with either, and tells a wrong password without it', async () => {
    const server = await startRedis(['--requirepass', PASSWORD])
    const wrong = server.url.replace('://', '://:wrong-hunter2@')
    const right = server.url.replace('://', `://:${PASSWORD}@`)
    try {
      for (const driver of ['redis', 'ioredis']) {
        const { run, remove } = installation(driver)
        try {
          const refused = await run(wrong, 'list', '42')
          expect(refused, driver).toMatchObject({ code: 1, out: '' })
          expect(refused.err).toMatch(/^coatcheck: Redis at [^\n]*: WRONGPASS[^\n]*\n$/)
          expect(refused.err).not.toContain('hunter2')
          expect(await run(right, 'end-user', '42', '--json'), driver).toEqual({
            code: 0,
            out: '{"ended":0}\n',
            err: '',
          })
        } finally {
          remove()
        }
      }
    } finally {
      await server.stop()
    }
  })

  it('works on a cluster with ioredis', async () => {
    const cluster = await startRedisCluster()
    const { run, remove } = installation('ioredis')
    try {
      const url = `redis+cluster://${cluster.addresses.map(({ host, port }) => `${host}:${port}`).join(',')}`
      expect(await run(url, 'end-user', '42', '--json')).toEqual({ code: 0, out: '{"ended":0}\n', err: '' })
    } finally {
      remove()
      await cluster.stop()
    }
    const gone = await coatcheck(['list', '42'], { env: { COATCHECK_STORE_URL: 'redis+cluster://127.0.0.1:1' } })
    expect(gone).toMatchObject({ code: 1, err: expect.stringMatching(/^coatcheck: Redis Cluster at 127\.0\.0\.1:1: /) })
  }, 120_000)

  it('refuses a Redis that evicts, unless told', async () => {
    const server = await startRedis(['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'])
    try {
      const on = commandOn(server.url)
      const { code, err } = await on.run('list', '42')
      expect([code, err]).toEqual([1, expect.stringMatching(/Redis evicts keys .*, or give --allow-eviction\n$/)])
      expect(await on.json('list', '42', '--allow-eviction')).toEqual([])
    } finally {
      await server.stop()
    }
  })
})

describeEngine('postgresql', 'a signal', () => {
  let server: PostgresServer
  let admin: pg.Pool
  beforeAll(async () => {
    await build()
    server = await startPostgres()
    admin = server.pool()
    await new PostgresStore(admin).migrate()
  }, 240_000)
  afterAll(() => server?.stop())

  /** Somebody else's lock on the sessions, and the command waiting for it. */
  async function waiting(...args: string[]) {
    const holder = await admin.connect()
    await holder.query('BEGIN')
    await holder.query('LOCK TABLE coatcheck_sessions IN ACCESS EXCLUSIVE MODE')
    const running = startCoatcheck(args, { COATCHECK_STORE_URL: server.url() })
    await until('the command waiting for the lock', async () => {
      const { rows } = await admin.query('SELECT count(*)::int AS waiting FROM pg_locks WHERE NOT granted')
      expect(rows[0].waiting).toBeGreaterThan(0)
    })
    const release = async () => {
      await holder.query('ROLLBACK')
      holder.release()
    }
    const interrupt = async (signal: NodeJS.Signals) => {
      running.child.kill(signal)
      await until('the command saying so', () => expect(running.output()).toContain('Interrupted'))
    }
    return { running, release, interrupt }
  }

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s lets the call under way finish, says how far it came, and ends with %d', async (signal, code) => {
    const past = Date.now() - 86_400_000
    const sessions = new SessionManager({ store: new PostgresStore(admin), sweepInterval: false, now: () => past })
    await Promise.all(Array.from({ length: 1005 }, (_, id) => sessions.create({ user: { id, name: 'ada' } })))
    const { running, release, interrupt } = await waiting('sweep', '--json')
    await interrupt(signal)
    await release()
    await until('the end', () => expect(running.ended()).toBe(true))
    expect(running.child.exitCode).toBe(code)
    const { removed } = JSON.parse(/^\{.*\}$/m.exec(running.output())![0])
    const left = await admin.query('SELECT count(*)::int AS left FROM coatcheck_sessions')
    expect(removed).toBeGreaterThan(0)
    expect([running.output(), left.rows[0].left > 0]).toEqual([expect.stringContaining('"interrupted":true'), true])
    expect((await commandOn(server.url()).json('sweep'))[0].removed).toBeGreaterThan(0)
    expect((await admin.query('SELECT count(*)::int AS left FROM coatcheck_sessions')).rows[0].left).toBe(0)
  })

  it('that comes a second time ends it at once', async () => {
    const { running, release, interrupt } = await waiting('sweep', '--timeout', '1h')
    try {
      await interrupt('SIGINT')
      await until('the end', () => {
        running.child.kill('SIGINT')
        expect(running.ended()).toBe(true)
      })
      expect(running.child.exitCode).toBe(130)
    } finally {
      await release()
    }
  })

  it('does not make a call that succeeds an interrupted one', async () => {
    const { running, release, interrupt } = await waiting('end-user', '42')
    await interrupt('SIGINT')
    await release()
    await until('the end', () => expect(running.ended()).toBe(true))
    expect([running.child.exitCode, running.output()]).toEqual([
      0,
      expect.stringContaining('0 sessions of user 42 ended'),
    ])
  })

  it('before anything was begun ends it at once', async () => {
    // Accepts connections, and never says a word.
    const silent = createServer(socket => socket.on('error', () => {}))
    await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
    const connected = once(silent, 'connection')
    const { port } = silent.address() as { port: number }
    const running = startCoatcheck(['sweep'], { COATCHECK_STORE_URL: `postgres://ada:hunter2@127.0.0.1:${port}/x` })
    await connected
    await running.stop('SIGINT')
    expect([running.child.exitCode, running.output()]).toEqual([130, ''])
    silent.close()
  })

  it('is not needed where a server accepts connections and never answers', async () => {
    const silent = createServer(socket => socket.on('error', () => {}))
    await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
    const { port } = silent.address() as { port: number }
    for (const scheme of ['postgres', 'mysql', 'redis', 'redis+cluster']) {
      const url = `${scheme}://ada:hunter2@127.0.0.1:${port}${scheme.startsWith('redis') ? '' : '/x'}`
      const { code, err } = await coatcheck(['list', '42', '--timeout', '300ms'], { env: { COATCHECK_STORE_URL: url } })
      expect([code, err]).toEqual([1, expect.stringMatching(/^coatcheck: [^\n]*127\.0\.0\.1[^\n]*\n$/)])
      expect(err).not.toContain('hunter2')
    }
    silent.close()
  })
})
