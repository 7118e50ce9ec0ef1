// What the store asks of a connection of each driver, in which order, and what it makes of errors. The drivers here do
// nothing but note it.
import type { SqliteDatabase } from 'coatcheck/stores/sqlite'
import { describe, expect, it } from 'vitest'
import { BUSY_TIMEOUT, checkSqlite, SqliteConnection, sqliteFailure } from '../../../../stores/sql/sqlite/client.ts'
import { compile } from '../../../../stores/sql/statement.ts'

const failed = (fields: object) => Object.assign(new Error('said by the driver'), fields)
const BUSY = failed({ code: 'SQLITE_BUSY' })
const PRAGMA = `exec PRAGMA busy_timeout = ${BUSY_TIMEOUT}`

describe('an error', () => {
  it.each<[string, object]>([
    ['of better-sqlite3 and libsql', { code: 'SQLITE_BUSY' }],
    ['of a snapshot', { code: 'SQLITE_BUSY_SNAPSHOT' }],
    ['of a shared cache', { code: 'SQLITE_LOCKED_SHAREDCACHE' }],
    ['of node:sqlite', { code: 'ERR_SQLITE_ERROR', errcode: 5 }],
    ['of node:sqlite, extended', { code: 'ERR_SQLITE_ERROR', errcode: 517 }],
    ['of a table', { errcode: 6 }],
    ['of libsql, by its number', { code: 'SQLITE_ERROR', rawCode: 261 }],
  ])('that tells of a lock is worth another try: %s', (_, fields) => {
    expect(sqliteFailure(failed(fields))).toEqual({ outcome: 'not-applied', retry: true })
  })

  it.each<[string, object]>([
    ['by its name', { code: 'SQLITE_IOERR' }],
    ['by its longer name', { code: 'SQLITE_IOERR_FSYNC' }],
    ['by its number', { errcode: 10 }],
    ['by its longer number', { rawCode: 1034 }],
  ])('of the disk leaves open whether something was written: %s', (_, fields) => {
    expect(sqliteFailure(failed(fields))).toEqual({ outcome: 'unknown', retry: false })
  })

  it.each<[string, unknown]>([
    ['a full disk', failed({ code: 'SQLITE_FULL' })],
    ['a constraint', failed({ code: 'SQLITE_CONSTRAINT_PRIMARYKEY' })],
    ['a number that is another', failed({ code: 'SQLITE_BUSY', errcode: 1 })],
    ['an error without a code', failed({})],
    ['a code that is no text', failed({ code: 5 })],
    ['the name of a member of all objects', failed({ code: 'constructor' })],
    ['nothing', null],
    ['nothing at all', undefined],
    ['text', 'SQLITE_BUSY'],
  ])('of another kind is not worth another try: %s', (_, error) => {
    expect(sqliteFailure(error)).toEqual({ outcome: 'not-applied', retry: false })
  })
})

interface Driver extends SqliteDatabase {
  readonly notes: unknown[]
  /** What the next calls throw, by their names: `get`, `all`, `run`, or the text that exec() is given. */
  readonly faults: Map<string, unknown>
}

/** A driver that notes what it is asked; `statement` and `database` say what it has beside, and answers otherwise. */
function driver(statement: object = {}, database: object = {}): Driver {
  const notes: unknown[] = []
  const faults = new Map<string, unknown>()
  const note = (name: string, given: readonly unknown[]) => {
    notes.push([name, ...given.map(String)].join(' '))
    const key = name === 'exec' ? String(given[0]) : name.split(' ')[0]!
    if (!faults.has(key)) return
    const fault = faults.get(key)
    faults.delete(key)
    throw fault
  }
  let prepared = 0
  return {
    notes,
    faults,
    exec: (sql: string) => note('exec', [sql]),
    prepare(sql: string) {
      const number = ++prepared
      notes.push(`prepare ${number} ${sql}`)
      const answer =
        (name: string, value: unknown) =>
        (...given: unknown[]) => {
          note(`${name} ${number}`, given)
          return value
        }
      return {
        run: answer('run', { changes: 3 }),
        get: answer('get', ['row']),
        all: answer('all', [['row']]),
        ...statement,
      } as never
    },
    ...database,
  }
}

const READ = { ...compile('?', 'SELECT a FROM t WHERE id = :id'), single: true }
const LIST = compile('?', 'SELECT a FROM t WHERE id = :id AND b = :b')
const WRITE = compile('?', 'DELETE FROM t WHERE id = :id')
const VALUES = { id: 'k', b: 'x' }

