// What is asked of the connections of a pool, and in which state they go back. The connections here only note what they
// are asked, and answer as they are told; what a server makes of it is in given-up.test.ts.
import { SessionStoreError } from 'coatcheck'
import { describe, expect, it, vi } from 'vitest'
import { CLEANING_UP, Connections, type Fault, Late } from '../../../stores/sql/connections.ts'
import { Refusal } from '../../../stores/sql/retry.ts'
import { compile, type Outcome, plain, type Statement, type Steps } from '../../../stores/sql/statement.ts'
import { useFakeClock } from '../../support/fake-clock.ts'

const DATABASE = 1_700_000_000_000
const GREETING = compile('?', 'SELECT clock')
const READ = compile('?', 'SELECT one WHERE id = :id')
const WRITE = compile('?', 'UPDATE one WHERE id = :id AND :deadline')
const DONE: Outcome = { rows: [], changed: 1 }
const WITHOUT_ANSWER = new Promise<never>(() => {})

useFakeClock()

const now = () => performance.now()
const faulty = (fault: Fault) => Object.assign(new Error(`it is ${fault}`), { fault })

type Answer = Outcome | Error | Promise<Outcome>

/** Connections that note what they are asked. What no answer is given to is done, and the clock is told. */
class Noted extends Connections<object> {
  protected readonly begin = ['LEVEL', 'BEGIN']
  protected readonly greeting = GREETING
  notes: unknown[][] = []
  /** The next answers to statements that begin so. */
  readonly answers: [string, Answer][] = []
  /** Statements that were given up. */
  readonly abandoned: [Late, (() => Promise<unknown>) | undefined][] = []
  strangers = false
  readonly connection = {}
  /** What connects later, where no connection is free. */
  asked: ((error: unknown, connection?: object) => void)[] | null = null

  protected connect(answer: (error: unknown, connection?: object) => void): void {
    if (this.asked === null) answer(null, this.connection)
    else this.asked.push(answer)
  }
  /** What ends a statement that was given up comes before all that wait. */
  urgent(end: number): Promise<unknown> {
    return this.take(end, true).then(() => this.notes.push(['urgent']))
  }
  protected giveBack(connection: object, sound: boolean): void {
    expect(connection).toBe(this.connection)
    this.notes.push(['back', sound])
  }
  protected async send(_: object, { text }: Statement, values: unknown[]): Promise<Outcome> {
    this.notes.push([text.split(' ')[0], ...values])
    const place = this.answers.findIndex(([begins]) => text.startsWith(begins))
    if (place === -1) return text === GREETING.text ? { rows: [[`${DATABASE + now()}`, 'more']], changed: 1 } : DONE
    const [[, given]] = this.answers.splice(place, 1) as [[string, Answer]]
    if (given instanceof Error) throw given
    return given
  }
  protected faultOf(error: unknown): Fault {
    return (error as { fault?: Fault }).fault ?? 'refused'
  }
  protected abandon(_: object, late: Late, rollBack?: () => Promise<unknown>): void {
    this.abandoned.push([late, rollBack])
  }
  protected override isStranger(connection: object): boolean {
    return this.strangers || super.isStranger(connection)
  }
  protected override greeted(_: object, cells: readonly unknown[]): void {
    this.notes.push(['greeted', cells[1]])
    this.strangers = false
  }
  protected override async boundCommit(_: object, end: number): Promise<void> {
    this.notes.push(['bound', end])
  }
  protected override async committed(_: object, end: number): Promise<void> {
    this.notes.push(['committed', end])
  }
}

function setUp(...answers: [string, Answer][]) {
  const connections = new Noted()
  connections.answers.push(...answers)
  const end = now() + 5000
  /** All that was asked since this was last called. */
  const asked = async () => {
    await vi.advanceTimersByTimeAsync(0)
    return connections.notes.splice(0)
  }
  return { connections, end, asked, deadline: DATABASE + end }
}

