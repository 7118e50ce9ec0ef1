// What mysql2 is asked, and what its answers and errors mean. The connections here only note what they are asked, and
// answer as they are told; what a server makes of it is in given-up.test.ts.
import { describe, expect, it, vi } from 'vitest'
import { checkMysqlPool, MysqlConnections, type MysqlPool } from '../../../../stores/sql/mysql/client.ts'
import { compile, type Statement, type Steps, type Values } from '../../../../stores/sql/statement.ts'
import { useFakeClock } from '../../../support/fake-clock.ts'

const READ: Statement = { ...compile('?', 'SELECT p WHERE id = :id'), namesColumns: true }
const LIST = compile('?', 'SELECT a, a WHERE id = :id')
const WRITE = compile('?', 'UPDATE sessions SET tenant = :tenant WHERE id = :id AND n = :n')
const COMMIT = 'COMMIT AND NO CHAIN NO RELEASE'
const NOTHING = { affectedRows: 0, serverStatus: 2 }
const DATABASE = 1_700_000_000_000
const HERE = 'host|3306|1|/data|11.4'

useFakeClock()

const now = () => performance.now()
const never = new Promise<never>(() => {})
const ofServer = (errno: number) => Object.assign(new Error(`error ${errno}`), { errno, sqlState: 'HY000' })

interface Said {
  /** What the greeting tells; the clock comes before it. */
  greeting?: unknown[]
  /** What statements that begin so are answered with: rows, a header, an error, or nothing ever. */
  answers?: [string, unknown][]
  config?: unknown
  threadId?: number | null
}

/** A pool that gives these connections, one after the other, and then the last one; with all that they were asked. */
function poolOf(...said: Said[]) {
  const notes: unknown[][] = []
  let given = 0
  const all = said.map(({ greeting, answers = [], config = {}, threadId = 7 }, place) => {
    const answer = async (text: string) => {
      const isGreeting = text.includes('CONNECTION_ID')
      const known = answers.find(([begins]) => text.startsWith(begins) && !(begins === 'SELECT' && isGreeting))?.[1]
      if (known instanceof Error) throw known
      if (known !== undefined) return [await known]
      if (!isGreeting) return [NOTHING]
      return [[[`${DATABASE + now()}.25`, ...(greeting ?? [threadId, 'root', HERE])]]]
    }
    const ask = (method: string) => (asked: string | { sql: string }, values?: unknown[]) => {
      notes.push([place, method, asked, ...(values === undefined ? [] : [values])])
      return answer(typeof asked === 'string' ? asked : asked.sql)
    }
    return {
      threadId,
      config,
      execute: ask('execute'),
      query: ask('query'),
      release: () => notes.push([place, 'release']),
      destroy: () => notes.push([place, 'destroy']),
    }
  })
  const pool = { getConnection: async () => all[Math.min(given++, all.length - 1)]! }
  const connections = new Open(pool as never, ['tenant'], 'sessions')
  /** All that was asked since this was last called, but for the greetings. */
  const asked = async () => {
    await vi.advanceTimersByTimeAsync(0)
    return notes.splice(0).filter(([, , options]) => !JSON.stringify(options ?? '').includes('CONNECTION_ID'))
  }
  /** The same, each as the place of its connection and its statement or method. */
  const words = async () =>
    (await asked()).map(([place, method, options]) =>
      options === undefined ? [place, method] : [place, (options as { sql?: string }).sql ?? options],
    )
  return { connections, notes, asked, words, given: () => given, end: now() + 5000 }
}

class Open extends MysqlConnections {
  fault(error: unknown) {
    return this.faultOf(error)
  }
}

const values = { tenant: 'acme', id: 'x', n: 5 }
function* step(statement: Statement, changes: Values = {}): Steps<unknown> {
  return yield [statement, { ...values, ...changes }]
}
const failure = (call: Promise<unknown>) =>
  call.then(
    answer => expect.unreachable(`answered ${JSON.stringify(answer)}`),
    error => error,
  )

