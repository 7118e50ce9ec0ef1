// What D1Store makes of its driver: what is refused, and what errors and answers mean.
// No database is asked.
import { SessionStoreError } from 'coatcheck'
import { D1Store } from 'coatcheck/stores/d1'
import { describe, expect, it } from 'vitest'
import { NOW, newKey } from '../records.ts'

const nothing = () => {}
const KEY = newKey()
const D1 = { prepare: nothing, batch: nothing }
const FILE = { prepare: nothing, exec: nothing }
const LIBSQL = { execute: nothing, batch: nothing, executeMultiple: nothing }
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
    [
      'got the result of withSession(), whose reads may be old: pass the binding itself',
      { ...D1, getBookmark: nothing },
    ],
    ['got the client of @libsql/client: see the page on D1', LIBSQL],
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
  const rows = (...results: object[]): Answer => ({ results, meta: { changes: 0 } })

  it.each<[string, unknown[]]>([
    ['its batch() does not answer each statement', [{ results: [] }]],
    ['its batch() does not answer each statement', [undefined]],
    ['its batch() gives no rows', [[{ results: 'none', meta: {} }]]],
    ['its batch() does not answer each statement', [[]]],
    ['its batch() does not answer each statement', [[rows(), rows()]]],
  ])('that shows that %s fails, and may have written', async (words, answers) => {
    const error = await failure(() => answering(...answers).delete(KEY, log()))
    expect(error).toMatchObject({ outcome: 'unknown', cause: { message: `not a D1 database: ${words}` } })
    expect(error.cause).toBeInstanceOf(TypeError)
  })
})

it('prints its tables by the names that it is given', () => {
  expect(D1Store.ddl()).toMatch(/^CREATE TABLE IF NOT EXISTS "coatcheck_sessions" \(/)
  expect(D1Store.ddl({ table: 'visits' })).toMatch(/CREATE TABLE IF NOT EXISTS "visits_users" \(/)
})

it('says what to do instead of options that only others have', () => {
  const said = (options: object) => messageOf(() => new D1Store(D1 as never, options))
  expect(said({ schema: 'app' })).toMatch(/^D1Store: "schema" is not an option; .*the database has one schema/)
  expect(said({ userIds: 'string' })).toMatch(/^D1Store: "userIds" is not an option; .*the SessionManager has it/)
  expect(said({ table: 'visits' })).toBe(null)
})
