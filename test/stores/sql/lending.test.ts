// Who gets the connections of a pool: a pool here is what it is asked for, what it has answered, and what came back.
import { expect, it, vi } from 'vitest'
import { Deadlines } from '../../../src/time/deadlines.ts'
import { Lender } from '../../../stores/sql/lending.ts'
import { useFakeClock } from '../../support/fake-clock.ts'

useFakeClock()

type Answer = (error: unknown, connection?: string | null) => void
const refusal = (message: string, cause?: unknown) =>
  expect.objectContaining({
    message,
    failure: { outcome: 'not-applied', retry: false },
    ...(cause === undefined ? {} : { cause }),
  })
const LATE = refusal('no connection of the pool became free in time')

function setUp(ask: (answer: Answer) => void = () => {}) {
  const asked: Answer[] = []
  const back: string[] = []
  const lender = new Lender<string>(
    new Deadlines(),
    answer => {
      asked.push(answer as Answer)
      ask(answer as Answer)
    },
    connection => back.push(connection),
  )
  const told: [string, unknown][] = []
  /** A caller that waits for so many ms. */
  const take = (name: string, wait = 1000, urgent?: boolean) => {
    const note = (what: unknown) => told.push([name, what])
    lender.take(performance.now() + wait, urgent).then(note, note)
  }
  /** What the pool answers to its oldest request. */
  const answer: Answer = (error, connection) => asked.shift()!(error, connection)
  /** All that callers have heard since this was last called. */
  const heard = async () => {
    await vi.advanceTimersByTimeAsync(0)
    return told.splice(0)
  }
  return { asked, back, take, answer, heard }
}

it('gives what becomes free to the caller that has waited longest, and to an urgent one before all others', async () => {
  const { asked, back, take, answer, heard } = setUp()
  take('first')
  take('second')
  take('urgent', 1000, true)
  take('later', 1000, true)
  expect(asked.length).toBe(4)
  for (const connection of ['a', 'b', 'c', 'd']) answer(null, connection)
  expect(await heard()).toEqual([
    ['urgent', 'a'],
    ['later', 'b'],
    ['first', 'c'],
    ['second', 'd'],
  ])
  expect([asked.length, back]).toEqual([0, []])
})

it('asks the pool for few of many at once, and for the next with each answer', async () => {
  const { asked, take, answer, heard } = setUp()
  for (let i = 0; i < 40; i++) take(`${i}`)
  expect(asked.length).toBe(16)
  const most = []
  for (let i = 0; i < 40; i++) {
    answer(null, `connection ${i}`)
    most.push(asked.length)
  }
  expect(most).toEqual([...Array(24).fill(16), ...Array.from({ length: 16 }, (_, i) => 15 - i)])
  expect(await heard()).toEqual(Array.from({ length: 40 }, (_, i) => [`${i}`, `connection ${i}`]))
})

it('refuses a caller whose time is over, and gives what it had asked for to another, or back', async () => {
  const { asked, back, take, answer, heard } = setUp()
  take('patient', 5000)
  take('hurried', 300)
  take('urgent', 300, true)
  await vi.advanceTimersByTimeAsync(299)
  expect(await heard()).toEqual([])
  await vi.advanceTimersByTimeAsync(10)
  expect((await heard()).sort()).toEqual([
    ['hurried', LATE],
    ['urgent', LATE],
  ])
  // What was asked for is still to come: a new caller waits for that.
  take('new', 5000)
  expect(asked.length).toBe(3)
  for (const connection of ['a', 'b', 'c']) answer(null, connection)
  expect(await heard()).toEqual([
    ['patient', 'a'],
    ['new', 'b'],
  ])
  expect([asked.length, back]).toEqual([0, ['c']])
})

it('gives back what becomes free in the instant in which the time of its caller is over, for one that has time', async () => {
  const { asked, back, take, answer, heard } = setUp()
  take('hurried', 300)
  take('patient', 5000)
  // The deadline has come, and the sockets are read once more before anything is given up.
  vi.advanceTimersToNextTimer()
  answer(null, 'a')
  expect(back).toEqual(['a'])
  expect(await heard()).toEqual([['hurried', refusal('a connection became free too late')]])
  answer(null, 'a')
  expect(await heard()).toEqual([['patient', 'a']])
  expect([asked.length, back]).toEqual([0, ['a']])
})

it('still gives what becomes free before the deadline', async () => {
  const { back, take, answer, heard } = setUp()
  take('hurried', 300)
  await vi.advanceTimersByTimeAsync(299)
  answer(null, 'a')
  expect(await heard()).toEqual([['hurried', 'a']])
  await vi.advanceTimersByTimeAsync(1000)
  expect([await heard(), back]).toEqual([[], []])
})

it('tells a refusal of the pool to a caller that waited when the pool was asked, and asks again for a later one', async () => {
  const { asked, take, answer, heard } = setUp()
  take('first', 300)
  await vi.advanceTimersByTimeAsync(310)
  expect(await heard()).toEqual([['first', LATE]])
  take('later')
  take('later and urgent', 1000, true)
  // One request is left from the first.
  expect(asked.length).toBe(2)
  const down = new Error('connect ECONNREFUSED')
  answer(down)
  expect([await heard(), asked.length]).toEqual([[], 2])
  answer(down)
  expect(await heard()).toEqual([['later and urgent', refusal('no connection to the database', down)]])
  answer(null, 'a')
  expect([await heard(), asked.length]).toEqual([[['later', 'a']], 0])
})

it('refuses one that waited when the pool was asked, not an urgent one that came since', async () => {
  const { take, answer, heard } = setUp()
  take('first')
  take('urgent', 1000, true)
  const down = new Error('too many connections')
  answer(down)
  expect(await heard()).toEqual([['first', refusal('no connection to the database', down)]])
  answer(null, 'a')
  expect(await heard()).toEqual([['urgent', 'a']])
})

it.each([undefined, null])('takes %s for a refusal, whatever the pool says of it', async nothing => {
  const { take, answer, heard } = setUp()
  take('first')
  answer(undefined, nothing)
  expect(await heard()).toEqual([['first', refusal('no connection to the database')]])
})

it('tells what a pool throws to the caller, and asks it again for the next one', async () => {
  const broken = new TypeError('pool.connect is not a function')
  const { asked, take, heard } = setUp(() => {
    throw broken
  })
  const refused = refusal('no connection to the database', broken)
  for (const name of ['first', 'second']) {
    take(name)
    expect(await heard()).toEqual([[name, refused]])
  }
  expect(asked.length).toBe(2)
})

it('counts an answer once, also of a pool that answers twice or throws after it has answered', async () => {
  const { asked, back, take, heard } = setUp(answer => {
    answer(null, 'a')
    answer(null, 'b')
    throw new Error('too late to matter')
  })
  for (let i = 0; i < 20; i++) {
    take(`${i}`)
    expect(await heard()).toEqual([[`${i}`, 'a']])
  }
  expect([asked.length, back]).toEqual([20, []])
})
