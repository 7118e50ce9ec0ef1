// What the stores for SQLite on a network make of their drivers: which are refused, and what their errors and answers mean.
// No database is asked.
import { SessionStoreError } from 'coatcheck'
import { D1Store } from 'coatcheck/stores/d1'
import { LibsqlStore } from 'coatcheck/stores/libsql'
import { describe, expect, it } from 'vitest'
import { NOW, newKey, record } from '../../../support/sql/records.ts'

const nothing = () => {}
const KEY = newKey()
const D1 = { prepare: nothing, batch: nothing }
const FILE = { prepare: nothing, exec: nothing }
const LIBSQL = { protocol: 'http', execute: nothing, batch: nothing, executeMultiple: nothing }
const promise = Promise.resolve(D1)

const messageOf = (call: () => unknown): string | null => {
  try {
    call()
    return null
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError)
    return (error as TypeError).message
  }
}

describe('D1Store', () => {
  const EXPECTED = 'D1Store expects a D1 database: the binding of a Worker, env.DB, with prepare() and batch(); '
  it.each<[string, unknown]>([
    ['got undefined: does wrangler.json name the binding under d1_databases?', undefined],
    ['got null', null],
    ['got 5', 5],
    ['got an object', {}],
    ['got "DB": pass the binding itself', 'DB'],
    ['got a promise: await it', promise],
    ['got what withSession() gives, whose reads may be old: pass the binding itself', { ...D1, getBookmark: nothing }],
    ['got the client of @libsql/client: pass it to LibsqlStore', LIBSQL],
    ['got a connection to a SQLite file: pass it to SqliteStore', FILE],
    ['got an object', { prepare: nothing }],
    ['got an object', { exec: nothing }],
    ['got an object', { batch: nothing }],
    ['got an object', { prepare: 'nothing', batch: nothing }],
    ['got an object around one: pass its $client', { $client: D1 }],
    ['got an object around one: pass its DB', { DB: D1 }],
    ['got an object around one: pass its db', { db: D1 }],
    ['got an object', { DB: FILE }],
  ])('says: %s', (words, given) => {
    expect(messageOf(() => new D1Store(given as never))).toBe(EXPECTED + words)
  })

  it('takes a binding, whatever else it can do', () => {
    expect(messageOf(() => new D1Store({ ...D1, exec: nothing, dump: nothing, withSession: nothing } as never))).toBe(
      null,
    )
  })
})

describe('LibsqlStore', () => {
  const EXPECTED =
    'LibsqlStore expects a client of @libsql/client for a database on a network: createClient() with a URL of libsql:, https: or http:; '
  it.each<[string, unknown]>([
    ['got undefined', undefined],
    ['got null', null],
    ['got an object', {}],
    ['got "libsql.db": pass createClient({ url, authToken })', 'libsql.db'],
    ['got a promise: await it', promise],
    [
      'got one that speaks WebSocket: write libsql: or https: for wss:, http: for ws:',
      { ...LIBSQL, protocol: 'ws', commit: nothing, rollback: nothing },
    ],
    [
      "got one that reads a file: pass new Database('sessions.db') of the package libsql to SqliteStore",
      { ...LIBSQL, protocol: 'file' },
    ],
    [
      'got a transaction: pass the client itself',
      { execute: nothing, batch: nothing, commit: nothing, rollback: nothing },
    ],
    ['got an object', { commit: nothing }],
    ['got an object', { rollback: nothing }],
    ['got a D1 database: pass it to D1Store', { ...D1, exec: nothing }],
    ['got a connection to a SQLite file: pass it to SqliteStore', FILE],
    ['got an object', { prepare: nothing }],
    ['got an object', { batch: nothing }],
    ['got an object', { exec: nothing }],
    ['got an object', { protocol: 'http', execute: nothing, batch: nothing }],
    ['got an object', { protocol: 'http', execute: nothing, executeMultiple: nothing }],
    ['got an object', { protocol: 'http', batch: nothing, executeMultiple: nothing }],
    ['got an object around one: pass its $client', { $client: LIBSQL }],
    ['got an object around one: pass its client', { client: LIBSQL }],
    ['got an object', { client: D1 }],
  ])('says: %s', (words, given) => {
    expect(messageOf(() => new LibsqlStore(given as never))).toBe(EXPECTED + words)
  })

  it('takes a client for a network', () => {
    expect(messageOf(() => new LibsqlStore(LIBSQL as never))).toBe(null)
  })
})