describe('a statement', () => {
  it('is asked for without options, where the rows come as they are sent', async () => {
    for (const config of [{}, { typeCast: true }, { rowsAsArray: false }, { nestTables: false }]) {
      const { connections, asked, end } = poolOf({ config, answers: [['SELECT p', [{ p: 'packed' }, { p: 'too' }]]] })
      const rows = await connections.select(READ, ['x'], end, ({ rows, changed }) => [...rows, changed])
      expect(rows).toEqual([['packed'], ['too'], 2])
      expect(await asked()).toEqual([
        [0, 'execute', READ.text, ['x']],
        [0, 'release'],
      ])
    }
  })

  it.each<[string, unknown, Statement]>([
    ['the application casts nothing', { typeCast: false }, READ],
    ['the application wants rows as arrays', { rowsAsArray: true }, READ],
    ['the application wants a table for each row', { nestTables: '_' }, READ],
    ['the connection tells nothing of itself', null, READ],
    ['columns share a name', {}, LIST],
  ])('is asked for with options where %s', async (_, config, statement) => {
    const { connections, asked, end } = poolOf({ config, answers: [['SELECT', [['one', 'two']]]] })
    expect(await connections.select(statement, ['x'], end, ({ rows }) => rows)).toEqual([['one', 'two']])
    const options = { sql: statement.text, rowsAsArray: true, nestTables: false, typeCast: true, values: ['x'] }
    expect(await asked()).toEqual([
      [0, 'execute', options],
      [0, 'release'],
    ])
  })

  it('gets its cells as they are sent, where the application has a function that casts', async () => {
    const config = { typeCast: () => 'changed' }
    const { connections, asked, end } = poolOf({ config, answers: [['SELECT', [['one']]]] })
    await connections.select(READ, ['x'], end, ({ rows }) => rows)
    const [[, , { typeCast }]] = (await asked()) as [[number, string, { typeCast: (...given: unknown[]) => unknown }]]
    expect(typeCast('field', () => 'as it is')).toBe('as it is')
  })

  it('compares a tenant as bytes, and nothing else; counts the rows that it met', async () => {
    const { connections, asked, end } = poolOf({ answers: [['UPDATE', { affectedRows: 3, serverStatus: 2 }]] })
    expect(await connections.write('touch', end, () => step(WRITE))).toEqual({
      rows: [],
      changed: 3,
    })
    expect(await asked()).toEqual([
      [0, 'execute', WRITE.text, [Buffer.from('acme'), 'x', 5]],
      [0, 'release'],
    ])
  })

  it('compares what is not there with nothing', async () => {
    const { connections, asked, end } = poolOf({})
    await connections.write('touch', end, () => step(WRITE, { tenant: null }))
    expect((await asked())[0]).toEqual([0, 'execute', WRITE.text, [null, 'x', 5]])
  })

  it('that a server holds back, because autocommit is off, is refused, and the connection closed', async () => {
    const { connections, words, end } = poolOf({ answers: [['UPDATE', { affectedRows: 1, serverStatus: 1 }]] })
    expect(await failure(connections.write('touch', end, () => step(WRITE)))).toMatchObject({
      outcome: 'not-applied',
      cause: { message: expect.stringContaining('autocommit is off') },
    })
    expect((await words()).at(-1)).toEqual([0, 'destroy'])
  })

  it('comes after one greeting of each connection, which mysql2 wraps anew each time', async () => {
    const core = {}
    const { connections, notes, end } = poolOf({}, {})
    const pool = connections as unknown as { connect(answer: (error: unknown, connection: object) => void): void }
    const connect = pool.connect.bind(connections)
    pool.connect = answer =>
      connect((error, connection) => answer(error, Object.assign({ ...connection }, { connection: core })))
    for (let i = 0; i < 3; i++) await connections.select(READ, ['x'], end, ({ rows }) => rows)
    expect(notes.filter(([, , options]) => JSON.stringify(options ?? '').includes('CONNECTION_ID')).length).toBe(1)
  })
})

