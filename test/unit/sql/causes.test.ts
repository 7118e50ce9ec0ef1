// What the store tells of a driver's error: enough to mend it, and nothing of a session.
import { expect, it } from 'vitest'
import { withoutValues } from '../../../stores/sql/base/causes.ts'

type Told = Error & Record<string, unknown>
const told = (error: unknown) => withoutValues(error) as Told
const failed = (message: string, fields: object = {}) => Object.assign(new Error(message), fields)

it.each([
  ["Duplicate entry 'ada' for key 'PRIMARY'", 'Duplicate entry …'],
  ['invalid input syntax for type bigint: "ada at home"', 'invalid input syntax for type bigint: …'],
  ["Incorrect string value: '\\xF0\\x9F' for column 'data'", 'Incorrect string value: …'],
  ["Truncated incorrect DOUBLE value 'it's ada\n\nat home' was given", 'Truncated incorrect DOUBLE value … was given'],
  ['invalid input value "ada"', 'invalid input value …'],
  ...['relation "sessions" does not exist', "Table 'app.sessions' doesn't exist", "reentry 'one'"].map(kept => [
    kept,
    kept,
  ]),
])('leaves the values alone out of the message %j', (message, expected) => {
  expect(told(failed(message)).message).toBe(expected)
})

it('keeps what says where it failed, and nothing that may name a row', () => {
  const kept = {
    code: '23505',
    errno: 1062,
    sqlState: '23000',
    severity: 'ERROR',
    table: 'sessions',
    column: 'id',
    constraint: 'sessions_pkey',
    syscall: 'connect',
    address: '127.0.0.1',
    port: 5432,
  }
  const left = {
    detail: 'Failing row contains (ada).',
    sql: "INSERT 'ada'",
    where: 'ada',
    query: 'ada',
    values: ['ada'],
  }
  const objects = { code: { of: 'ada' }, errno: null, table: ['ada'], column: true }
  expect({ ...told(failed('no', objects)) }).toEqual({})
  expect({ ...told(failed('no', { ...kept, ...left })) }).toEqual(kept)
})

it('tells what kind of error it was, as that error itself did', () => {
  const told = withoutValues(new RangeError('too far'))
  expect(told.name).toBe('RangeError')
  expect(String(told)).toBe('RangeError: too far')
  expect(Object.keys(told)).toEqual([])
  expect(Object.hasOwn(withoutValues(new Error('no')), 'name')).toBe(false)
})

it('tells the lines of the program, and of the message only what is left of it', () => {
  const error = failed("Duplicate entry 'ada\nmet at home' for key")
  error.stack = `Error: ${error.message}\n    at query (driver.js:7:3)\n    at main (app.js:1:1)`
  expect(told(error).stack).toBe(
    'Error: Duplicate entry … for key\n    at query (driver.js:7:3)\n    at main (app.js:1:1)',
  )
})

it('tells of an error that has no stack what it is', () => {
  const error = new TypeError("a value 'ada'")
  Object.defineProperty(error, 'stack', { value: undefined })
  expect(told(error).stack).toBe('TypeError: a value …')
})

it.each([
  ['text', 'text'],
  [7, '7'],
  [null, 'null'],
])('makes an error of %j, which a driver threw', (thrown, message) => {
  expect(told(thrown)).toBeInstanceOf(Error)
  expect(told(thrown).message).toBe(message)
})

it('tells the causes without their values too', () => {
  const cause = failed("Duplicate entry 'ada'", { code: 'ER_DUP_ENTRY', detail: 'ada' })
  const { cause: of } = told(failed('no', { cause })) as { cause: Told }
  expect([of.message, of.code, of.detail]).toEqual(['Duplicate entry …', 'ER_DUP_ENTRY', undefined])
  expect(Object.hasOwn(told(failed('no')), 'cause')).toBe(false)
})

it('tells of a host with several addresses why each of them failed', () => {
  const errors = [failed('refused', { port: 1 }), failed("a value 'ada'", { port: 2, detail: 'ada' })]
  const { errors: each } = told(new AggregateError(errors, 'no')) as unknown as { errors: Told[] }
  expect(each.map(({ message, port, detail }) => [message, port, detail])).toEqual([
    ['refused', 1, undefined],
    ['a value …', 2, undefined],
  ])
  expect(Object.hasOwn(told(failed('no', { errors })), 'errors')).toBe(false)
})

it('ends where causes go round in a circle, or an error is one of those that it sums up, after four of them', () => {
  const error = new AggregateError([], 'round')
  error.errors.push(error)
  error.cause = error
  for (const next of ['cause', 'errors'] as const) {
    let depth = 0
    for (
      let each: any = withoutValues(error);
      each !== undefined;
      each = next === 'cause' ? each.cause : each.errors?.[0]
    )
      depth++
    expect(depth).toBe(5)
  }
})