/** The error of a call that has to fail, and how often the driver was asked. */
async function failure(call: () => unknown): Promise<SessionStoreError> {
  const error = await Promise.resolve()
    .then(call)
    .then(
      value => expect.unreachable(`answered ${JSON.stringify(value)}`),
      error => error,
    )
  expect(error).toBeInstanceOf(SessionStoreError)
  return error
}

const log = () => ({ now: NOW, deadline: performance.now() + 5000 })
const CLOCK = 1_700_000_000_000

describe('an error of D1', () => {
  /** A D1 whose batches fail so, one after the other; the last one for good. */
  const failing = (...errors: unknown[]) => {
    let asked = 0
    const store = new D1Store({
      prepare: () => ({ bind: nothing }),
      async batch() {
        throw errors[Math.min(asked++, errors.length - 1)]
      },
    } as never)
    return { store, asked: () => asked }
  }
  it.each<[string, string]>([
    ['D1_ERROR: UNIQUE constraint failed: s.id: SQLITE_CONSTRAINT', 'not-applied'],
    ['D1_ERROR: no such table: s: SQLITE_ERROR', 'not-applied'],
    ['D1_ERROR: disk I/O error: SQLITE_IOERR', 'unknown'],
    ['D1_ERROR: database or disk is full: SQLITE_FULL', 'unknown'],
    ['D1_ERROR: SQLITE_', 'unknown'],
    ['D1_TYPE_ERROR: Type undefined not supported', 'not-applied'],
    ['D1_COLUMN_ERROR: no such column', 'not-applied'],
    ['D1_EXEC_ERROR: Error in line 1', 'not-applied'],
    ['D1_ERROR: No SQL statements detected.', 'not-applied'],
    ['D1_ERROR: Network connection lost.', 'unknown'],
    ['D1_ERROR: D1 DB is overloaded. Requests queued for too long.', 'not-applied'],
    ['D1_ERROR: D1 DB is overloaded. Too many requests queued.', 'not-applied'],
    ['D1_ERROR: D1 DB is overloaded.', 'unknown'],
    ['D1_ERROR: D1 DB storage operation exceeded timeout which caused object to be reset.', 'unknown'],
  ])('%s: %s', async (message, outcome) => {
    for (const error of [new Error(message), message]) {
      const { store, asked } = failing(error)
      expect(await failure(() => store.delete(KEY, log()))).toMatchObject({ operation: 'delete', outcome })
      expect(asked()).toBe(1)
    }
  })

  it.each(['SQLITE_BUSY', 'SQLITE_LOCKED'])('%s is worth another try', async code => {
    const { store, asked } = failing(new Error(`D1_ERROR: database is locked: ${code}`), new Error('D1_TYPE_ERROR'))
    expect(await failure(() => store.delete(KEY, log()))).toMatchObject({ cause: { message: 'D1_TYPE_ERROR' } })
    expect(asked()).toBe(2)
  })
})

