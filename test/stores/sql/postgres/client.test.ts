// What pg is asked, and what its answers and errors mean. The connections here only note what they are asked, and answer as
// they are told; what a server makes of it is in given-up.test.ts.
import { describe, expect, it, vi } from 'vitest'
import { checkPgPool, PgConnections } from '../../../../stores/sql/postgres/client.ts'
import type { PgQuery } from '../../../../stores/sql/postgres/driver.ts'
import { compile, type Statement, type Steps } from '../../../../stores/sql/statement.ts'
import { useFakeClock } from '../../../support/fake-clock.ts'

const READ = compile('$', 'SELECT p WHERE id = :id')
const WRITE = compile('$', 'UPDATE sessions WHERE id = :id')
const DONE = { rows: [], rowCount: 1 }

useFakeClock()

const now = () => performance.now()
const ofServer = (code: string) => Object.assign(new Error(`error ${code}`), { code, severity: 'ERROR' })

type Answer = (text: string) => unknown

/** A connection of pg that answers so, and all that it was asked. `cancel` is called for each request to cancel. */
function setUp(answer: Answer = () => DONE, { prepare = true, cancel = (_: () => void) => {}, more = {} } = {}) {
  const notes: unknown[][] = []
  const listeners = new Set<unknown>()
  class Connection {
    readonly stream = { destroy() {} }
    readonly #told = new Map<string, () => void>()
    constructor({ stream }: { stream: unknown }) {
      notes.push(['cancel', stream])
    }
    on(event: string, listener: () => void) {
      this.#told.set(event, listener)
    }
    connect() {
      cancel(() => {
        this.#told.get('connect')!()
        this.#told.get('end')!()
      })
    }
    cancel() {}
  }
  const client = {
    processID: 7,
    secretKey: 8,
    getTransactionStatus: (): string | null => 'I',
    connection: Object.create(Connection.prototype),
    async query(query: PgQuery) {
      notes.push(['query', query])
      const given = await answer(query.text)
      if (given instanceof Error) throw given
      return given
    },
    on: (event: string, listener: unknown) => notes.push(['on', event]) && listeners.add(listener),
    removeListener: (event: string, listener: unknown) => notes.push(['off', event]) && listeners.delete(listener),
    release: (destroy: boolean) => notes.push(['release', destroy]),
    ...more,
  }
  const pool = {
    options: { stream: 'a stream' },
    connect: (answer: (error: unknown, client?: unknown) => void) => answer(undefined, client),
  }
  const connections = new PgConnections(pool as never, prepare)
  /** All that was asked since this was last called, but for the listener. */
  const asked = async () => {
    await vi.advanceTimersByTimeAsync(0)
    return notes.splice(0).filter(([what]) => what !== 'on' && what !== 'off')
  }
  /** The same, each as its statement. */
  const words = async () =>
    (await asked()).map(([what, query]) => (what === 'query' ? (query as PgQuery).text : [what, query]))
  return { connections, client, notes, listeners, asked, words, end: now() + 5000 }
}

function* step(statement: Statement): Steps<unknown> {
  return yield [statement, { id: 'x' }]
}
const failure = (call: Promise<unknown>) =>
  call.then(
    answer => expect.unreachable(`answered ${JSON.stringify(answer)}`),
    error => error,
  )
const rowsOf = ({ rows }: { rows: unknown[][] }) => rows

