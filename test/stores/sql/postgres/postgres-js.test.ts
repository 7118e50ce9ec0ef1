// What the sql of postgres is asked, and what its answers and errors mean. The sql here only notes what it is asked, and
// answers as it is told; what a server makes of it is in postgres-js.test.ts of the folder above.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { checkPostgresJs, isPostgresJs, PostgresJsConnections } from '../../../../stores/sql/postgres/postgres-js.ts'
import { GREETING } from '../../../../stores/sql/postgres/server.ts'
import { compile, plain, type Statement, type Steps } from '../../../../stores/sql/statement.ts'

const READ = compile('$', 'SELECT p WHERE id = :id')
const WRITE = compile('$', 'UPDATE sessions WHERE id = :id AND ids = :ids')
const TIMED = compile('$', 'UPDATE sessions WHERE id = :id AND :deadline::bigint')
const DATABASE = 1_700_000_000_000
const bytes = (cell: string | null) => (cell === null ? null : Buffer.from(cell))
/** What postgres answers in raw form. */
const answer = (count: number | null, ...rows: (string | null)[][]) =>
  Object.assign(
    rows.map(row => row.map(bytes)),
    { count },
  )

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  vi.advanceTimersByTime(1000)
})
afterEach(() => {
  vi.useRealTimers()
})

const now = () => performance.now()
const ofServer = (code: string) => Object.assign(new Error(`error ${code}`), { code, severity: 'ERROR' })
const lost = () => Object.assign(new Error('write CONNECTION_CLOSED'), { code: 'CONNECTION_CLOSED' })
/** The turn of the event loop that comes after what is under way. */
const turn = () => new Promise(resolve => setImmediate(resolve))

interface Query {
  /** Ends it so. */
  readonly end: (what: unknown) => void
}
interface Options {
  /** What a statement is answered with; `undefined` leaves it without an answer. */
  reply?: (text: string) => unknown
  /** Whether what has no answer was sent. */
  isSent?: boolean
  /** What ends a transaction: its own `commit` or `rollBack` where nothing is said, or an error. */
  ending?: (how: 'commit' | 'rollback') => unknown
  /** Whether BEGIN gets a connection. */
  begins?: () => unknown
  prepare?: boolean
  options?: unknown
}

/** A `sql` that notes what it is asked: `1`, `2`, … name its transactions. */
function setUp({
  reply = () => answer(1),
  isSent = true,
  ending,
  begins,
  prepare = true,
  options = { max: 2 },
}: Options = {}) {
  const notes: unknown[][] = []
  const open: Query[] = []
  let transactions = 0
  let onCancel: () => unknown = () => {}
  let endTransaction: Query['end'] = () => {}
  const unsafe =
    (place: number) =>
    (text: string, values: unknown[], { prepare }: { prepare: boolean }) => ({
      raw() {
        notes.push([place, text, values, prepare])
        const given = reply(text)
        let end: Query['end'] = () => {}
        const asked: Promise<unknown> & { state?: unknown; cancel?: unknown } = new Promise((resolve, reject) => {
          end = what => (what instanceof Error ? reject(what) : resolve(what))
        })
        if (given === undefined) open.push({ end })
        else end(given)
        asked.state = isSent ? {} : null
        asked.cancel = () => {
          notes.push([place, 'cancel'])
          return onCancel()
        }
        return asked
      },
    })
  const begin = async (how: string, work: (sql: object) => Promise<unknown>) => {
    transactions += 1
    const place = transactions
    notes.push([place, 'begin', how])
    const failed = begins?.()
    if (failed !== undefined) throw await failed
    let rolledBack: unknown
    const worked = work({ unsafe: unsafe(place) })
      .catch(error => {
        rolledBack = error
      })
      .then(async () => {
        const given = ending?.(rolledBack === undefined ? 'commit' : 'rollback')
        notes.push([place, rolledBack === undefined ? 'commit' : 'rollback'])
        if (given !== undefined) throw await given
        if (rolledBack !== undefined) throw rolledBack
      })
    // As postgres does it: what ends a transaction from outside leaves its work to go on.
    const fromOutside = new Promise((resolve, reject) => {
      endTransaction = what => (what instanceof Error ? reject(what) : resolve(what))
    })
    await Promise.race([worked, fromOutside])
  }
  const sql = Object.assign(() => {}, { unsafe: unsafe(0), begin, options })
  const connections = new PostgresJsConnections(sql as never, prepare)
  /** All that was asked since this was last called. */
  const asked = async () => {
    await turn()
    await turn()
    return notes.splice(0)
  }
  /** The same, each as its place and its statement. */
  const words = async () => (await asked()).map(([place, text]) => [place, text])
  const canceled = (said: () => unknown) => {
    onCancel = said
  }
  /** Ends the transaction under way so, while its statements go on. */
  const over = (what?: unknown) => endTransaction(what)
  return { connections, asked, words, open, canceled, over, end: now() + 5000 }
}