describe('an error', () => {
  const faultOf = (error: unknown) => poolOf({}).connections.fault(error)
  it.each<[string, number[]]>([
    ['lost', [1053, 1152, 1158, 1159, 1160, 1161, 1927, 4031]],
    ['busy', [1213, 1205, 1020]],
    ['unusable', [1568]],
    ['wrong-server', [1290, 1792, 1836]],
    ['late', [1690]],
    ['duplicate', [1062]],
    ['foreign', [1146, 1054, 1049, 1364, 1048, 1366, 1406, 1265]],
    ['refused', [1064, 1044, 1]],
  ])('of the server is %s: %j', (fault, numbers) => {
    for (const errno of numbers) expect(faultOf(ofServer(errno))).toBe(fault)
  })

  it.each<[string, unknown]>([
    ['of a socket', Object.assign(new Error('read ECONNRESET'), { errno: -104, code: 'ECONNRESET' })],
    ['of a socket with a state', Object.assign(new Error('read'), { errno: -104, sqlState: 'HY000' })],
    ['without a number', Object.assign(new Error('closed'), { sqlState: 'HY000' })],
    ['with a number of a driver', Object.assign(new Error('closed'), { errno: 1213 })],
    ['with the number 0', Object.assign(new Error('closed'), { errno: 0, sqlState: 'HY000' })],
    ['that is nothing', null],
    ['that is not there', undefined],
  ])('%s ends the connection', (_, error) => {
    expect(faultOf(error)).toBe('lost')
  })
})

describe('a pool', () => {
  const read = (pool: unknown) =>
    new Open(pool as MysqlPool, [], 'sessions').select(READ, ['x'], now() + 5000, ({ rows }) => rows)
  const usable = { threadId: 7, config: {}, query() {}, release() {}, destroy() {} }
  const execute = async (asked: string | object) => [
    typeof asked === 'string' ? [] : [[`${DATABASE}`, 7, 'root', HERE]],
  ]

  it('with callbacks is asked for its promises', async () => {
    const promises = { getConnection: async () => ({ ...usable, execute }) }
    const wrong = () => expect.unreachable()
    expect(await read({ getConnection: wrong, promise: () => promises })).toEqual([])
    expect(await read({ ...promises, promise: 'kept' })).toEqual([])
  })

  it.each<[string, RegExp, unknown]>([
    ['no promise', /^getConnection\(\) gives no promise: use mysql2$/, () => ({})],
    ['nothing', /^getConnection\(\) gives no promise: use mysql2$/, () => undefined],
    [
      'no connection',
      /^MysqlStore expects a pool of mysql2, whose getConnection\(\) gives .* execute\(\)$/,
      async () => null,
    ],
    ['one without execute()', /^MysqlStore expects a pool of mysql2, whose/, async () => usable],
    [
      'one without release()',
      /^MysqlStore expects a pool of mysql2, whose/,
      async () => ({ ...usable, execute, release: 1 }),
    ],
  ])('that gives %s is refused', async (_, message, getConnection) => {
    const error = await failure(read({ getConnection }))
    expect(error).toMatchObject({ outcome: 'not-applied', cause: { message: expect.stringMatching(message) } })
    expect(error.cause).toBeInstanceOf(TypeError)
  })

  it('that cannot give one tells why', async () => {
    const down = async () => {
      throw Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
    }
    expect(await failure(read({ getConnection: down }))).toMatchObject({ cause: { cause: { code: 'ECONNREFUSED' } } })
  })

  it('has one listener of ours at each connection, whose errors end no process', async () => {
    const heard: [string, () => unknown][] = []
    const on = (event: string, listener: () => unknown) => heard.push([event, listener])
    const core = { on }
    const wrapped = () => ({ ...usable, execute, connection: core })
    await read({ getConnection: async () => wrapped() })
    await read({ getConnection: async () => wrapped() })
    expect(heard.map(([event]) => event)).toEqual(['error'])
    expect(heard[0]![1]()).toBe(undefined)
    await read({ getConnection: async () => ({ ...usable, execute, on }) })
    expect(heard.length).toBe(2)
    expect(await read({ getConnection: async () => ({ ...usable, execute, connection: { on: 'error' } }) })).toEqual([])
  })

  it.each<[string, unknown]>([
    ['expects a pool of mysql2 or mysql2/promise: an object with getConnection()', undefined],
    ['expects a pool of mysql2 or mysql2/promise: an object with getConnection()', null],
    ['expects a pool of mysql2 or mysql2/promise: an object with getConnection()', { query() {} }],
    ['expects a pool, got a single connection: use createPool() of mysql2', { promise() {} }],
  ])('is told that MysqlStore %s', (words, given) => {
    expect(() => checkMysqlPool(given as never)).toThrow(new TypeError(`MysqlStore ${words}`))
  })

  it('is taken with promises or callbacks', () => {
    for (const pool of [{ getConnection() {} }, { getConnection() {}, promise() {} }])
      expect(checkMysqlPool(pool as never)).toBe(pool)
  })
})