describe('a statement', () => {
  it('is prepared under its name, and gets its cells as the server wrote them', async () => {
    const { connections, asked, end } = setUp(() => ({ rows: [['1', null]], rowCount: 1 }))
    expect(await connections.select(READ, ['x'], end, rowsOf)).toEqual([['1', null]])
    const [[, query], ...rest] = (await asked()) as [[string, PgQuery], ...unknown[]]
    expect(query).toEqual({
      name: READ.name,
      text: READ.text,
      values: ['x'],
      rowMode: 'array',
      types: expect.anything(),
    })
    expect(query.types.getTypeParser()('9007199254740993')).toBe('9007199254740993')
    expect(rest).toEqual([['release', false]])
  })

  it('is answered where pg asks a pg-native for a status that it does not know', async () => {
    const getTransactionStatus = () => {
      throw new TypeError('this.native.getTransactionStatus is not a function')
    }
    const { connections, words, end } = setUp(undefined, { more: { getTransactionStatus } })
    await connections.write('touch', end, () => step(READ))
    await connections.transaction('create', end, () => step(READ), false)
    expect(await words()).toEqual([
      READ.text,
      ['release', false],
      'BEGIN ISOLATION LEVEL READ COMMITTED',
      READ.text,
      'COMMIT',
      ['release', false],
    ])
  })

  it('is not prepared where the store is told so, nor what has no name', async () => {
    const { connections, asked, end } = setUp(undefined, { prepare: false })
    await connections.select(READ, ['x'], end, rowsOf)
    const other = setUp()
    await other.connections.transaction('create', other.end, () => step(READ), false)
    const namesOf = (notes: unknown[][]) =>
      notes.filter(([what]) => what === 'query').map(([, query]) => [(query as PgQuery).text, (query as PgQuery).name])
    expect(namesOf(await asked())).toEqual([[READ.text, undefined]])
    expect(namesOf(await other.asked())).toEqual([
      ['BEGIN ISOLATION LEVEL READ COMMITTED', undefined],
      [READ.text, READ.name],
      ['COMMIT', undefined],
    ])
  })

  it.each([
    [3, 3],
    [null, 0],
  ])('whose driver counts %j rows has met %i', async (rowCount, changed) => {
    const { connections, end } = setUp(() => ({ rows: [], rowCount }))
    expect(await connections.write('touch', end, () => step(WRITE))).toEqual({ rows: [], changed })
  })

  it.each(['26000', '42P05'])('is sent again, and no other prepared, where a pooler answers %s', async code => {
    let fails = 1
    const { connections, asked, end } = setUp(() => (fails-- > 0 ? ofServer(code) : DONE))
    const answer = connections.select(READ, ['x'], end, rowsOf)
    await vi.advanceTimersByTimeAsync(10)
    expect(await answer).toEqual([])
    await connections.select(READ, ['x'], end, rowsOf)
    const notes = await asked()
    expect(notes.map(([what, query]) => (what === 'query' ? ((query as PgQuery).name ?? 'none') : query))).toEqual([
      READ.name,
      false,
      'none',
      false,
      'none',
      false,
    ])
  })

  it('is not sent again where it was not prepared, nor after another error', async () => {
    for (const [prepare, code] of [
      [false, '26000'],
      [true, '42P02'],
    ] as const) {
      const { connections, words, end } = setUp(() => ofServer(code), { prepare })
      expect(await failure(connections.write('touch', end, () => step(WRITE)))).toMatchObject({
        outcome: 'not-applied',
        cause: { code },
      })
      expect(await words()).toEqual([WRITE.text, ['release', false]])
    }
  })

  it('whose connection is lost has it closed, and our listener stays there', async () => {
    const { connections, words, listeners, end } = setUp(() => Object.assign(new Error('read'), { code: 'ECONNRESET' }))
    expect(await failure(connections.write('touch', end, () => step(WRITE)))).toMatchObject({ outcome: 'unknown' })
    expect(await words()).toEqual([WRITE.text, ['release', true]])
    expect(listeners.size).toBe(1)
  })

  it('leaves no listener of ours at a connection that goes back', async () => {
    const { connections, notes, listeners, end } = setUp()
    await connections.write('touch', end, () => step(WRITE))
    expect(notes.map(([what, event]) => (what === 'query' ? what : [what, event]))).toEqual([
      ['on', 'error'],
      'query',
      ['off', 'error'],
      ['release', false],
    ])
    expect(listeners.size).toBe(0)
  })
})

describe('a pool', () => {
  const client = () => setUp().client
  const read = (pool: object) => new PgConnections(pool as never, true).select(READ, ['x'], now() + 5000, rowsOf)
  const EXPECTED = 'PostgresStore expects a pg.Pool, whose connect() gives a client with query() and release()'

  it('may answer by a promise', async () => {
    expect(await read({ connect: async () => client() })).toEqual([])
    const down = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
    expect(await failure(read({ connect: () => Promise.reject(down) }))).toMatchObject({
      outcome: 'not-applied',
      cause: { message: 'no connection to the database', cause: { code: 'ECONNREFUSED' } },
    })
  })

  it('may answer by a callback in a later turn', async () => {
    const connect = (answer: (error: unknown, client: unknown) => void) => {
      Promise.resolve().then(() => answer(undefined, client()))
    }
    expect(await read({ connect })).toEqual([])
  })

  it('is asked as its own method', async () => {
    const pool = {
      connect(answer: (error: unknown, client: unknown) => void) {
        expect(this).toBe(pool)
        answer(null, client())
      },
    }
    expect(await read(pool)).toEqual([])
  })

  it('that refuses, with a connection or without one, tells why', async () => {
    const down = Object.assign(new Error('timeout exceeded when trying to connect'), { code: 'X' })
    const refused = { outcome: 'not-applied', cause: { cause: { message: down.message } } }
    expect(await failure(read({ connect: (answer: (error: unknown) => void) => answer(down) }))).toMatchObject(refused)
  })

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['an object', {}],
    ['one without release()', { query() {} }],
    ['one without query()', { release() {} }],
  ])('that gives %s for a client is refused', async (_, given) => {
    const error = await failure(read({ connect: async () => given }))
    expect(error).toMatchObject({ outcome: 'not-applied', cause: { message: EXPECTED } })
    expect(error.cause).toBeInstanceOf(TypeError)
  })

  it('has one listener of ours, whatever the number of stores', () => {
    const heard: [unknown, string, () => unknown][] = []
    const pool = {
      connect() {},
      on(this: unknown, event: string, listener: () => unknown) {
        heard.push([this, event, listener])
      },
    }
    for (let i = 0; i < 3; i++) new PgConnections(pool as never, true)
    expect(heard).toEqual([[pool, 'error', expect.any(Function)]])
    expect(heard[0]![2]()).toBe(undefined)
    expect(() => new PgConnections({ connect() {}, on: 'error' } as never, true)).not.toThrow()
  })

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['an object', {}],
    ['a pool of mysql2', { connect() {}, getConnection() {} }],
    ['a single client', { connect() {}, processID: null }],
  ])('is none where it is %s', (_, given) => {
    expect(() => checkPgPool(given as never)).toThrow(
      new TypeError(
        'PostgresStore expects a pg.Pool: an object whose connect() resolves to a client; or the sql of postgres',
      ),
    )
    const pool = { connect() {} }
    expect(checkPgPool(pool as never)).toBe(pool)
  })
})

