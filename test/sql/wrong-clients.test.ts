// What is passed to a store that it cannot use: refused with what is expected, and what to pass instead.
import { createClient } from '@libsql/client'
import { D1Store } from 'coatcheck/stores/d1'
import { MysqlStore } from 'coatcheck/stores/mysql'
import { PostgresStore, pglite } from 'coatcheck/stores/postgres'
import { SqliteStore } from 'coatcheck/stores/sqlite'
import mysql from 'mysql2'
import pg from 'pg'
import postgres from 'postgres'
import { describe, expect, it } from 'vitest'
import { failure } from '../support/failure.ts'
import { NOW, newKey, record } from './records.ts'

const nothing = () => {}
const late = async () => ({})
const FILE = { prepare: nothing, exec: nothing }
const BINDING = { prepare: nothing, batch: nothing }
const D1 = { ...BINDING, exec: late, dump: late }
const mysqlPool = mysql.createPool({ host: '127.0.0.1' })
const remote = createClient({ url: 'http://127.0.0.1:1' })

const EXPECTED = {
  PostgresStore: 'PostgresStore expects a pg.Pool: an object whose connect() gives a client; or the sql of postgres',
  MysqlStore: 'MysqlStore expects a pool',
  SqliteStore: 'SqliteStore expects a connection of better-sqlite3, libsql, node:sqlite or bun:sqlite: ',
  D1Store: 'D1Store expects a D1 database: the binding of a Worker, env.DB, with prepare() and batch(); ',
}
const STORES = { PostgresStore, MysqlStore, SqliteStore, D1Store }