describe('a connection', () => {
  it('is told once how long SQLite may wait, and prepares each statement once', () => {
    const { notes, ...database } = driver()
    const connection = new SqliteConnection(database)
    expect(connection.run(READ, VALUES)).toEqual({ rows: [['row']], changed: 0 })
    expect(connection.run(LIST, VALUES)).toEqual({ rows: [['row']], changed: 0 })
    expect(connection.run(WRITE, VALUES)).toEqual({ rows: [], changed: 3 })
    expect(connection.first(READ, 'k')).toEqual(['row'])
    expect(notes).toEqual([
      PRAGMA,
      `prepare 1 ${READ.text}`,
      'get 1 k',
      `prepare 2 ${LIST.text}`,
      'all 2 k x',
      `prepare 3 ${WRITE.text}`,
      'run 3 k',
      'get 1 k',
    ])
  })

  it.each([[undefined], [null]])('finds no row where the driver gives %s', nothing => {
    const connection = new SqliteConnection(driver({ get: () => nothing }))
    expect(connection.run(READ, VALUES)).toEqual({ rows: [], changed: 0 })
    expect(connection.first(READ, 'k')).toBe(null)
  })

  it('reads the cells of rows that are objects', () => {
    const connection = new SqliteConnection(driver({ get: () => ({ a: 1, b: 2 }), all: () => [{ a: 1 }, { a: 2 }] }))
    expect(connection.run(READ, VALUES).rows).toEqual([[1, 2]])
    expect(connection.run(LIST, VALUES).rows).toEqual([[1], [2]])
  })

  it('counts rows that the driver counts as a big integer', () => {
    const connection = new SqliteConnection(driver({ run: () => ({ changes: 2n }) }))
    expect(connection.run(WRITE, VALUES).changed).toBe(2)
  })

  it.each<[string, object, readonly string[]]>([
    ['better-sqlite3 and libsql', { raw: 0 }, ['raw']],
    ['node:sqlite', { setReadBigInts: 0 }, ['setReadBigInts']],
    ['bun:sqlite, whose raw() runs the statement', { raw: 0, values: 0, safeIntegers: 0 }, ['safeIntegers']],
    ['bun:sqlite before it knew big integers', { raw: 0, values: 0 }, []],
  ])('asks for exact rows where it reads, in the way of %s', (_, members, expected) => {
    const told: unknown[] = []
    const statement = Object.fromEntries(
      Object.keys(members).map(name => [name, (on: unknown) => told.push(`${name} ${on}`)]),
    )
    const connection = new SqliteConnection(driver(statement))
    connection.run(WRITE, VALUES)
    expect(told).toEqual([])
    for (const read of [READ, LIST]) {
      connection.run(read, VALUES)
      expect(told.splice(0)).toEqual(expected.map(name => `${name} true`))
    }
  })

  it('prepares anew what has failed', () => {
    const { faults, notes, ...database } = driver()
    const connection = new SqliteConnection(database)
    for (const [name, statement] of [
      ['get', READ],
      ['all', LIST],
      ['run', WRITE],
    ] as const) {
      const error = failed({ code: 'SQLITE_ERROR' })
      faults.set(name, error)
      expect(() => connection.run(statement, VALUES)).toThrow(error)
      connection.run(statement, VALUES)
      expect(notes.filter(note => String(note).endsWith(statement.text)).length).toBe(2)
    }
    expect(notes.filter(note => String(note).startsWith('all'))).toEqual(['all 3 k x', 'all 4 k x'])
  })

  it.each([
    ['get', READ, ''],
    ['all', LIST, ' '],
  ] as const)('runs a statement that met a lock to its end before the next: %s', (name, statement, nothing) => {
    const { faults, notes, ...database } = driver()
    const connection = new SqliteConnection(database)
    const next = [
      () => connection.run(READ, VALUES),
      () => connection.run(LIST, VALUES),
      () => connection.transaction(() => 'done'),
    ]
    for (const call of next) {
      faults.set(name, BUSY)
      expect(() => connection.run(statement, VALUES)).toThrow(BUSY)
      const [number] = /\d+/.exec(String(notes.at(-1)))!
      notes.length = 0
      // The lock is still there: then it stays open, and nothing else begins.
      faults.set('all', BUSY)
      expect(call).toThrow(BUSY)
      expect(notes).toEqual([`all ${number} ${nothing}`])
      call()
      expect(notes[1]).toBe(`all ${number} ${nothing}`)
      call()
      expect(notes.filter(note => note === `all ${number} ${nothing}`).length).toBe(2)
    }
  })

  it('forgets an open statement that fails of something else', () => {
    const { faults, notes, ...database } = driver()
    const connection = new SqliteConnection(database)
    faults.set('get', BUSY)
    expect(() => connection.run(READ, VALUES)).toThrow(BUSY)
    faults.set('all', failed({ code: 'SQLITE_ERROR' }))
    connection.run(READ, VALUES)
    connection.run(READ, VALUES)
    expect(notes.filter(note => String(note).startsWith('all')).length).toBe(1)
  })
})