function* step(statement: Statement): Steps<unknown> {
  return yield [statement, { id: 'x', ids: ['a', 'b'] }]
}
const failure = (call: Promise<unknown>) =>
  call.then(
    answer => expect.unreachable(`answered ${JSON.stringify(answer)}`),
    error => error,
  )
const rowsOf = ({ rows }: { rows: unknown[][] }) => rows
/** A statement that gets no answer until its time is over. */
async function giveUp(call: Promise<unknown>) {
  const given = failure(call)
  await turn()
  await vi.advanceTimersByTimeAsync(5001)
  return given
}

describe('a statement', () => {
  it('is prepared where it has a name, and gets its cells as text, as the server wrote them', async () => {
    const { connections, asked, end } = setUp({ reply: () => answer(1, ['9007199254740993', null, 'ü']) })
    expect(await connections.select(READ, ['x'], end, rowsOf)).toEqual([['9007199254740993', null, 'ü']])
    expect(await asked()).toEqual([[0, READ.text, ['x'], true]])
  })

  it('has its lists sent as text, and counts the rows that it met', async () => {
    const { connections, asked, end } = setUp({ reply: () => answer(3), prepare: false })
    expect(await connections.write('touch', end, () => step(WRITE))).toEqual({ rows: [], changed: 3 })
    expect(await asked()).toEqual([[0, WRITE.text, ['x', '{a,b}'], false]])
    const uncounted = setUp({ reply: () => answer(null) })
    expect(await uncounted.connections.write('touch', end, () => step(WRITE))).toEqual({ rows: [], changed: 0 })
  })

  it.each(['26000', '42P05'])('is sent again, and no other prepared, where a pooler answers %s', async code => {
    let fails = 1
    const { connections, asked, end } = setUp({ reply: () => (fails-- > 0 ? ofServer(code) : answer(1)) })
    const read = connections.select(READ, ['x'], end, rowsOf)
    await turn()
    await vi.advanceTimersByTimeAsync(10)
    expect(await read).toEqual([])
    await connections.select(READ, ['x'], end, rowsOf)
    expect((await asked()).map(([, , , prepare]) => prepare)).toEqual([true, false, false])
  })

  it.each<[boolean, string]>([
    [false, '26000'],
    [true, '42P02'],
  ])('is not sent again where it was prepared: %s, and the server answers %s', async (prepare, code) => {
    const { connections, words, end } = setUp({ reply: () => ofServer(code), prepare })
    const error = await failure(connections.write('touch', end, () => step(WRITE)))
    expect(error).toMatchObject({ outcome: 'not-applied', cause: { code } })
    expect(await words()).toEqual([[0, WRITE.text]])
  })

  it('is not sent again where no time is left to try it without preparing', async () => {
    const { connections, words, open, end } = setUp({ reply: () => undefined })
    const random = vi.spyOn(Math, 'random').mockReturnValue(0.9)
    const given = failure(connections.write('touch', end, () => step(WRITE)))
    await turn()
    await vi.advanceTimersByTimeAsync(4999)
    open[0]!.end(ofServer('26000'))
    expect(await given).toMatchObject({
      outcome: 'not-applied',
      cause: { message: 'prepared statements do not work here', cause: { code: '26000' } },
    })
    expect((await words()).length).toBe(1)
    random.mockRestore()
  })

  it('without parameters, such as one that creates a table, is not prepared', async () => {
    const { connections, asked, end } = setUp()
    await connections.transaction('migrate' as never, end, () => step(plain('CREATE TABLE sessions ()')), false)
    expect((await asked())[1]).toEqual([1, 'CREATE TABLE sessions ()', [], false])
  })

  it('that a cancel request ended for another is sent again', async () => {
    let fails = 1
    const { connections, words, end } = setUp({ reply: () => (fails-- > 0 ? ofServer('57014') : answer(1)) })
    const touched = connections.write('touch', end, () => step(WRITE))
    await turn()
    await vi.advanceTimersByTimeAsync(10)
    expect(await touched).toMatchObject({ changed: 1 })
    expect((await words()).length).toBe(2)
  })

  it('that was not sent because there is no connection says so, and is tried again where the server only ended that one', async () => {
    const { connections, words, end } = setUp({ reply: lost, isSent: false })
    expect(await failure(connections.write('touch', end, () => step(WRITE)))).toMatchObject({
      outcome: 'not-applied',
      cause: { message: 'no connection to the database', cause: { code: 'CONNECTION_CLOSED' } },
    })
    expect((await words()).length).toBe(1)
    const full = setUp({ reply: () => ofServer('53300'), isSent: false })
    expect(await failure(full.connections.write('touch', end, () => step(WRITE)))).toMatchObject({
      cause: { cause: { code: '53300' } },
    })
    expect((await full.words()).length).toBe(1)
    let fails = 1
    const ended = setUp({ reply: () => (fails-- > 0 ? ofServer('57P01') : answer(1)), isSent: false })
    const touched = ended.connections.write('touch', end, () => step(WRITE))
    await turn()
    await vi.advanceTimersByTimeAsync(10)
    expect(await touched).toMatchObject({ changed: 1 })
  })

  it('that was sent and whose connection is lost may have been done', async () => {
    const { connections, end } = setUp({ reply: lost })
    expect(await failure(connections.write('touch', end, () => step(WRITE)))).toMatchObject({ outcome: 'unknown' })
  })

  it('asks for the clock once for all connections, and again after one was lost', async () => {
    let isLost = false
    const reply = (text: string) => (isLost ? lost() : text.includes('clock') ? answer(1, [`${DATABASE}`]) : answer(1))
    const { connections, words, end } = setUp({ reply })
    const clocks = async () => (await words()).filter(([, text]) => String(text).includes('clock')).length
    const touch = () => connections.write('touch', end, () => step(TIMED))
    await touch()
    await touch()
    expect(await clocks()).toBe(1)
    isLost = true
    await failure(touch())
    isLost = false
    await touch()
    expect(await clocks()).toBe(1)
  })
})