describe('the pool with callbacks that is behind one with promises', () => {
  let said: unknown[][] = []
  const answerTo = (asked: string | { sql: string }) => {
    if (typeof asked !== 'string') return [[DATABASE, 7, 'root', HERE]] // the greeting
    said.push(['asked', asked])
    return [{ p: 'packed' }]
  }
  const ended = {
    threadId: 7,
    config: {},
    release: () => said.push(['release']),
    destroy: () => said.push(['destroy']),
  }
  const promised = () => {
    said.push(['promise'])
    const ask = async (asked: string | { sql: string }) => [answerTo(asked)]
    return { ...ended, execute: ask, query: ask, connection: {} }
  }
  /** As mysql2 makes them: the pool with callbacks makes the one with promises, which has it as `pool`. */
  class Promises {
    readonly pool: unknown
    constructor(pool: unknown) {
      this.pool = pool
    }
    async getConnection(): Promise<unknown> {
      return promised()
    }
  }
  const core = (failures: { connecting?: Error; asking?: Error } = {}) => ({
    getConnection(give: (error: unknown, connection?: unknown) => void) {
      said.push(['callback'])
      const ask = (asked: string | { sql: string }, ...rest: unknown[]) => {
        const rows = answerTo(asked)
        const failed = typeof asked === 'string' ? failures.asking : undefined
        ;(rest.at(-1) as typeof give)(failed ?? null, failed === undefined ? rows : undefined)
      }
      if (failures.connecting === undefined) give(null, { ...ended, execute: ask, query: ask })
      else give(failures.connecting)
    },
    promise(): unknown {
      return new Promises(this)
    },
  })
  const read = (pool: unknown) => {
    said = []
    return new Open(pool as MysqlPool, [], 'sessions').select(READ, ['x'], now() + 5000, ({ rows }) => rows)
  }
  const by = (way: 'promise' | 'callback') => [[way], ['asked', READ.text], ['release']]

  it('is asked in its place, whichever of them the store was given', async () => {
    for (const pool of [core(), core().promise()]) {
      expect(await read(pool)).toEqual([['packed']])
      expect(said).toEqual(by('callback'))
    }
  })

  it('tells why it has no connection, and what became of a statement', async () => {
    const down = core({ connecting: Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }) })
    expect(await failure(read(down))).toMatchObject({ cause: { cause: { code: 'ECONNREFUSED' } } })
    expect(await failure(read(core({ asking: ofServer(1064) })))).toMatchObject({ cause: { message: 'error 1064' } })
    expect(said.at(-1)).toEqual(['release'])
    expect(await failure(read(core({ asking: ofServer(1053) })))).toMatchObject({ cause: { message: 'error 1053' } })
    expect(said.at(-1)).toEqual(['destroy'])
  })

  it('is not asked where an application stands between the two', async () => {
    const promises = () => core().promise() as Promises
    class Tenants extends Promises {
      override getConnection() {
        return super.getConnection()
      }
    }
    const mine = { pool: core(), getConnection: async () => promised() }
    const pools: unknown[] = [
      new Tenants(core()),
      mine,
      { ...core(), promise: () => mine },
      Object.assign(promises(), { getConnection: mine.getConnection }),
      new Proxy(promises(), {
        get: (pool, name) => (name === 'getConnection' ? mine.getConnection : Reflect.get(pool, name)),
      }),
    ]
    for (const pool of pools) {
      expect(await read(pool)).toEqual([['packed']])
      expect(said).toEqual(by('promise'))
    }
  })

  it('is not asked any more once an application has put itself between them', async () => {
    const pool = core().promise() as Promises
    const connections = new Open(pool as never, [], 'sessions')
    const ask = () => connections.select(READ, ['x'], now() + 5000, ({ rows }) => rows)
    const before = pool.getConnection
    for (const [way, getConnection] of [
      ['callback', before],
      ['promise', async () => promised()],
      ['callback', before],
    ] as const) {
      said = []
      pool.getConnection = getConnection
      expect(await ask()).toEqual([['packed']])
      expect(said).toEqual(by(way))
    }
  })

  it('is not taken for one where it is something else of that name', async () => {
    const { getConnection, promise } = core()
    for (const pool of [
      undefined,
      null,
      'tenants',
      {},
      { getConnection },
      { promise },
      { getConnection, promise: 1 },
    ]) {
      expect(await read(new Promises(pool))).toEqual([['packed']])
      expect(said).toEqual(by('promise'))
    }
  })
})

