// Statements as text with named parameters, and the steps of a verb that yield them. No database is asked.
import { expect, it } from 'vitest'
import { bind, compile, follow, followNow, type Outcome, plain, type Steps } from '../../../stores/sql/statement.ts'

const outcome = (changed: number): Outcome => ({ rows: [], changed })

it('numbers each name once for PostgreSQL, and marks each mention for the others', () => {
  const sql = 'SELECT :a, :bTwo3, :a'
  expect(compile('$', sql)).toMatchObject({ text: 'SELECT $1, $2, $1', order: ['a', 'bTwo3'] })
  expect(compile('?', sql)).toMatchObject({ text: 'SELECT ?, ?, ?', order: ['a', 'bTwo3', 'a'] })
})

it('takes a cast and what begins with a large letter for no name', () => {
  const sql = ":id::text, ':MI', :k0n12"
  expect(compile('$', sql)).toMatchObject({ text: "$1::text, ':MI', $2", order: ['id', 'k0n12'] })
})

it('writes a statement on one line', () => {
  expect(compile('?', '\n  SELECT 1\n    FROM   t\n').text).toBe('SELECT 1 FROM t')
})

it('names a statement after its text, so that one name never means two texts', () => {
  const [one, same, other] = ['SELECT :a', ' SELECT  :b ', 'SELECT :a, 1'].map(sql => compile('$', sql))
  expect(one!.name).toMatch(/^coatcheck_[0-9a-f]{20}$/)
  expect(same!.name).toBe(one!.name)
  expect(other!.name).not.toBe(one!.name)
})

it('knows whether a statement carries a deadline', () => {
  expect(compile('$', 'SELECT :deadline').timed).toBe(true)
  expect(compile('$', 'SELECT :dead, deadline').timed).toBe(false)
})

it('prepares nothing of DDL, and binds nothing to it', () => {
  expect(plain('DROP TABLE :t')).toEqual({ name: '', text: 'DROP TABLE :t', order: [] })
})

it('binds the values in their order, NULL too, and refuses to leave one out', () => {
  const statement = compile('?', 'SELECT :b, :a, :b')
  expect(bind(statement, { a: null, b: '' })).toEqual(['', null, ''])
  expect(() => bind(statement, { b: '' })).toThrow('no value for :a')
})

const FIRST = plain('SELECT 1')
const SECOND = plain('SELECT 2')

/** Two statements, of which the second may fail. */
function* both(): Steps<string> {
  const { changed } = yield [FIRST, { first: 1 }]
  try {
    return `${changed}, then ${(yield [SECOND, { second: 2 }]).changed}`
  } catch (error) {
    return `${changed}, then ${(error as Error).message}, then ${(yield [FIRST, { first: 3 }]).changed}`
  }
}
function* several(times: number): Steps<string> {
  for (let i = 0; i < times; i++) yield [FIRST, { first: i }]
  return 'done'
}

/** Both ways to run steps: where answers come later, and where they come at once. */
const WAYS: [string, (steps: Steps<string>, run: (text: string, values: object) => Outcome) => Promise<string>][] = [
  ['later', (steps, run) => follow(steps, async ({ text }, values) => run(text, values))],
  ['at once', async (steps, run) => followNow(steps, ({ text }, values) => run(text, values))],
]

it.each(WAYS)('hands each outcome to the step that asked: answers that come %s', async (_, way) => {
  const asked: unknown[] = []
  const answer = await way(both(), (text, values) => outcome(asked.push([text, values])))
  expect(answer).toBe('1, then 2')
  expect(asked).toEqual([
    ['SELECT 1', { first: 1 }],
    ['SELECT 2', { second: 2 }],
  ])
})

it.each(WAYS)('runs nothing for steps that ask nothing: answers that come %s', async (_, way) => {
  expect(await way(several(0), () => expect.unreachable())).toBe('done')
})

it.each(WAYS)('lets the steps go on after an error that they expect: answers that come %s', async (_, way) => {
  let asked = 0
  const answer = await way(both(), () => {
    if (++asked === 2) throw new Error('refused')
    return outcome(asked)
  })
  expect(answer).toBe('1, then refused, then 3')
})

it.each(WAYS)('ends with the error that the steps do not expect: answers that come %s', async (_, way) => {
  const failed = way(both(), () => {
    throw new Error('gone')
  })
  await expect(failed).rejects.toThrow('gone')
})