describe('the places of a pool', () => {
  it.each<[unknown, number]>([
    [{ max: 2 }, 2],
    [{ max: '3' }, 3],
    [{ max: 1 }, 1],
    [{ max: 0 }, 10],
    [{}, 10],
    [null, 10],
  ])('of %j are as many statements at once, and those that wait follow in their order', async (options, most) => {
    const { connections, words, open, end } = setUp({ reply: () => undefined, options })
    const reads = Array.from({ length: most + 2 }, (_, i) =>
      connections.select({ ...READ, text: `SELECT ${i}` }, ['x'], end, ({ changed }) => changed),
    )
    const first = await words()
    expect(first.map(([, text]) => text)).toEqual(Array.from({ length: most }, (_, i) => `SELECT ${i}`))
    open[0]!.end(answer(5))
    expect(await words()).toEqual([[0, `SELECT ${most}`]])
    open[1]?.end(answer(6))
    for (const { end } of open) end(answer(6))
    await turn()
    for (const { end } of open) end(answer(6))
    expect(await Promise.all(reads)).toEqual([5, ...Array(most + 1).fill(6)])
  })
})

describe('a transaction', () => {
  it('is one of postgres, and all of its statements go there', async () => {
    const { connections, asked, end } = setUp()
    await connections.transaction('deleteUser', end, () => step(WRITE), false)
    expect(await asked()).toEqual([
      [1, 'begin', 'isolation level read committed'],
      [1, WRITE.text, ['x', '{a,b}'], true],
      [1, 'commit'],
    ])
    await connections.select(READ, ['x'], end, rowsOf)
    expect(await asked()).toEqual([[0, READ.text, ['x'], true]])
  })

  it('is rolled back where a statement fails, and what comes then is no part of it', async () => {
    const reply = (text: string) => (text === WRITE.text ? ofServer('23514') : answer(1))
    const { connections, words, end } = setUp({ reply, options: { max: 1 } })
    const error = await failure(connections.transaction('deleteUser', end, () => step(WRITE), false))
    expect(error).toMatchObject({ outcome: 'not-applied', cause: { cause: { code: '23514' } } })
    expect(await words()).toEqual([
      [1, 'begin'],
      [1, WRITE.text],
      [1, 'rollback'],
    ])
    await connections.select(READ, ['x'], end, rowsOf)
    expect(await words()).toEqual([[0, READ.text]])
  })

  it('that gets no connection has done nothing, and is tried again where the server only ended that one', async () => {
    const { connections, words, end } = setUp({ begins: lost })
    expect(await failure(connections.transaction('create', end, () => step(WRITE), true))).toMatchObject({
      outcome: 'not-applied',
      cause: { message: 'no connection to the database' },
    })
    expect(await words()).toEqual([[1, 'begin']])
    let fails = 1
    const ended = setUp({ begins: () => (fails-- > 0 ? ofServer('57P01') : undefined) })
    const made = ended.connections.transaction('create', end, () => step(WRITE), true)
    await turn()
    await vi.advanceTimersByTimeAsync(10)
    expect(await made).toMatchObject({ changed: 1 })
    expect((await ended.words()).at(-1)).toEqual([2, 'commit'])
  })

  function* twice(): Steps<unknown> {
    yield [WRITE, { id: 'x', ids: [] }]
    return yield [TIMED, { id: 'x' }]
  }
  const waiting = (text: string) => (text === WRITE.text ? undefined : answer(1, [`${DATABASE}`]))

  it.each<[string, unknown, object]>([
    ['is lost', lost(), { code: 'CONNECTION_CLOSED' }],
    ['is over', undefined, { message: 'the transaction is over' }],
  ])('that %s before its next statement sends no more', async (_, what, cause) => {
    const { connections, words, open, over, end } = setUp({ reply: waiting })
    const given = failure(connections.transaction('deleteUser', end, twice, false))
    await turn()
    over(what)
    await turn()
    open[0]!.end(answer(1))
    expect(await given).toMatchObject({ outcome: 'not-applied', cause: { cause } })
    expect(await words()).toEqual([
      [1, 'begin'],
      [1, WRITE.text],
    ])
  })

  it.each<[string, unknown, string]>([
    ['COMMIT', answer(1), 'unknown'],
    ['ROLLBACK', ofServer('23514'), 'not-applied'],
  ])('that is lost before its %s does not send it', async (_, what, outcome) => {
    const { connections, words, open, over, end } = setUp({ reply: waiting })
    const given = failure(connections.transaction('deleteUser', end, () => step(WRITE), false))
    await turn()
    over(lost())
    await turn()
    open[0]!.end(what)
    expect(await given).toMatchObject({ outcome })
    expect(await words()).toEqual([
      [1, 'begin'],
      [1, WRITE.text],
    ])
  })

  it.each<[string, boolean]>([
    ['that fails in the driver alone is rolled back', false],
    ['whose connection is lost is not', true],
  ])('%s', async (_, isLost) => {
    const { connections, words, open, over, end } = setUp({ reply: waiting })
    const given = failure(connections.transaction('deleteUser', end, () => step(WRITE), false))
    await turn()
    // The statement is told first.
    if (isLost) setImmediate(() => over(lost()))
    open[0]!.end(lost())
    await given
    expect((await words()).slice(2)).toEqual(isLost ? [] : [[1, 'rollback']])
  })

  it('is over when the clock is asked for again after it', async () => {
    const { connections, words } = setUp({ reply: () => answer(1, [`${DATABASE}`]) })
    await connections.write('touch', now() + 5000, () => step(TIMED))
    await vi.advanceTimersByTimeAsync(61_000)
    await words()
    await connections.transaction('deleteUser', now() + 5000, () => step(WRITE), false)
    expect(await words()).toEqual([
      [1, 'begin'],
      [1, WRITE.text],
      [1, 'commit'],
      [0, GREETING.text],
    ])
  })

  it.each<[string, () => unknown, string]>([
    ['is lost', lost, 'unknown'],
    ['is refused', () => ofServer('40001'), 'not-applied'],
  ])('whose COMMIT %s says what may have become of it', async (_, given, outcome) => {
    let fails = 1
    const ending = (how: string) => (how === 'commit' && fails-- > 0 ? given() : undefined)
    const { connections, end } = setUp({ ending })
    const call = connections.transaction('deleteUser', end, () => step(WRITE), false)
    if (outcome === 'unknown') expect(await failure(call)).toMatchObject({ outcome })
    else {
      await turn()
      await vi.advanceTimersByTimeAsync(10)
      expect(await call).toMatchObject({ changed: 1 })
    }
  })
})