describe.each(Object.keys(STORES) as (keyof typeof STORES)[])('%s', name => {
  const open = (given: unknown) => () => new STORES[name](given as never)

  it.each([undefined, null, 5, 'postgres://localhost/db', {}, nothing])(
    'refuses %j, and says what it expects',
    given => {
      expect(open(given)).toThrow(TypeError)
      expect(open(given)).toThrow(EXPECTED[name])
    },
  )

  const ADVICE: Record<keyof typeof STORES, [what: string, given: unknown, advice: string | RegExp][]> = {
    PostgresStore: [
      ['a pool of mysql2', mysqlPool, EXPECTED.PostgresStore],
      ['a pool of mysql2/promise', mysqlPool.promise(), EXPECTED.PostgresStore],
      ['a single client of pg', new pg.Client(), EXPECTED.PostgresStore],
      [
        'a sql that changes whole rows',
        postgres({ transform: { row: { from: row => row } } }),
        'cannot use a client with transform.row: give it one of its own',
      ],
    ],
    MysqlStore: [
      ['a pool of pg', new pg.Pool(), 'MysqlStore expects a pool of mysql2 or mysql2/promise'],
      ['a single connection', { promise: nothing }, 'got a single connection: use createPool() of mysql2'],
    ],
    SqliteStore: [
      ['a path', 'sessions.db', 'got "sessions.db": open it, new Database(path), and pass the connection'],
      ['a promise', Promise.resolve(FILE), 'got a promise: await it'],
      ['a class', class Database {}, 'got a function: pass a connection that it opened'],
      ['sqlite3', { ...FILE, parallelize: nothing }, 'answers come later (it has parallelize())'],
      ['the package sqlite', { ...FILE, getDatabaseInstance: nothing }, 'answers come later'],
      ['Cloudflare D1', D1, /got a D1 database: pass it to D1Store$/],
      [
        '@libsql/client',
        remote,
        /got the client of @libsql\/client: open the file with the package libsql, .* see the page on SQLite$/,
      ],
      ['Drizzle', { $client: FILE, select: nothing }, 'got an object around one: pass its $client'],
      ['a connection without exec()', { prepare: nothing }, /got an object without exec\(\)$/],
      ['an empty object', {}, /got an object without prepare\(\) and exec\(\)$/],
      ['a URL, and does not show its password', 'libsql://user:hunter2@db', /got a URL \(not shown(?!.*hunter2)/],
    ],
    D1Store: [
      ['undefined', undefined, 'got undefined: does wrangler.json name the binding under d1_databases?'],
      ['its name', 'DB', 'got "DB": pass the binding itself'],
      ['a promise', Promise.resolve(BINDING), 'got a promise: await it'],
      [
        'a session',
        { ...BINDING, getBookmark: nothing },
        'withSession(), whose reads may be old: pass the binding itself',
      ],
      ['@libsql/client', remote, 'got the client of @libsql/client: see the page on D1'],
      ['a file', FILE, 'got a connection to a SQLite file: pass it to SqliteStore'],
      ['half of one', { prepare: 'nothing', batch: nothing }, /got an object$/],
      ['Drizzle', { $client: BINDING }, 'got an object around one: pass its $client'],
      ['the env of a Worker', { DB: BINDING }, 'got an object around one: pass its DB'],
      ['an object around a file', { DB: FILE }, /got an object$/],
    ],
  }
  it.each(ADVICE[name])('refuses %s', (_, given, advice) => {
    expect(open(given)).toThrow(TypeError)
    expect(open(given)).toThrow(advice)
  })

  it('refuses an option that it has not, with those that it has, in ddl() too', () => {
    const clients = {
      PostgresStore: { connect: late },
      MysqlStore: { getConnection: late },
      SqliteStore: FILE,
      D1Store: D1,
    }
    const ways = [
      (options: unknown) => new STORES[name](clients[name] as never, options as never),
      (options: unknown) => STORES[name].ddl(options as never),
    ]
    for (const refusing of ways) {
      expect(() => refusing({ tabl: 'x' })).toThrow(
        new RegExp(`${name}: "tabl" is not an option .*\\(there are: table`),
      )
      expect(() => refusing({ userIds: 'string' })).toThrow('"userIds" is not an option; the SessionManager has it')
      expect(() => refusing([])).toThrow(/expected an object of options, got an array/)
      expect(() => refusing({ table: 'visits' })).not.toThrow()
      if (name === 'D1Store') expect(() => refusing({ schema: 'app' })).toThrow('the database has one schema')
      if (name === 'PostgresStore') expect(() => refusing({ prepare: 'no' })).toThrow('prepare: expected true or false')
    }
  })
})

it('the types of the stores refuse the client of another database', () => {
  const refused = [
    // @ts-expect-error
    () => new PostgresStore(mysqlPool),
    // @ts-expect-error
    () => new MysqlStore(new pg.Pool()),
    // @ts-expect-error
    () => new SqliteStore(mysqlPool),
    // @ts-expect-error
    () => new SqliteStore(remote),
    // @ts-expect-error
    () => new D1Store(remote),
  ]
  for (const open of refused) expect(open).toThrow(TypeError)
  expect(() => pglite({} as never)).toThrow('pglite expects a PGlite')
})

describe('a client that shows only at the first call what it is', () => {
  const file = (parts: object) => new SqliteStore({ prepare: nothing, exec: nothing, ...parts } as never)
  const rejecting = () => Promise.reject(new Error('late'))
  const answeringLate = () => ({ run: late, get: late, all: late })
  const LATER: [what: string, open: () => PostgresStore | MysqlStore | SqliteStore, words: RegExp][] = [
    ['a pool of no pg', () => new PostgresStore({ connect: late } as never), /whose connect\(\) gives clients/],
    ['a pool of mysql', () => new MysqlStore({ getConnection: nothing } as never), /gives no promise: use mysql2/],
    ['a pool of no mysql2', () => new MysqlStore({ getConnection: late } as never), /gives one of its connections/],
    ['exec() that gives a promise', () => file({ exec: rejecting }), /that answer at once; its exec\(\) gives/],
    ['prepare() that gives one', () => file({ prepare: late }), /its prepare\(\) gives/],
    ['all() that gives one', () => file({ prepare: answeringLate }), /its (all|run)\(\) /],
  ]
  it.each(LATER)('is told by a TypeError, and nothing was applied: %s', async (_, open, words) => {
    const store = open()
    for (const call of [
      () => store.touch(record().key, NOW, NOW, { now: NOW }),
      () => store.listUser('42', 'session', { now: NOW }),
    ]) {
      const error = await failure(call())
      expect(error).toMatchObject({ code: 'ERR_SESSION_STORE', outcome: 'not-applied' })
      expect(error.cause).toBeInstanceOf(TypeError)
      expect(String(error.cause)).toMatch(words)
    }
    await expect(store.migrate()).rejects.toThrow(TypeError)
  })

  it('is told by a read too', async () => {
    const read = file({ prepare: late }).read(newKey(), { now: NOW })
    await expect(read).rejects.toMatchObject({ cause: expect.any(TypeError) })
  })
})
