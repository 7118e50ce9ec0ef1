// What errors and answers of D1 mean. No database is asked: workerd has no word for most of them.
import { D1Store } from 'coatcheck/stores/d1'
import { describe, expect, it } from 'vitest'
import { failure } from '../../support/failure.ts'
import { call, newKey } from '../records.ts'

const nothing = () => {}
const KEY = newKey()

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
      expect(await failure(store.delete(KEY, call()))).toMatchObject({ operation: 'delete', outcome })
      expect(asked()).toBe(1)
    }
  })

  it.each(['SQLITE_BUSY', 'SQLITE_LOCKED'])('%s is worth another try', async code => {
    const { store, asked } = failing(new Error(`D1_ERROR: database is locked: ${code}`), new Error('D1_TYPE_ERROR'))
    expect(await failure(store.delete(KEY, call()))).toMatchObject({ cause: { message: 'D1_TYPE_ERROR' } })
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
    const error = await failure(answering(...answers).delete(KEY, call()))
    expect(error).toMatchObject({ outcome: 'unknown', cause: { message: `not a D1 database: ${words}` } })
    expect(error.cause).toBeInstanceOf(TypeError)
  })
})