describe('an answer of D1', () => {
  type Answer = { results: unknown; meta?: object }
  /** A D1 that answers the batches so, one after the other. */
  const answering = (...answers: unknown[]) =>
    new D1Store({ prepare: () => ({ bind: nothing }), batch: async () => answers.shift() } as never)
  const clock = (told: unknown = CLOCK): Answer => ({ results: [{ clock: told, late: null }], meta: {} })
  const rows = (...results: object[]): Answer => ({ results, meta: { changes: 0 } })

  it.each<[string, unknown[]]>([
    ['is not that of D1: its batch() gives no list', [{ results: [] }]],
    ['is not that of D1: its batch() gives no list', [undefined]],
    ['is not that of D1: its batch() gives no rows', [[{ results: 'none', meta: {} }]]],
    ['is not that of D1: its batch() has not answered a statement', [[]]],
    ['does not tell the clock of the database', [[rows()]]],
    ['does not tell the clock of the database', [[clock('noon')]]],
    ['does not tell the clock of the database', [[clock()], [clock(1.5), rows(), rows()]]],
    ['has not answered each statement of a batch', [[clock()], [clock(), rows()]]],
    ['has not answered each statement of a batch', [[clock()], [clock(), rows(), rows(), rows()]]],
  ])('that %s fails, and may have written', async (words, answers) => {
    const error = await failure(() => answering(...answers).delete(KEY, log()))
    expect(error).toMatchObject({ outcome: 'unknown', cause: { message: `the driver ${words}` } })
    expect(error.cause).toBeInstanceOf(TypeError)
  })

  it('is read by its columns and by the rows that were changed; what says nothing of these has changed none', async () => {
    const logOut = (live: number) => answering([clock()], [clock(), rows({ n: live }), rows()]).delete(KEY, log())
    expect([await logOut(1), await logOut(0)]).toEqual([true, false])
    const touch = (...said: Answer[]) => answering([clock()], [clock(), ...said]).touch(KEY, NOW, NOW + 1, log())
    expect(await touch({ results: [], meta: { changes: 1 } }, rows())).toBe('touched')
    expect(await touch({ results: [], meta: { changes: 0 } }, rows())).toBe('gone')
    expect(await touch({ results: [], meta: {} }, rows())).toBe('gone')
    expect(await touch({ results: [] }, rows())).toBe('gone')
  })
})

it('sends D1 each statement with its values', async () => {
  const sent: [string, unknown[]][][] = []
  const prepare = (sql: string) => ({ bind: (...values: unknown[]) => [sql, values] })
  const batch = async (statements: [string, unknown[]][]) => {
    sent.push(statements)
    return statements.map(() => ({ results: [{ clock: CLOCK, late: null }], meta: { changes: 1 } }))
  }
  const store = new D1Store({ prepare, batch } as never)
  expect(await store.touch(KEY, NOW, NOW + 1, { now: NOW })).toBe('touched')
  expect(sent.map(statements => statements.map(([sql, values]) => [sql.split(' ')[0], values]))).toEqual([
    [['SELECT', []]],
    [
      ['SELECT', [expect.any(Number)]],
      ['UPDATE', [NOW, NOW + 1, KEY, NOW]],
      ['SELECT', [KEY]],
    ],
  ])
})