function* step(statement: Statement): Steps<number> {
  return (yield [statement, { id: 'x' }]).changed
}
function* two(): Steps<string> {
  yield [READ, { id: 'x' }]
  yield [WRITE, { id: 'y' }]
  return 'both'
}

/** The error of a call that has to fail. */
async function failure(call: Promise<unknown>): Promise<SessionStoreError> {
  const error = await call.then(
    value => expect.unreachable(`answered ${JSON.stringify(value)}`),
    error => error,
  )
  expect(error).toBeInstanceOf(SessionStoreError)
  return error
}
/** The same, with the time that passes until then. */
async function failureInTime(call: Promise<unknown>): Promise<SessionStoreError> {
  const failed = failure(call)
  await vi.advanceTimersByTimeAsync(6000)
  return failed
}

describe('a statement by itself', () => {
  it('is sent as it is, and its connection goes back', async () => {
    const { connections, end, asked } = setUp()
    expect(await connections.read('listUser', end, () => step(READ))).toBe(1)
    expect(await asked()).toEqual([
      ['SELECT', 'x'],
      ['back', true],
    ])
  })

  it('carries its deadline on the clock of the database, which is asked before the first one alone', async () => {
    const { connections, end, asked, deadline } = setUp()
    expect(await connections.write('touch', end, () => step(WRITE))).toBe(1)
    expect(await asked()).toEqual([['SELECT'], ['greeted', 'more'], ['UPDATE', 'x', deadline], ['back', true]])
    expect(await connections.write('touch', end, () => step(WRITE))).toBe(1)
    expect(await asked()).toEqual([
      ['UPDATE', 'x', deadline],
      ['back', true],
    ])
  })

  it('takes a connection for each step, and gives it back before the next', async () => {
    const { connections, end, asked, deadline } = setUp()
    connections.strangers = true
    expect(await connections.write('delete', end, two)).toBe('both')
    expect(await asked()).toEqual([
      ['SELECT'],
      ['greeted', 'more'],
      ['SELECT', 'x'],
      ['back', true],
      ['UPDATE', 'y', deadline],
      ['back', true],
    ])
  })

  it('comes after the greeting where the connection has to be known, a SELECT with its values too', async () => {
    const { connections, end, asked } = setUp()
    connections.strangers = true
    const taken = ({ rows }: Outcome) => rows.length
    expect(await connections.select(READ, ['a'], end, taken)).toBe(0)
    expect(await asked()).toEqual([['SELECT'], ['greeted', 'more'], ['SELECT', 'a'], ['back', true]])
    expect(await connections.select(READ, ['b'], end, taken)).toBe(0)
    expect(await asked()).toEqual([
      ['SELECT', 'b'],
      ['back', true],
    ])
  })

  it('asks for the clock again where the server says that the time is over, and tries once more', async () => {
    const { connections, end, asked, deadline } = setUp(['UPDATE', faulty('late')])
    const answer = connections.write('touch', end, () => step(WRITE))
    await vi.advanceTimersByTimeAsync(10)
    expect(await answer).toBe(1)
    const once = [['SELECT'], ['greeted', 'more'], ['UPDATE', 'x', deadline], ['back', true]]
    expect(await asked()).toEqual([...once, ...once])
  })

  it('takes the same words for a refusal where the statement carried no deadline', async () => {
    const { connections, end, asked } = setUp(['SELECT one', faulty('late')])
    expect(await failure(connections.read('listUser', end, () => step(READ)))).toMatchObject({
      outcome: 'not-applied',
      cause: { message: 'it is late' },
    })
    expect(await asked()).toEqual([
      ['SELECT', 'x'],
      ['back', true],
    ])
  })

  it.each<[Fault, string, boolean]>([
    ['lost', 'unknown', false],
    ['uncertain', 'unknown', true],
    ['refused', 'not-applied', true],
    ['duplicate', 'not-applied', true],
    ['foreign', 'not-applied', true],
  ])('that is %s says %s, and its connection goes back: %s', async (fault, outcome, sound) => {
    const { connections, end, asked } = setUp(['UPDATE', faulty(fault)])
    const error = await failure(connections.write('touch', end, () => step(WRITE)))
    expect(error).toMatchObject({ operation: 'touch', outcome })
    const hint = ' (is the table of another schema? migrate() creates it, or names the difference)'
    expect((error.cause as Error).message).toBe(`it is ${fault}${fault === 'foreign' ? hint : ''}`)
    expect((await asked()).slice(-2)).toEqual([
      ['UPDATE', 'x', expect.any(Number)],
      ['back', sound],
    ])
  })

  it('that reads has nothing to be unsure of where its connection is lost', async () => {
    const { connections, end, asked } = setUp(['SELECT one', faulty('lost')])
    const reading = connections.select(READ, ['a'], end, ({ rows }) => rows)
    expect(await failure(reading)).toMatchObject({ operation: 'read', outcome: 'not-applied' })
    expect((await asked()).at(-1)).toEqual(['back', false])
  })

  it('is tried again where a lock was in the way', async () => {
    const { connections, end } = setUp(['UPDATE', faulty('busy')], ['UPDATE', faulty('busy')])
    const answer = connections.write('touch', end, () => step(WRITE))
    await vi.advanceTimersByTimeAsync(1000)
    expect(await answer).toBe(1)
    expect(connections.isDuplicate(faulty('duplicate'))).toBe(true)
    expect(connections.isDuplicate(faulty('busy'))).toBe(false)
  })

  it('refuses a connection that commits nothing by itself, and has it closed', async () => {
    const { connections, end, asked } = setUp(['UPDATE', { ...DONE, open: 'autocommit off' }])
    expect(await failure(connections.write('touch', end, () => step(WRITE)))).toMatchObject({
      outcome: 'not-applied',
      cause: { message: expect.stringContaining('autocommit is off') },
    })
    expect((await asked()).at(-1)).toEqual(['back', false])
    connections.answers.push(['UPDATE', { ...DONE, open: undefined }])
    expect(await connections.write('touch', end, () => step(WRITE))).toBe(1)
    expect((await asked()).at(-1)).toEqual(['back', true])
  })

  it('is given up at its end, and the connection is left to what ends it', async () => {
    const { connections, end, asked } = setUp(['UPDATE', WITHOUT_ANSWER])
    expect(await failureInTime(connections.write('touch', end, () => step(WRITE)))).toMatchObject({
      outcome: 'unknown',
      cause: { message: 'the database did not answer in time' },
    })
    expect((await asked()).at(-1)).toEqual(['UPDATE', 'x', expect.any(Number)])
    const [[late, rollBack]] = connections.abandoned as [(typeof connections.abandoned)[0]]
    expect(late).toBeInstanceOf(Late)
    expect(rollBack).toBe(undefined)
  })

  it('is not sent where no connection was free in time, and one that comes later goes back', async () => {
    const { connections, end, asked } = setUp()
    connections.asked = []
    expect(await failureInTime(connections.write('touch', end, () => step(WRITE)))).toMatchObject({
      outcome: 'not-applied',
      cause: { message: 'no connection of the pool became free in time' },
    })
    connections.asked[0]!(null, connections.connection)
    expect(await asked()).toEqual([['back', true]])
  })

  it('waits for its connection behind what ends others, in the order in which it came', async () => {
    const { connections, end, asked } = setUp()
    connections.asked = []
    const calls = [connections.read('listUser', end, () => step(READ)), connections.urgent(end)]
    calls.push(connections.select(READ, ['last'], end, ({ rows }) => rows))
    for (const answer of connections.asked) answer(null, connections.connection)
    await Promise.all(calls)
    expect((await asked()).filter(([text]) => text !== 'back')).toEqual([
      ['urgent'],
      ['SELECT', 'x'],
      ['SELECT', 'last'],
    ])
  })

  it('is not sent where the greeting is not answered', async () => {
    const { connections, end, asked } = setUp(['SELECT clock', WITHOUT_ANSWER])
    await failureInTime(connections.write('touch', end, () => step(WRITE)))
    expect(await asked()).toEqual([['SELECT']])
    expect(connections.abandoned.length).toBe(1)
  })
})