describe('a transaction that makes a session live', () => {
  const BEGUN = ['SET TRANSACTION ISOLATION LEVEL READ COMMITTED', 'START TRANSACTION']
  const IDLE = 'SELECT @@SESSION.wait_timeout LIMIT 1'
  const answers: [string, unknown][] = [[IDLE, [['28800']]]]

  it('is rolled back by the server where its COMMIT does not come in time, and only there', async () => {
    const { connections, words, end } = poolOf({ answers })
    await connections.transaction('create', end - 1500, () => step(WRITE), true)
    const expected = [
      ...BEGUN,
      WRITE.text,
      IDLE,
      'SET SESSION wait_timeout = 4',
      COMMIT,
      'SET SESSION wait_timeout = 28800',
      'release',
    ]
    expect(await words()).toEqual(expected.map(text => [0, text]))
    await connections.transaction('deleteUser', end, () => step(WRITE), false)
    expect(await words()).toEqual([...BEGUN, WRITE.text, COMMIT, 'release'].map(text => [0, text]))
  })

  it('prepares its statements, and none of those around them', async () => {
    const { connections, asked, end } = poolOf({ answers })
    await connections.transaction('create', end, () => step(WRITE), true)
    const prepared = (await asked()).map(([, method, given]) => [method, (given as { sql?: string })?.sql ?? given])
    expect(prepared.filter(([method]) => method === 'execute').map(([, text]) => text)).toEqual([WRITE.text, IDLE])
  })

  it('gives the server a second at the least', async () => {
    const { connections, words } = poolOf({ answers })
    await connections.transaction('create', now() + 300, () => step(WRITE), true)
    expect(await words()).toContainEqual([0, 'SET SESSION wait_timeout = 1'])
  })

  it('has its connection closed where that cannot be taken back, or where it fails after it was set', async () => {
    const refused: [string, unknown] = ['SET SESSION wait_timeout = 28800', ofServer(1064)]
    const failed: [string, unknown] = ['COMMIT', ofServer(1064)]
    const first = poolOf({ answers: [...answers, refused] })
    await first.connections.transaction('create', first.end, () => step(WRITE), true)
    expect((await first.words()).at(-1)).toEqual([0, 'destroy'])
    const second = poolOf({ answers: [...answers, failed] })
    await failure(second.connections.transaction('create', second.end, () => step(WRITE), true))
    expect((await second.words()).slice(-2)).toEqual([
      [0, 'ROLLBACK AND NO CHAIN NO RELEASE'],
      [0, 'destroy'],
    ])
  })
})

