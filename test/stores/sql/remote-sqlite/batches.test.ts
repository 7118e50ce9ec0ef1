// What is sent to a SQLite database on a network, and what becomes of late answers. The clients here only note what they
// are asked, and answer as they are told; what a database makes of it is in in-process.test.ts.
import { SessionStoreError } from 'coatcheck'
import { describe, expect, it, vi } from 'vitest'
import { Batches, type Query } from '../../../../stores/sql/remote-sqlite/batches.ts'
import { GREETING, IN_TIME } from '../../../../stores/sql/remote-sqlite/statements.ts'
import { compile, type Outcome, type Steps } from '../../../../stores/sql/statement.ts'
import { useFakeClock } from '../../../support/fake-clock.ts'

const DATABASE = 1_700_000_000_000
const READ = compile('?', 'SELECT one WHERE id = :id')
const WRITE = compile('?', 'UPDATE one WHERE id = :id')
const WITHOUT_ANSWER = new Promise<never>(() => {})

useFakeClock()

const now = () => performance.now()
/** A row with the clock of the database. */
const clock = (told = DATABASE + now()): Outcome => ({ rows: [[told]], changed: 0 })
const changed = (count: number): Outcome => ({ rows: [], changed: count })
const late = () => new Error('SQLITE_ERROR: malformed JSON')

type Answer = Outcome | Error | Promise<Outcome>
type Batch = readonly Outcome[] | Error | Promise<readonly Outcome[]>

function setUp({ reads = [], batches = [] }: { reads?: Answer[]; batches?: Batch[] } = {}) {
  const sent: unknown[][] = []
  const note = ({ sql, values }: Query) => [
    sql === GREETING.text ? 'clock' : sql === IN_TIME.text ? 'in time' : sql.split(' ')[0],
    ...values,
  ]
  const failed: unknown[] = []
  const database = new Batches({
    async read(query) {
      sent.push(note(query))
      const answer = reads.shift() ?? (query.sql === GREETING.text ? clock() : changed(0))
      if (answer instanceof Error) throw answer
      return answer
    },
    async batch(queries) {
      sent.push(queries.flatMap(note))
      const answer = batches.shift() ?? [clock(), ...queries.slice(1).map((_, place) => changed(place + 1))]
      if (answer instanceof Error) throw answer
      return answer
    },
    failureOf(error) {
      failed.push(error)
      return { outcome: 'unknown', retry: false }
    },
  })
  const end = now() + 5000
  return { database, end, deadline: DATABASE + end, asked: () => sent.splice(0), failed }
}

function* one(statement = WRITE): Steps<number> {
  return (yield [statement, { id: 'x' }]).changed
}
function* two(statement = WRITE): Steps<number[]> {
  const first = yield [statement, { id: 'x' }]
  return [first.changed, (yield [statement, { id: 'y' }]).changed]
}

/** The error of a call that has to fail, with the time that passes until then. */
async function failure(call: Promise<unknown>): Promise<SessionStoreError> {
  const failed = call.then(
    value => expect.unreachable(`answered ${JSON.stringify(value)}`),
    error => error,
  )
  await vi.advanceTimersByTimeAsync(6000)
  const error = await failed
  expect(error).toBeInstanceOf(SessionStoreError)
  return error
}

describe('a write to a SQLite database on a network', () => {
  it('carries its deadline on the clock of the database, which is asked for once', async () => {
    const { database, end, deadline, asked } = setUp()
    expect(await database.write('touch', end, () => one())).toBe(1)
    expect(asked()).toEqual([['clock'], ['in time', deadline, 'UPDATE', 'x']])
    expect(await database.write('touch', end + 1, () => one())).toBe(1)
    expect(asked()).toEqual([['in time', deadline + 1, 'UPDATE', 'x']])
  })

  it('tells the clock anew with each answer', async () => {
    const { database, end, deadline, asked } = setUp({ batches: [[clock(DATABASE + now() - 700), changed(1)]] })
    await database.write('touch', end, () => one())
    asked()
    await database.write('touch', end, () => one())
    expect(asked()).toEqual([['in time', deadline - 700, 'UPDATE', 'x']])
  })

  it('is a batch of its own for each statement, or one for several that belong together', async () => {
    const { database, end, deadline, asked } = setUp({
      batches: [
        [clock(), changed(3)],
        [clock(), changed(4)],
      ],
    })
    expect(await database.write('sweep', end, () => two())).toEqual([3, 4])
    expect(asked().slice(1)).toEqual([
      ['in time', deadline, 'UPDATE', 'x'],
      ['in time', deadline, 'UPDATE', 'y'],
    ])
    const steps = [
      [WRITE, { id: 'x' }],
      [READ, { id: 'y' }],
    ] as const
    expect(await database.together('create', end, steps, outcomes => outcomes)).toEqual([changed(1), changed(2)])
    expect(asked()).toEqual([['in time', deadline, 'UPDATE', 'x', 'SELECT', 'y']])
  })

  it('that the database found late is sent again with its clock asked anew: one of the two was set', async () => {
    const { database, end, deadline, asked, failed } = setUp({ batches: [late()] })
    const call = database.write('touch', end, () => one())
    await vi.advanceTimersByTimeAsync(50)
    expect(await call).toBe(1)
    const batch = ['in time', deadline, 'UPDATE', 'x']
    expect(asked()).toEqual([['clock'], batch, ['clock'], batch])
    // That is no error of the client.
    expect(failed).toEqual([])
  })

  it('has written nothing where the database finds it late until its time is over', async () => {
    const { database, end } = setUp({ batches: Array.from({ length: 10_000 }, late) })
    expect(await failure(database.write('touch', end, () => one()))).toMatchObject({
      operation: 'touch',
      outcome: 'not-applied',
      cause: { message: 'the statement came to the database after its deadline' },
    })
  })

  it('may have written where it fails of something else, which the client explains', async () => {
    const reset = new Error('read ECONNRESET')
    const { database, end, asked, failed } = setUp({ batches: [reset] })
    expect(await failure(database.together('create', end, [[WRITE, { id: 'x' }]], outcomes => outcomes))).toMatchObject(
      {
        operation: 'create',
        outcome: 'unknown',
        cause: { message: 'read ECONNRESET' },
      },
    )
    expect(failed).toEqual([reset])
    expect(asked().length).toBe(2)
    // The clock is still known.
    await database.write('touch', now() + 5000, () => one())
    expect(asked().length).toBe(1)
  })

  it('may have written where no answer came in time', async () => {
    const { database, end, asked } = setUp({ batches: [WITHOUT_ANSWER] })
    expect(await failure(database.write('touch', end, () => one()))).toMatchObject({
      operation: 'touch',
      outcome: 'unknown',
      cause: { message: 'the database did not answer in time' },
    })
    // It is not sent again.
    expect(asked().length).toBe(2)
  })
})