describe('the clock of a connection', () => {
  it('is asked again once it is old, when the caller has the answer', async () => {
    const { connections, asked } = setUp()
    const write = () => connections.write('touch', now() + 5000, () => step(WRITE))
    await write()
    await asked()
    await vi.advanceTimersByTimeAsync(61_000)
    let tell: (outcome: Outcome) => void = () => {}
    connections.answers.push(['SELECT clock', new Promise(resolve => (tell = resolve))])
    expect(await write()).toBe(1)
    expect(await asked()).toEqual([['UPDATE', 'x', expect.any(Number)], ['SELECT']])
    tell({ rows: [[`${DATABASE + now() + 7000}`, 'later']], changed: 1 })
    expect(await asked()).toEqual([
      ['greeted', 'later'],
      ['back', true],
    ])
    await write()
    expect(await asked()).toEqual([
      ['UPDATE', 'x', DATABASE + now() + 12_000],
      ['back', true],
    ])
  })

  it.each<[string, Answer, boolean]>([
    ['refused', faulty('refused'), true],
    ['lost', faulty('lost'), false],
  ])('that cannot be asked again because it is %s: the connection goes back', async (_, answer, sound) => {
    const { connections, asked } = setUp()
    await connections.read('listUser', now() + 5000, () => step(WRITE))
    await vi.advanceTimersByTimeAsync(61_000)
    await asked()
    connections.answers.push(['SELECT clock', answer])
    await connections.read('listUser', now() + 5000, () => step(READ))
    expect(await asked()).toEqual([['SELECT', 'x'], ['SELECT'], ['back', sound]])
  })

  it('that is not told again in time: the connection is given up', async () => {
    const { connections, asked } = setUp()
    await connections.read('listUser', now() + 5000, () => step(WRITE))
    await vi.advanceTimersByTimeAsync(61_000)
    await asked()
    connections.answers.push(['SELECT clock', WITHOUT_ANSWER])
    await connections.read('listUser', now() + 60_000, () => step(READ))
    await vi.advanceTimersByTimeAsync(CLEANING_UP - 10)
    expect(connections.abandoned).toEqual([])
    await vi.advanceTimersByTimeAsync(20)
    expect(connections.abandoned.length).toBe(1)
    expect(await asked()).toEqual([['SELECT', 'x'], ['SELECT']])
  })
})