describe('a statement that was given up', () => {
  /** A statement that ends as the server is asked to cancel it, or not. */
  function stuck(
    options: { ends?: unknown; cancel?: (taken: () => void) => void; more?: object; rollBack?: unknown } = {},
  ) {
    let end = (_: unknown) => {}
    const waiting = new Promise(resolve => {
      end = resolve
    })
    const cancel =
      options.cancel ??
      ((taken: () => void) => {
        taken()
        if ('ends' in options) end(options.ends)
      })
    const answer = (text: string) =>
      text === READ.text ? waiting : text === 'ROLLBACK' && 'rollBack' in options ? options.rollBack : DONE
    return { ...setUp(answer, { cancel, more: options.more ?? {} }), over: (what: unknown) => end(what) }
  }
  async function giveUp({ connections, words, end }: ReturnType<typeof setUp>, inTransaction = false) {
    const call = inTransaction
      ? connections.transaction('deleteUser', end, () => step(READ), false)
      : connections.select(READ, ['x'], end, rowsOf)
    const given = failure(call)
    await vi.advanceTimersByTimeAsync(5001)
    expect(await given).toMatchObject({ outcome: 'not-applied' })
    const heard = await words()
    return heard.slice(heard.indexOf(READ.text) + 1)
  }
  const CANCEL = ['cancel', 'a stream']

  it.each<[string, unknown, boolean]>([
    ['was cancelled', ofServer('57014'), false],
    ['has been answered after all', DONE, false],
    ['ended with its connection', ofServer('57P01'), true],
    ['ended with its socket', new Error('read ECONNRESET'), true],
  ])('and that %s leaves its connection in that state', async (_, ends, closed) => {
    expect(await giveUp(stuck({ ends }))).toEqual([CANCEL, ['release', closed]])
  })

  it('is cancelled again while the server says nothing of it, and its connection closed in the end', async () => {
    const all = stuck()
    expect(await giveUp(all)).toEqual([CANCEL])
    await vi.advanceTimersByTimeAsync(240)
    expect(await all.words()).toEqual([])
    await vi.advanceTimersByTimeAsync(20)
    expect(await all.words()).toEqual([CANCEL])
    await vi.advanceTimersByTimeAsync(3000)
    expect(await all.words()).toEqual([...Array(6).fill(CANCEL), ['release', true]])
  })

  it('and that a later request ends leaves its connection sound', async () => {
    const all = stuck()
    await giveUp(all)
    await vi.advanceTimersByTimeAsync(300)
    all.over(ofServer('57014'))
    expect(await all.words()).toEqual([CANCEL, ['release', false]])
  })

  it('at a server that takes no request has its connection closed at once', async () => {
    const all = stuck({ cancel: () => {} })
    expect(await giveUp(all)).toEqual([CANCEL])
    await vi.advanceTimersByTimeAsync(2100)
    expect(await all.words()).toEqual([['release', true]])
  })

  it('through a driver that can ask nothing is waited for, and then closed', async () => {
    const all = stuck({ more: { processID: undefined } })
    expect(await giveUp(all)).toEqual([])
    await vi.advanceTimersByTimeAsync(1900)
    expect(await all.words()).toEqual([])
    await vi.advanceTimersByTimeAsync(200)
    expect(await all.words()).toEqual([['release', true]])
    const other = stuck({ more: { processID: undefined } })
    await giveUp(other)
    other.over(DONE)
    expect(await other.words()).toEqual([['release', false]])
  })

  it.each<[string, unknown, unknown, unknown[]]>([
    ['is rolled back', ofServer('57014'), DONE, ['ROLLBACK', ['release', false]]],
    ['cannot be rolled back', ofServer('57014'), ofServer('57014'), ['ROLLBACK', ['release', true]]],
    ['has lost its connection', ofServer('57P01'), DONE, [['release', true]]],
  ])('in a transaction that %s', async (_, ends, rollBack, expected) => {
    expect(await giveUp(stuck({ ends, rollBack }), true)).toEqual([CANCEL, ...expected])
  })

  it('is cancelled through a socket of its own where the pool has no stream', async () => {
    const all = stuck({ ends: DONE })
    const { connections } = all
    const open = connections as unknown as { connect(answer: unknown): void }
    const other = new PgConnections({ connect: (answer: unknown) => open.connect(answer) } as never, true)
    expect(await giveUp({ ...all, connections: other })).toEqual([
      ['cancel', undefined],
      ['release', false],
    ])
  })
})