describe('what was given up', () => {
  it('is cancelled, and its place free once the server has said so', async () => {
    const { connections, words, open, end } = setUp({
      reply: text => (text === READ.text ? undefined : answer(1)),
      options: { max: 1 },
    })
    expect(await giveUp(connections.select(READ, ['x'], end, rowsOf))).toMatchObject({ outcome: 'not-applied' })
    expect(await words()).toEqual([
      [0, READ.text],
      [0, 'cancel'],
    ])
    const next = connections.write('touch', now() + 5000, () => step(WRITE))
    expect(await words()).toEqual([])
    open[0]!.end(ofServer('57014'))
    expect(await next).toMatchObject({ changed: 1 })
    expect(await words()).toEqual([[0, WRITE.text]])
  })

  it.each([
    [true, 'unknown', [[0, 'cancel']]],
    [false, 'not-applied', []],
  ])('and had been sent: %s, says %s', async (isSent, outcome, cancelled) => {
    const { connections, words, open, end } = setUp({ reply: () => undefined, isSent })
    expect(await giveUp(connections.write('touch', end, () => step(WRITE)))).toMatchObject({ outcome })
    expect(await words()).toEqual([[0, WRITE.text], ...cancelled])
    open[0]!.end(answer(1))
  })

  it('frees its place where the request to cancel has no answer in time, or fails', async () => {
    for (const [isAnswered, said] of [
      [false, () => new Promise(() => {})],
      [true, () => Promise.reject(new Error('no'))],
      [true, () => undefined],
    ] as const) {
      const { connections, words, open, canceled, end } = setUp({
        reply: text => (text === READ.text ? undefined : answer(1)),
        options: { max: 1 },
      })
      canceled(said)
      await giveUp(connections.select(READ, ['x'], end, rowsOf))
      const next = connections.write('touch', now() + 9000, () => step(WRITE))
      await words()
      open[0]!.end(ofServer('57014'))
      expect((await words()).length).toBe(isAnswered ? 1 : 0)
      await vi.advanceTimersByTimeAsync(1900)
      expect(await words()).toEqual([])
      await vi.advanceTimersByTimeAsync(200)
      expect(await next).toMatchObject({ changed: 1 })
    }
  })

  it('and is never settled frees its place once a later statement is answered', async () => {
    let answers: () => unknown = () => undefined
    const reply = (text: string) => (text === WRITE.text ? undefined : text === READ.text ? answer(1) : answers())
    const { connections, words, end } = setUp({ reply, options: { max: 1 } })
    answers = () => lost()
    expect(await giveUp(connections.write('touch', end, () => step(WRITE)))).toMatchObject({ outcome: 'unknown' })
    const read = connections.select(READ, ['x'], now() + 30_000, rowsOf)
    await vi.advanceTimersByTimeAsync(2001)
    await words()
    answers = () => answer(1, ['1'])
    await vi.advanceTimersByTimeAsync(1500)
    expect(await words(), 'not before it is asked again').toEqual([])
    await vi.advanceTimersByTimeAsync(1000)
    expect(await read).toEqual([])
    expect(await words()).toEqual([
      [0, 'SELECT 1'],
      [0, READ.text],
    ])
  })

  it.each(['CONNECTION_ENDED', 'CONNECTION_DESTROYED'])(
    'and is never settled leaves no timer once its pool is closed: %s',
    async code => {
      const closed = Object.assign(new Error('write'), { code })
      const reply = (text: string) => (text === WRITE.text ? undefined : closed)
      const { connections, words, end } = setUp({ reply })
      await giveUp(connections.write('touch', end, () => step(WRITE)))
      await vi.advanceTimersByTimeAsync(2001)
      expect((await words()).at(-1)).toEqual([0, 'SELECT 1'])
      await vi.advanceTimersByTimeAsync(60_000)
      expect([await words(), vi.getTimerCount()]).toEqual([[], 0])
    },
  )

  it('in a transaction is rolled back before its place is free', async () => {
    const { connections, words, open, end } = setUp({
      reply: text => (text === WRITE.text ? undefined : answer(1)),
      options: { max: 1 },
    })
    expect(await giveUp(connections.transaction('deleteUser', end, () => step(WRITE), false))).toMatchObject({
      outcome: 'not-applied',
    })
    expect(await words()).toEqual([
      [1, 'begin'],
      [1, WRITE.text],
      [1, 'cancel'],
    ])
    open[0]!.end(ofServer('57014'))
    expect(await words()).toEqual([[1, 'rollback']])
    await connections.select(READ, ['x'], now() + 5000, rowsOf)
    expect(await words()).toEqual([[0, READ.text]])
  })

  it('in a transaction whose connection is lost is not rolled back', async () => {
    const { connections, words, open, over, end } = setUp({
      reply: text => (text === WRITE.text ? undefined : answer(1)),
    })
    await giveUp(connections.transaction('deleteUser', end, () => step(WRITE), false))
    setImmediate(() => over(lost()))
    open[0]!.end(lost())
    expect((await words()).flat()).not.toContain('rollback')
  })

  it.each<[string, () => Steps<unknown>]>([
    ['after a statement', () => step(WRITE)],
    ['after none', function* () {}],
  ])('at its COMMIT %s may have been done', async (_, steps) => {
    const { connections, end } = setUp({ ending: () => new Promise(() => {}) })
    expect(await giveUp(connections.transaction('deleteUser', end, steps, false))).toMatchObject({
      outcome: 'unknown',
    })
  })

  it('before its BEGIN had a connection was not begun', async () => {
    const { connections, words, end } = setUp({ begins: () => new Promise(() => {}) })
    const error = await giveUp(connections.transaction('deleteUser', end, () => step(WRITE), false))
    expect(error).toMatchObject({ outcome: 'not-applied' })
    expect(await words()).toEqual([[1, 'begin']])
  })
})