describe('a read of a SQLite database on a network', () => {
  it('is sent as it is: it needs no clock', async () => {
    const { database, end, asked } = setUp({ reads: [changed(7), changed(8), changed(9)] })
    expect(await database.read('scan', end, () => two(READ))).toEqual([7, 8])
    expect(await database.select([READ, { id: 'z' }], end, outcome => outcome.changed)).toBe(9)
    expect(asked()).toEqual([
      ['SELECT', 'x'],
      ['SELECT', 'y'],
      ['SELECT', 'z'],
    ])
  })

  it('is named by its verb where it fails', async () => {
    const { database, end } = setUp({ reads: [new Error('one'), new Error('two')] })
    expect(await failure(database.read('scan', end, () => one(READ)))).toMatchObject({ operation: 'scan' })
    const select = database.select([READ, { id: 'x' }], now() + 5000, outcome => outcome)
    expect(await failure(select)).toMatchObject({
      operation: 'read',
      outcome: 'not-applied',
      cause: { message: 'two' },
    })
  })

  it('asks nothing more once its time is over', async () => {
    const { database, end, asked } = setUp()
    const steps = function* (): Steps<unknown> {
      yield [READ, { id: 'x' }]
      vi.advanceTimersByTime(end - now())
      return yield [READ, { id: 'y' }]
    }
    expect(await failure(database.read('scan', end, steps))).toMatchObject({
      cause: { message: 'the deadline passed before the database was asked' },
    })
    expect(asked()).toEqual([['SELECT', 'x']])
  })
})

describe('calls that were given up', () => {
  /** A database of which calls get no answer until they are told. */
  const silent = () => {
    const told: { answer: (outcome: Outcome) => void; fail: (error: Error) => void }[] = []
    const reads = () =>
      new Promise<Outcome>((answer, fail) => {
        told.push({ answer, fail })
      })
    const database = new Batches({
      read: reads,
      batch: async () => expect.unreachable(),
      failureOf: () => ({ outcome: 'not-applied', retry: false }),
    })
    const ask = () => database.read('listUser', now() + 1000, () => one(READ))
    /** Asks so many times, and waits until they are given up. */
    const giveUp = async (count: number) => {
      const calls = Array.from({ length: count }, () => failure(ask()))
      await Promise.all(calls)
    }
    return { told, ask, giveUp }
  }

  it('are 256 at the most: then nothing more is asked until one of them has its answer', async () => {
    const { told, ask, giveUp } = silent()
    // Those that were answered in time are no calls that were given up.
    for (const end of ['answer', 'fail'] as const) {
      const call = ask().catch(() => 1)
      if (end === 'answer') told.at(-1)!.answer(changed(1))
      else told.at(-1)!.fail(new Error('no'))
      expect(await call).toBe(1)
    }
    await giveUp(255)
    await giveUp(1)
    expect(told.length).toBe(2 + 256)
    for (const end of ['answer', 'fail'] as const) {
      expect(await failure(ask())).toMatchObject({
        outcome: 'not-applied',
        cause: { message: 'the database has not answered 256 calls that were given up' },
      })
      expect(told.length).toBe(2 + 256 + (end === 'answer' ? 0 : 1))
      if (end === 'answer') told[2]!.answer(changed(1))
      else told[3]!.fail(new Error('no'))
      await vi.advanceTimersByTimeAsync(0)
      await giveUp(1)
    }
    expect(told.length).toBe(2 + 256 + 2)
  })
})