describe('a statement that was given up', () => {
  const UPTIME = "SHOW GLOBAL STATUS LIKE 'Uptime'"
  const LIST_ALL = 'SHOW FULL PROCESSLIST'
  const stuck: Said = { answers: [['UPDATE', never]] }
  const process = (id: unknown, user: unknown, statement: unknown) => [
    id,
    user,
    'host',
    'test',
    'Execute',
    1,
    'update',
    statement,
  ]
  const ours = process('7', 'root', 'UPDATE sessions SET')
  /** The server as the connection sees it that ends what was left behind. */
  const seen = (uptime: unknown, ...processes: unknown[][]): [string, unknown][] => [
    [UPTIME, [['Uptime', uptime]]],
    [LIST_ALL, processes],
  ]
  /** A statement that waits at the server until its caller has given it up. */
  async function giveUp({ connections, words, end }: ReturnType<typeof poolOf>) {
    const given = failure(connections.write('touch', end, () => step(WRITE)))
    await vi.advanceTimersByTimeAsync(5100)
    expect(await given).toMatchObject({ outcome: 'unknown' })
    return words()
  }
  const BEFORE = [
    [0, WRITE.text],
    [0, 'destroy'],
  ]

  it('is ended by another connection, and its own one is closed', async () => {
    const pool = poolOf(stuck, { threadId: 8, answers: seen('100', process('9', 'root', 'UPDATE sessions'), ours) })
    expect(await giveUp(pool)).toEqual([...BEFORE, [1, UPTIME], [1, LIST_ALL], [1, 'KILL 7'], [1, 'release']])
  })

  it.each<[string, Said]>([
    [
      'another server answers there now',
      { greeting: [8, 'root', 'host|3306|2|/data|11.4'], answers: seen('100', ours) },
    ],
    ['the server has been started since', { answers: seen('3', ours) }],
    [
      'the server does not say since when it runs',
      {
        answers: [
          [UPTIME, []],
          [LIST_ALL, [ours]],
        ],
      },
    ],
    ['it runs no more', { answers: seen('100', process('8', 'root', 'UPDATE sessions')) }],
    ['its number is of another user', { answers: seen('100', process('7', 'app', 'UPDATE sessions')) }],
    ['its number is of another statement', { answers: seen('100', process('7', 'root', 'UPDATE orders')) }],
    ['its number is of no statement', { answers: seen('100', process('7', 'root', null)) }],
  ])('is left alone where %s', async (_, said) => {
    const heard = await giveUp(poolOf(stuck, { threadId: 8, ...said }))
    expect(heard.slice(0, 2)).toEqual(BEFORE)
    expect(heard.at(-1)).toEqual([1, 'release'])
    expect(heard.flat().join()).not.toContain('KILL')
  })

  it('is ended at a server in the second after its start, which counts whole seconds', async () => {
    // 5 s have passed since the greeting.
    expect((await giveUp(poolOf(stuck, { threadId: 8, answers: seen('5', ours) }))).flat()).toContain('KILL 7')
    expect((await giveUp(poolOf(stuck, { threadId: 8, answers: seen('4', ours) }))).flat()).not.toContain('KILL 7')
  })

  it('is not looked for behind a proxy that shares connections', async () => {
    const pool = poolOf({ ...stuck, greeting: [70, 'root', HERE] }, { threadId: 8 })
    expect(await giveUp(pool)).toEqual(BEFORE)
    expect(pool.given()).toBe(1)
  })

  it('is not looked for where the server did not even say who it is', async () => {
    const pool = poolOf({ answers: [['SELECT UNIX_TIMESTAMP', never]] }, { threadId: 8, answers: seen('100', ours) })
    const given = failure(pool.connections.write('touch', pool.end, () => step(WRITE)))
    await vi.advanceTimersByTimeAsync(5100)
    expect(await given).toMatchObject({ cause: { message: 'the database did not answer in time' } })
    expect(await pool.words()).toEqual([[0, 'destroy']])
    expect(pool.given()).toBe(1)
  })

  it('is ended before others that wait for a connection get one', async () => {
    const pool = poolOf(stuck, { threadId: 8, answers: seen('100', ours) })
    const open = pool.connections as unknown as { connect(answer: (error: unknown) => void): void }
    const connect = open.connect.bind(pool.connections)
    const waiting: (() => void)[] = []
    open.connect = answer => (pool.given() === 0 ? connect(answer) : waiting.push(() => connect(answer)))
    const given = failure(pool.connections.write('touch', pool.end, () => step(WRITE)))
    await vi.advanceTimersByTimeAsync(4000)
    const other = pool.connections.write('touch', pool.end + 30_000, () => step(LIST))
    await vi.advanceTimersByTimeAsync(1100)
    await given
    waiting.shift()!()
    const first = (await pool.words()).flat()
    expect(first).toContain('KILL 7')
    expect(first).not.toContain(LIST.text)
    for (const connection of waiting.splice(0)) connection()
    await other
    expect(await pool.words()).toContainEqual([1, LIST.text])
  })

  it.each<[string, unknown, string]>([
    ['that is over by now', ofServer(1094), 'release'],
    ['whose server ends', ofServer(1053), 'destroy'],
    ['that the server does not answer', never, 'destroy'],
  ])('%s: the other connection goes back sound or is closed', async (_, answer, back) => {
    const answers: [string, unknown][] = [...seen('100', ours), ['KILL', answer]]
    const pool = poolOf(stuck, { threadId: 8, answers })
    const heard = await giveUp(pool)
    await vi.advanceTimersByTimeAsync(2100)
    expect([...heard, ...(await pool.words())].slice(-2)).toEqual([
      [1, 'KILL 7'],
      [1, back],
    ])
  })

  it('is ended with others by one connection, and later ones by another', async () => {
    const other: Said = { ...stuck, threadId: 6 }
    const answers = seen('100', ours, process('6', 'root', 'UPDATE sessions'))
    const pool = poolOf(stuck, other, { threadId: 8, answers }, { ...stuck, threadId: 7 }, { threadId: 8, answers })
    const both = [0, 1].map(() => failure(pool.connections.write('touch', pool.end, () => step(WRITE))))
    await vi.advanceTimersByTimeAsync(5100)
    await Promise.all(both)
    const words = await pool.words()
    expect(words.filter(([, text]) => String(text).startsWith('KILL'))).toEqual([
      [2, 'KILL 7'],
      [2, 'KILL 6'],
    ])
    expect(words.filter(([, text]) => text === 'release')).toEqual([[2, 'release']])
    expect(pool.given()).toBe(3)
    const later = failure(pool.connections.write('touch', now() + 5000, () => step(WRITE)))
    await vi.advanceTimersByTimeAsync(5100)
    await later
    expect(await pool.words()).toContainEqual([4, 'KILL 7'])
  })

  it('is forgotten where no other connection can be had, and the next one is looked for again', async () => {
    const processes = [ours, process('6', 'root', 'UPDATE sessions')]
    const pool = poolOf(stuck, { ...stuck, threadId: 6 }, { threadId: 8, answers: seen('100', ...processes) })
    let refuse = true
    const open = pool.connections as unknown as { connect(answer: (error: unknown) => void): void }
    const connect = open.connect.bind(pool.connections)
    open.connect = answer =>
      pool.given() === 1 && refuse ? answer(new Error('too many connections')) : connect(answer)
    expect(await giveUp(pool)).toEqual(BEFORE)
    refuse = false
    const next = failure(pool.connections.write('touch', now() + 5000, () => step(WRITE)))
    await vi.advanceTimersByTimeAsync(5100)
    expect(await next).toMatchObject({ outcome: 'unknown' })
    const killed = (await pool.words()).filter(([, text]) => String(text).startsWith('KILL'))
    expect(killed).toEqual([[2, 'KILL 6']])
  })
})