describe('a transaction', () => {
  const begun = [['LEVEL'], ['BEGIN']]

  it('has one connection for all of its steps, which goes back after the COMMIT', async () => {
    const { connections, end, asked, deadline } = setUp()
    expect(await connections.transaction('deleteUser', end, two, false)).toBe('both')
    expect(await asked()).toEqual([
      ...begun,
      ['SELECT', 'x'],
      ['SELECT'],
      ['greeted', 'more'],
      ['UPDATE', 'y', deadline],
      ['COMMIT'],
      ['committed', end],
      ['back', true],
    ])
  })

  it('asks for no clock where none of its statements carries a deadline', async () => {
    const { connections, end, asked } = setUp()
    await connections.transaction('create', end, () => step(plain('CREATE TABLE')), false)
    expect(await asked()).toEqual([...begun, ['CREATE'], ['COMMIT'], ['committed', end], ['back', true]])
  })

  it('bounds its COMMIT where it makes a session live', async () => {
    const { connections, end, asked } = setUp()
    await connections.transaction('create', end, () => step(READ), true)
    expect(await asked()).toEqual([
      ...begun,
      ['SELECT', 'x'],
      ['bound', end],
      ['COMMIT'],
      ['committed', end],
      ['back', true],
    ])
  })

  it.each<[Fault, unknown[][]]>([
    ['refused', [['ROLLBACK'], ['back', true]]],
    ['uncertain', [['ROLLBACK'], ['back', true]]],
    ['foreign', [['ROLLBACK'], ['back', true]]],
    ['lost', [['back', false]]],
  ])('with a step that is %s applies nothing', async (fault, expected) => {
    const { connections, end, asked } = setUp(['SELECT one', faulty(fault)])
    const error = await failure(connections.transaction('deleteUser', end, two, false))
    expect(error).toMatchObject({ outcome: 'not-applied', cause: { message: `it is ${fault}` } })
    expect(await asked()).toEqual([...begun, ['SELECT', 'x'], ...expected])
    const inner = (error.cause as Error).cause as Error
    expect(inner.message).toContain(fault === 'foreign' ? 'migrate() creates it' : `it is ${fault}`)
  })

  it('is done again where a lock was in the way, and where its own steps say so', async () => {
    const { connections, end } = setUp(['SELECT one', faulty('busy')])
    let tries = 0
    const answer = connections.transaction(
      'create',
      end,
      function* (): Steps<string> {
        yield [READ, { id: 'x' }]
        if (++tries < 3) throw new Refusal('not yet', { outcome: 'not-applied', retry: true })
        return 'done'
      },
      true,
    )
    await vi.advanceTimersByTimeAsync(1000)
    expect(await answer).toBe('done')
    expect(connections.notes.filter(([text]) => text === 'BEGIN').length).toBe(4)
    expect(connections.notes.filter(([text]) => text === 'ROLLBACK').length).toBe(3)
    expect(connections.notes.filter(([text]) => text === 'COMMIT').length).toBe(1)
  })

  it.each<[Fault, string, unknown[][]]>([
    ['lost', 'unknown', [['back', false]]],
    ['uncertain', 'unknown', [['ROLLBACK'], ['back', true]]],
    ['refused', 'not-applied', [['ROLLBACK'], ['back', true]]],
  ])('whose COMMIT is %s says %s', async (fault, outcome, expected) => {
    const { connections, end, asked } = setUp(['COMMIT', faulty(fault)])
    expect(await failure(connections.transaction('deleteUser', end, () => step(READ), false))).toMatchObject({
      outcome,
    })
    expect(await asked()).toEqual([...begun, ['SELECT', 'x'], ['COMMIT'], ...expected])
  })

  it.each([
    ['a step', 'SELECT one', 'not-applied'],
    ['its COMMIT', 'COMMIT', 'unknown'],
  ])('that is given up at %s is left to what ends it, with its ROLLBACK', async (_, statement, outcome) => {
    const { connections, end, asked } = setUp([statement, WITHOUT_ANSWER])
    expect(await failureInTime(connections.transaction('deleteUser', end, () => step(READ), false))).toMatchObject({
      outcome,
    })
    expect((await asked()).at(-1)![0]).toBe(statement.split(' ')[0])
    const [[late, rollBack]] = connections.abandoned as [(typeof connections.abandoned)[0]]
    expect(late).toBeInstanceOf(Late)
    await rollBack!()
    expect(await asked()).toEqual([['ROLLBACK']])
  })

  it('has its caller told before the ROLLBACK is answered, and its connection closed where that fails', async () => {
    const { connections, end, asked } = setUp(['SELECT one', faulty('refused')], ['ROLLBACK', faulty('refused')])
    await failure(connections.transaction('deleteUser', end, two, false))
    expect((await asked()).at(-1)).toEqual(['back', false])
    connections.answers.push(['SELECT one', faulty('refused')], ['ROLLBACK', WITHOUT_ANSWER])
    await failure(connections.transaction('deleteUser', end, two, false))
    await vi.advanceTimersByTimeAsync(CLEANING_UP - 10)
    expect((await asked()).at(-1)).toEqual(['ROLLBACK'])
    await vi.advanceTimersByTimeAsync(20)
    expect(await asked()).toEqual([['back', false]])
  })

  it('says where a table is of another schema, also at its COMMIT', async () => {
    const { connections, end } = setUp(['COMMIT', faulty('foreign')])
    const error = await failure(connections.transaction('create', end, () => step(READ), false))
    expect(error.outcome).toBe('not-applied')
    expect(((error.cause as Error).cause as Error).message).toContain('names the difference')
  })
})