describe('the clock of the server', () => {
  type All = ReturnType<typeof setUp>
  const write = ({ connections }: All) => connections.write('touch', now() + 5000, () => step(WRITE))
  const together = ({ connections }: All) =>
    connections.transaction('deleteUser', now() + 5000, () => step(WRITE), false)
  const refused = ofServer('23514')
  const cancelled = ofServer('57014')
  const failing: Options = { ending: how => (how === 'rollback' ? lost() : undefined) }

  it.each<[string, boolean, (all: All) => Promise<unknown>, unknown, Options?]>([
    ['a statement is given up, and done after all', false, write, answer(1)],
    ['a statement is given up and cancelled', false, write, cancelled],
    ['a statement is given up, and its connection lost', true, write, lost()],
    ['a statement is given up that never had a connection', false, write, lost(), { isSent: false }],
    ['a transaction is given up and rolled back', false, together, cancelled],
    ['a transaction is given up, and its connection lost', true, together, lost()],
    ['a transaction is given up, and its connection lost as it is rolled back', true, together, cancelled, failing],
    ['a transaction is refused and rolled back', false, together, refused],
    ['a transaction is refused, and its connection lost as it is rolled back', true, together, refused, failing],
  ])('where %s, is asked for again: %s', async (_, asks, call, what, options = {}) => {
    const reply = (text: string) => (text === WRITE.text ? undefined : answer(1, [`${DATABASE}`]))
    const all = setUp({ ...options, reply })
    const touch = () => all.connections.write('touch', now() + 5000, () => step(TIMED))
    await touch()
    const given = failure(call(all))
    await turn()
    if (what !== refused) await vi.advanceTimersByTimeAsync(5001)
    all.open[0]!.end(what)
    await given
    await all.words()
    await touch()
    expect((await all.words()).some(([, text]) => text === GREETING.text)).toBe(asks)
  })
})

describe('a sql', () => {
  it('is a function with unsafe()', () => {
    const sql = Object.assign(() => {}, { unsafe() {} })
    expect(isPostgresJs(sql)).toBe(true)
    for (const other of [undefined, null, {}, () => {}, { unsafe() {} }, Object.assign(() => {}, { unsafe: 1 })])
      expect(isPostgresJs(other)).toBe(false)
  })

  it('has to be the whole pool, and to change no rows', () => {
    const whole = { begin() {}, options: { transform: { row: { from: undefined } } } }
    for (const sql of [whole, { begin() {} }, { begin() {}, options: {} }, { begin() {}, options: { transform: {} } }])
      expect(checkPostgresJs(sql as never, 'bigint')).toBe(sql)
    expect(() => checkPostgresJs({ options: {} } as never, 'bigint')).toThrow(
      new TypeError('PostgresStore expects the sql that postgres() gives, not that of a transaction or of reserve()'),
    )
    const changing = { begin() {}, options: { transform: { row: { from: (row: unknown) => row } } } }
    expect(() => checkPostgresJs(changing as never, 'bigint')).toThrow(
      new TypeError('PostgresStore cannot use a client with transform.row: give it one of its own'),
    )
  })
})