describe('a transaction', () => {
  it('takes the lock first, and is committed with what the work gives', () => {
    const { notes, ...database } = driver()
    const connection = new SqliteConnection(database)
    expect(connection.transaction(() => connection.run(WRITE, VALUES).changed)).toBe(3)
    expect(notes).toEqual([PRAGMA, 'exec BEGIN IMMEDIATE', `prepare 1 ${WRITE.text}`, 'run 1 k', 'exec COMMIT'])
  })

  it('does no work where it meets a lock, and rolls back nothing', () => {
    const { faults, notes, ...database } = driver()
    const connection = new SqliteConnection(database)
    faults.set('BEGIN IMMEDIATE', BUSY)
    expect(() => connection.transaction(() => expect.unreachable())).toThrow(BUSY)
    expect(notes).toEqual([PRAGMA, 'exec BEGIN IMMEDIATE'])
  })

  it.each(['work', 'COMMIT'])('is rolled back where the %s fails, and tells why', what => {
    const { faults, notes, ...database } = driver()
    const error = failed({ code: 'SQLITE_FULL' })
    faults.set(what, error)
    // SQLite may have rolled back by itself.
    faults.set('ROLLBACK', failed({ code: 'SQLITE_ERROR' }))
    const work = () => {
      if (what === 'work') throw error
    }
    expect(() => new SqliteConnection(database).transaction(work)).toThrow(error)
    expect(notes.at(-1)).toBe('exec ROLLBACK')
  })

  it.each(['inTransaction', 'isTransaction'])('waits for that of the application to end: %s', member => {
    const { notes, ...database } = driver({}, { [member]: true })
    const connection = new SqliteConnection(database)
    const refusal = { message: 'the connection is inside a transaction of the application' }
    const failure = { outcome: 'not-applied', retry: true }
    expect(() => connection.transaction(() => expect.unreachable())).toThrow(
      expect.objectContaining({ ...refusal, failure }),
    )
    expect(notes).toEqual([PRAGMA])
    Object.assign(database, { [member]: false })
    expect(connection.transaction(() => 'done')).toBe('done')
  })
})

describe('a connection that is of no use', () => {
  it('is asked nothing once it is closed', () => {
    const { notes, ...database } = driver({}, { open: false })
    const connection = new SqliteConnection(database)
    const refusal = expect.objectContaining({
      message: 'the connection is closed',
      failure: { outcome: 'not-applied', retry: false },
    })
    expect(() => connection.run(READ, VALUES)).toThrow(refusal)
    expect(() => connection.transaction(() => expect.unreachable())).toThrow(refusal)
    expect(notes).toEqual([])
    expect(new SqliteConnection(driver({}, { open: true })).first(READ, 'k')).toEqual(['row'])
  })

  it.each<[string, object, object, typeof WRITE]>([
    ['its exec() gives a promise', {}, { exec: () => Promise.reject(new Error('late')) }, READ],
    ['its prepare() gives no statement with run(), get() and all()', { get: undefined }, {}, WRITE],
    ['its prepare() gives no statement with run(), get() and all()', { all: undefined }, {}, WRITE],
    ['its prepare() gives no statement with run(), get() and all()', { run: undefined }, {}, READ],
    ['its all() gives no rows', { all: () => ({}) }, {}, LIST],
    ['its run() does not say how many rows it changed', { run: () => ({}) }, {}, WRITE],
    ['its run() does not say how many rows it changed', { run: () => undefined }, {}, WRITE],
  ])('says what is wrong with its driver: %s', (fault, statement, database, asked) => {
    const connection = new SqliteConnection(driver(statement, database))
    const message = expect.stringContaining(`an object with prepare() and exec() that answer at once; ${fault}`)
    for (let times = 0; times < 2; times++)
      expect(() => connection.run(asked, VALUES)).toThrow(
        expect.objectContaining({ message, failure: { outcome: 'not-applied', retry: false } }),
      )
  })
})

describe('what is no connection', () => {
  const connection = { prepare() {}, exec() {} }
  it.each<[string, unknown, string]>([
    ['an ORM that has it in a member', { driver: connection }, 'got an object around one: pass its driver'],
    ['a wrapper', { db: connection }, 'got an object around one: pass its db'],
    ['a wrapper around half of one', { db: { prepare() {} } }, 'got an object without prepare() and exec()'],
    ['a wrapper around the other half', { db: { exec() {} } }, 'got an object without prepare() and exec()'],
    ['half of one', { exec() {} }, 'got an object without prepare()'],
    ['members that are no functions', { prepare: 1, exec: 2 }, 'got an object without prepare() and exec()'],
    ['a number', 7, 'got 7'],
    ['a promise', Promise.resolve(connection), 'got a promise: await it'],
    [
      'a driver that calls back',
      { ...connection, parallelize() {} },
      'got a driver whose answers come later (it has parallelize())',
    ],
    [
      'the client of @libsql/client for a file',
      { executeMultiple() {}, protocol: 'file' },
      "got the client of @libsql/client: open the same file with the package libsql, new Database('sessions.db')",
    ],
  ])('is refused with advice: %s', (_, given, advice) => {
    expect(() => checkSqlite(given as never)).toThrow(new RegExp(`; ${advice.replace(/[().]/g, '\\$&')}$`))
  })

  it.each<[string, object]>([
    ['batch()', { batch() {} }],
    ['dump()', { dump() {} }],
    ['a member of another name', { $client: connection }],
  ])('is not seen in a connection that has %s too', (_, members) => {
    const given = { ...connection, ...members }
    expect(checkSqlite(given as never)).toBe(given)
  })
})