it.each([
  ['D1Store', D1Store.ddl],
  ['LibsqlStore', LibsqlStore.ddl],
] as const)('%s prints its tables by the names that it is given', (_, schema) => {
  expect(schema()).toMatch(/^CREATE TABLE IF NOT EXISTS "coatcheck_sessions" \(/)
  expect(schema({ table: 'visits' })).toMatch(/CREATE TABLE IF NOT EXISTS "visits_users" \(/)
})

it.each([
  ['D1Store', (options: object) => new D1Store(D1 as never, options)],
  ['LibsqlStore', (options: object) => new LibsqlStore(LIBSQL as never, options)],
] as const)('%s says what to do instead of options that only others have', (name, open) => {
  const said = (options: object) => messageOf(() => open(options))
  expect(said({ schema: 'app' })).toMatch(
    new RegExp(`^${name}: "schema" is not an option; .*the database has one schema`),
  )
  expect(said({ userId: 'text' })).toMatch(new RegExp(`^${name}: "userId" is not an option; .*it is called userIds`))
  expect(said({ table: 'visits', userIds: 'string' })).toBe(null)
})

describe('an error of @libsql/client', () => {
  const failing = (...errors: unknown[]) => {
    let asked = 0
    const fail = async () => {
      throw errors[Math.min(asked++, errors.length - 1)]
    }
    return { store: new LibsqlStore({ ...LIBSQL, execute: fail, batch: fail } as never), asked: () => asked }
  }
  const of = (message: string, more: object = {}) => Object.assign(new Error(message), more)
  const coded = (code: unknown) => of('failed', { code })
  const deep = (depth: number): object =>
    depth === 0 ? { code: 'ECONNREFUSED' } : of('fetch failed', { cause: deep(depth - 1) })
  const circle = of('fetch failed')
  circle.cause = circle

  it.each<[string, unknown]>([
    ['not-applied', of('Server returned HTTP status 401', { code: 'SERVER_ERROR' })],
    ['not-applied', of('Server returned HTTP status 403')],
    ['not-applied', of('Server returned HTTP status 404')],
    ['unknown', of('Server returned HTTP status 502', { code: 'SERVER_ERROR' })],
    ['not-applied', coded('SQLITE_CONSTRAINT_PRIMARYKEY')],
    ['not-applied', coded('SQL_PARSE_ERROR')],
    ['unknown', coded('SQLITE_IOERR')],
    ['unknown', coded('SQLITE_IOERR_WRITE')],
    ['unknown', coded('SQLITE_FULL')],
    ['not-applied', coded('SQLITE_ERROR_SQLITE_FULL')],
    ['unknown', coded('NOSQL')],
    ['unknown', coded('HRANA_PROTO_ERROR')],
    ['unknown', coded(7)],
    ['unknown', coded('ECONNRESET')],
    ['not-applied', coded('ECONNREFUSED')],
    ['not-applied', coded('ENOTFOUND')],
    ['not-applied', coded('EAI_AGAIN')],
    ['not-applied', coded('ENETUNREACH')],
    ['not-applied', coded('EHOSTUNREACH')],
    ['not-applied', coded('UND_ERR_CONNECT_TIMEOUT')],
    ['not-applied', of('fetch failed', { code: 'FETCH', cause: coded('ECONNREFUSED') })],
    ['not-applied', of('fetch failed', { cause: { errors: [coded('EPIPE'), coded('EHOSTUNREACH')] } })],
    ['unknown', of('fetch failed', { errors: 'ECONNREFUSED' })],
    ['not-applied', deep(5)],
    ['unknown', deep(6)],
    ['unknown', circle],
    ['unknown', 'HTTP status 401'],
    ['unknown', null],
  ])('says %s: %s', async (outcome, error) => {
    const { store, asked } = failing(error)
    expect(await failure(() => store.delete(KEY, log()))).toMatchObject({ operation: 'delete', outcome })
    expect(asked()).toBe(1)
  })

  it.each<[string, unknown]>([
    ['a lock', coded('SQLITE_BUSY')],
    ['a lock of a kind', coded('SQLITE_BUSY_SNAPSHOT')],
    ['a locked table', coded('SQLITE_LOCKED')],
    ['a lock below another error', of('failed', { cause: coded('SQLITE_BUSY') })],
    ['too many requests', of('Server returned HTTP status 429')],
  ])('that tells of %s is worth another try', async (_, error) => {
    const { store, asked } = failing(error, coded('SQL_PARSE_ERROR'))
    expect(await failure(() => store.delete(KEY, log()))).toMatchObject({ cause: { code: 'SQL_PARSE_ERROR' } })
    expect(asked()).toBe(2)
  })

  it('of a code that only contains that of a lock is worth none', async () => {
    const { store, asked } = failing(coded('NOT_SQLITE_BUSY'))
    await failure(() => store.delete(KEY, log()))
    expect(asked()).toBe(1)
  })
})

describe('an answer of @libsql/client', () => {
  const row = (...cells: unknown[]) => Object.assign({ length: cells.length }, cells)
  const said = (rowsAffected: number, ...rows: object[]) => ({ rows, rowsAffected })
  const clock = said(0, row(CLOCK, null))
  const sent: unknown[] = []
  const answering = (execute: unknown, batch?: unknown) =>
    new LibsqlStore({
      ...LIBSQL,
      execute: async () => execute,
      batch: async (queries: { args: unknown[] }[], mode: string) => {
        sent.push(mode, ...queries.map(({ args }) => args))
        return batch
      },
    } as never)

  it.each<[string, unknown, unknown]>([
    ['is not that of @libsql/client: it gives no rows', undefined, []],
    ['is not that of @libsql/client: it gives no rows', { rows: 'none' }, []],
    ['is not that of @libsql/client: its batch() gives no list', clock, clock],
    ['has not answered each statement of a batch', clock, [clock, clock]],
    ['does not tell the clock of the database', said(0), []],
  ])('that %s fails, and may have written', async (words, execute, batch) => {
    const error = await failure(() => answering(execute, batch).delete(KEY, log()))
    expect(error).toMatchObject({ outcome: 'unknown', cause: { message: `the driver ${words}` } })
    expect(error.cause).toBeInstanceOf(TypeError)
  })

  it('is read by the places of its cells and by the rows that were changed, and whole numbers are sent as such', async () => {
    const touch = (changed: number) =>
      answering(clock, [clock, said(changed), said(0)]).touch(KEY, NOW, NOW + 1, { now: NOW })
    expect(await touch(0)).toBe('gone')
    sent.length = 0
    expect(await touch(1)).toBe('touched')
    const [mode, inTime, touched] = sent as [string, unknown[], unknown[]]
    expect(mode).toBe('write')
    expect(inTime).toEqual([expect.any(BigInt)])
    expect(touched).toEqual([BigInt(NOW), BigInt(NOW + 1), KEY, BigInt(NOW)])
  })

  it('brings several readers of one turn what stands under their keys, by one statement with a list of these', async () => {
    const asked: unknown[][] = []
    const execute = async ({ args }: { args: unknown[] }) => {
      asked.push(args)
      return said(0)
    }
    const store = new LibsqlStore({ ...LIBSQL, execute } as never)
    const keys = [newKey(), newKey()]
    expect(await Promise.all(keys.map(key => store.read(key, log())))).toEqual([null, null])
    expect(asked.splice(0)).toEqual([[JSON.stringify(keys)]])
    expect(await store.read(KEY, log())).toBe(null)
    expect(asked.splice(0)).toEqual([[KEY]])
    expect(await store.read('x', log())).toBe(null)
    expect(asked, 'what can be no key').toEqual([])
  })

  it.each([
    ['made a session although something stood in its way', 1, 1],
    ['made none although nothing stood in its way', 0, 0],
  ])('that contradicts itself fails, and may have written: it %s', async (_, stale, made) => {
    const facts = said(0, row(0, null, null, null, stale, 1))
    const store = answering(clock, [clock, facts, said(made), said(made)])
    const error = await failure(() => store.create(record(), {}, log()))
    expect(error).toMatchObject({
      operation: 'create',
      outcome: 'unknown',
      cause: { message: 'the driver contradicts itself within one batch' },
    })
    const sound = answering(clock, [clock, facts, said(1 - made), said(1 - made)])
    expect(await sound.create(record(), {}, log())).toMatchObject({ outcome: stale ? 'stale-login' : 'created' })
  })

  it('is not waited for where the client is closed', async () => {
    const store = new LibsqlStore({ ...LIBSQL, closed: true } as never)
    for (const call of [() => store.read(KEY, log()), () => store.delete(KEY, log())])
      expect(await failure(call)).toMatchObject({ outcome: 'not-applied', cause: { message: 'the client is closed' } })
  })
})
