// What the store asks of the client of Valkey, and what it makes of the answers; valkey-glide.test.ts has the client itself.
import { type RedisClient, RedisStore } from 'coatcheck/stores/redis'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { linkTo } from '../../../stores/redis/client.ts'
import { NotReady } from '../../../stores/redis/link.ts'

const CLOSED = 'the Valkey client is closed'
const AWAY = 'the Valkey client gets no answer from its server'
const GET = ['GET', 'k']
const link = (client: object) => linkTo(client as RedisClient)
const failure = (work: Promise<unknown>) =>
  work.then(
    () => 'none',
    error => error,
  )
/** An error as the client names it. */
const named = (name: string, message = 'x') => Object.assign(new Error(message), { name })

type Answer = (args: string[]) => unknown
/** A client of one server; `answer` may throw. */
const serverOf = (answer: Answer = args => args, more: object = {}) => ({
  customCommand: vi.fn(async (args: string[], _options: object) => answer(args)),
  isClosed: false,
  close: vi.fn(),
  ...more,
})
const clusterOf = (answer?: Answer, more: object = {}) =>
  serverOf(answer, { pubsubShardChannels: async () => [], ...more })
/** All values as bytes: one that is not UTF-8 is a value, too. */
const BYTES = { decoder: 0 }

describe('a link over a client of valkey-glide', () => {
  it('sends to its one server, and knows whether the client is closed', async () => {
    const client = serverOf()
    const one = link(client)
    expect(one).toMatchObject({ cluster: false, keyPrefix: '' })
    expect([one.cannotWait, one.breaks, one.sendTogether]).toEqual([undefined, undefined, undefined])
    expect(one.notReadyReason('abc')).toBe(null)
    expect(await one.send('abc', GET)).toEqual(GET)
    expect(client.customCommand.mock.calls).toEqual([[GET, BYTES]])
    expect(one.master('abc')).toBe(one.master('xyz'))
    const [master, ...others] = await one.masters()
    expect(others).toEqual([])
    expect(master).toMatchObject({ name: '', isReady: true })
    expect(await master!.send(GET)).toEqual(GET)
    expect(one.master('abc')).toBe(master!.name)
    client.isClosed = true
    expect(one.notReadyReason('abc')).toBe(CLOSED)
    expect(await one.masters()).toMatchObject([{ isReady: false }])
  })

  it.each<[object]>([
    [{}],
    [{ config: {} }],
    [{ config: { readFrom: 'primary', readOnly: false, clientSideCache: null } }],
    [{ config: { clientSideCache: undefined } }],
  ])('is taken where it reads from the master: %j', more => {
    expect(link(serverOf(undefined, more)).cluster).toBe(false)
  })

  it.each<[object, string]>([
    [{ readFrom: 'AZAffinity' }, "the client reads from replicas (readFrom: 'AZAffinity'), where an ended"],
    [{ readOnly: true }, 'the client reads from replicas (readOnly: true), where an ended'],
    [{ clientSideCache: {} }, 'the client keeps what it reads (clientSideCache), where an ended'],
  ])('is refused where an ended session would live on: %j', (config, message) => {
    for (const client of [serverOf(undefined, { config }), clusterOf(undefined, { config })])
      expect(() => link(client)).toThrow(message)
  })

  it('is none once the client is closed', () => {
    expect(() => link(serverOf(undefined, { isClosed: true }))).toThrow(new TypeError(`${CLOSED}: create a new one`))
  })

  it.each<[string, string]>([
    ['An error was signalled by the server: - NoScriptError: No matching script.', 'NOSCRIPT No matching script.'],
    ['An error was signalled by the server: - ResponseError: wrong\nlines', 'ERR wrong\nlines'],
    ['An error was signalled by the server: - Moved: 5 h:1', 'MOVED 5 h:1'],
    ['An error was signalled by the server: - Ask: 5 h:1', 'ASK 5 h:1'],
    ['An error was signalled by the server: - ReadOnly: a replica', 'READONLY a replica'],
    ['An error was signalled by the server: - TryAgain: moving', 'TRYAGAIN moving'],
    ['An error was signalled by the server: - CrossSlot: keys', 'CROSSSLOT keys'],
    ['An error was signalled by the server: - ClusterDown: no slot', 'CLUSTERDOWN no slot'],
    ['An error was signalled by the server: - MasterDown: link', 'MASTERDOWN link'],
    ['An error was signalled by the server: - BusyLoadingError: loading', 'LOADING loading'],
    ['An error was signalled by the server: - PermissionDenied: no right', 'NOPERM no right'],
    ['An error was signalled by the server: - AuthenticationFailed: wrong', 'WRONGPASS wrong'],
    ['An error was signalled by the server: - OOM: no room', 'OOM no room'],
    ['WRONGTYPE: Operation\nagainst', 'WRONGTYPE Operation\nagainst'],
    ['Reached maximum inflight requests', 'TRYAGAIN Reached maximum inflight requests'],
    ['Reached maximum inflight requests: 50', 'TRYAGAIN Reached maximum inflight requests: 50'],
    // Not from the server.
    ['timed out', 'timed out'],
    ['Error: timed out', 'Error: timed out'],
    ['it said: WRONGTYPE: x', 'it said: WRONGTYPE: x'],
    [
      'it was: An error was signalled by the server: - Ask: x',
      'it was: An error was signalled by the server: - Ask: x',
    ],
    ['An error was signalled by the server: - two words: x', 'An error was signalled by the server: - two words: x'],
  ])('says an error as Redis does: %j', async (message, said) => {
    const client = serverOf(() => {
      throw named('RequestError', message)
    })
    expect(await failure(link(client).send('abc', GET))).toMatchObject({ message: said })
  })

  it('keeps the name of an error, and passes on what is none', async () => {
    const sent = (error: unknown) =>
      failure(
        link(
          serverOf(() => {
            throw error
          }),
        ).send('abc', GET),
      )
    const said = await sent(named('RequestError', 'WRONGTYPE: x'))
    expect([said instanceof Error, said.name]).toEqual([true, 'RequestError'])
    const broken = named('ClosingError', 'closed')
    expect(await sent(broken)).toBe(broken)
    for (const other of ['WRONGTYPE: x', undefined]) expect(await sent(other)).toBe(other)
  })

  it.each<[unknown, unknown]>([
    [
      [
        { key: 'a', value: 1 },
        { key: 'b', value: 2 },
      ],
      [
        ['a', 1],
        ['b', 2],
      ],
    ],
    [[], []],
    [[null], [null]],
    [
      ['a', 1],
      ['a', 1],
    ],
    [[{ key: 'a' }], [{ key: 'a' }]],
    [[{ value: 1 }], [{ value: 1 }]],
    ['text', 'text'],
    [null, null],
    [
      { key: 'a', value: 1 },
      { key: 'a', value: 1 },
    ],
  ])('answers pairs as lists, and all else as it is: %j', async (answer, expected) => {
    expect(await link(serverOf(() => answer)).send('abc', GET)).toEqual(expected)
  })

  describe('that gets no answer', () => {
    beforeEach(() => {
      vi.useFakeTimers()
    })
    afterEach(() => {
      vi.useRealTimers()
    })
    const pings = ({ customCommand }: ReturnType<typeof serverOf>) =>
      customCommand.mock.calls.filter(([[command]]) => command === 'PING').length

    it.each(['TimeoutError', 'ConnectionError'])(
      'is not ready after a %s, until one of its questions is answered, ten a second',
      async name => {
        let fault: Error | null = named(name)
        const client = serverOf(() => {
          if (fault) throw fault
        })
        const one = link(client)
        // Commands that were under way together: the first asks, and no other.
        const errors = await Promise.all([failure(one.send('abc', GET)), failure(one.send('abc', GET))])
        expect(errors).toEqual([fault, fault])
        expect(one.notReadyReason('abc')).toBe(AWAY)
        expect(await one.masters()).toMatchObject([{ isReady: false }])
        expect(pings(client)).toBe(1)
        expect(client.customCommand).toHaveBeenCalledWith(['PING'], BYTES)
        await vi.advanceTimersByTimeAsync(99)
        expect(pings(client)).toBe(1)
        await vi.advanceTimersByTimeAsync(1)
        expect(pings(client)).toBe(2)
        fault = null
        expect(one.notReadyReason('abc')).toBe(AWAY)
        await vi.advanceTimersByTimeAsync(100)
        expect(pings(client)).toBe(3)
        expect(one.notReadyReason('abc')).toBe(null)
        await vi.advanceTimersByTimeAsync(1000)
        expect(pings(client)).toBe(3)
        // And so again in the next outage.
        fault = named(name)
        await failure(one.send('abc', GET))
        expect([one.notReadyReason('abc'), pings(client)]).toEqual([AWAY, 4])
      },
    )

    it('is ready again where a question is refused: that is an answer too', async () => {
      let fault = named('TimeoutError')
      const client = serverOf(() => {
        throw fault
      })
      const one = link(client)
      await failure(one.send('abc', GET))
      fault = named('RequestError', 'NOAUTH: log in first')
      await vi.advanceTimersByTimeAsync(100)
      expect(one.notReadyReason('abc')).toBe(null)
      await failure(one.send('abc', GET))
      expect([one.notReadyReason('abc'), pings(client)]).toEqual([null, 2])
    })

    it('is closed rather than without an answer', async () => {
      const client = serverOf(() => {
        throw named('TimeoutError')
      })
      const one = link(client)
      await failure(one.send('abc', GET))
      client.isClosed = true
      expect(one.notReadyReason('abc')).toBe(CLOSED)
    })
  })

  describe('of a cluster', () => {
    const at = (shard: string) => ({ ...BYTES, route: { type: 'primarySlotKey', key: `{${shard}}` } })

    it('sends by the shard, and cannot wait for replicas', async () => {
      const client = clusterOf()
      const many = link(client)
      expect(many).toMatchObject({ cluster: true, keyPrefix: '' })
      expect(many.breaks).toBe(undefined)
      expect(many.notReadyReason('abc')).toBe(null)
      expect(await many.send('abc', GET)).toEqual(GET)
      expect(client.customCommand.mock.calls).toEqual([[GET, at('abc')]])
      expect(many.master('abc')).toBe(many.master('xyz'))
      expect(many.cannotWait).toMatch(/^GlideClusterClient follows redirections by itself/)
      expect(await failure(many.dedicate('abc'))).toEqual(new NotReady(many.cannotWait!))
      client.isClosed = true
      expect(many.notReadyReason('abc')).toBe(CLOSED)
    })

    it('reads several keys one by one, and finds them on either side while their slot moves', async () => {
      const answers: Record<string, Answer> = {
        a: () => '1',
        b: () => null,
        c: () => {
          throw new Error('WRONGTYPE: Operation against a key')
        },
      }
      const client = clusterOf(([, name]) => answers[name!]!([]))
      const many = link(client)
      expect(await many.sendTogether!('abc', ['MGET', 'a', 'b', 'c'])).toEqual(['1', null, null])
      expect(client.customCommand.mock.calls).toEqual(['a', 'b', 'c'].map(name => [['GET', name], at('abc')]))
      for (const message of ['TRYAGAIN moving', 'it said WRONGTYPE']) {
        answers.b = () => {
          throw new Error(message)
        }
        expect(await failure(many.sendTogether!('abc', ['MGET', 'a', 'b', 'c']))).toMatchObject({ message })
      }
    })

    it('asks each master by its address', async () => {
      const client = clusterOf(([command]) =>
        command === 'CLUSTER'
          ? [
              { key: '127.0.0.1:7001', value: 'nodes' },
              { key: 'fd00::1:7002', value: 'nodes' },
            ]
          : command,
      )
      const masters = await link(client).masters()
      expect(client.customCommand.mock.calls).toEqual([[['CLUSTER', 'NODES'], { ...BYTES, route: 'allPrimaries' }]])
      expect(masters.map(({ name, isReady }) => [name, isReady])).toEqual([
        ['127.0.0.1:7001', true],
        ['fd00::1:7002', true],
      ])
      expect(await masters[1]!.send(GET)).toBe('GET')
      expect(client.customCommand).toHaveBeenLastCalledWith(GET, {
        ...BYTES,
        route: { type: 'routeByAddress', host: 'fd00::1', port: 7002 },
      })
    })

    it.each([
      ['a1 10.0.0.1:7001@17001 myself,master - 0 0 1 connected 0-16383\n', '10.0.0.1:7001'],
      ['a1 10.0.0.1:7001@17001,host myself,master - 0 0 1 connected 0-16383\n', '10.0.0.1:7001'],
      ['a1 10.0.0.1:7001,host master - 0 0\nb1 10.0.0.22:7002,host master,myself - 0 0\n', '10.0.0.22:7002'],
      ['a1 10.0.0.1:7001@17001 master - 0 0\n', ''],
    ])('finds the address of the only master in what it says of itself: %j', async (nodes, address) => {
      const masters = await link(clusterOf(() => Buffer.from(nodes))).masters()
      expect(masters.map(({ name }) => name)).toEqual([address])
    })
  })

  describe('opens a connection of its own', () => {
    /** What the server says of the connection, and of its process. */
    let id: number
    let process: string
    /** Fails the command of this name. */
    let fault: [command: string, error: Error] | null
    const opened: Glide[] = []
    class Glide {
      isClosed = false
      config: object
      customCommand = vi.fn(async (args: string[], options?: object): Promise<unknown> => {
        if (fault !== null && fault[0] === args[0]) throw fault[1]
        if (args[0] === 'CLIENT') return id
        if (args[0] === 'INFO') return `# Server\r\nuptime:${Math.random()}\r\nrun_id:${process}\r\nx:1\r\n`
        return [args, options]
      })
      constructor(config: object) {
        this.config = config
      }
      static async createClient(config: object) {
        opened.push(new Glide(config))
        return opened.at(-1)!
      }
      close() {
        this.isClosed = true
      }
    }
    const dedicate = async (config: object = {}) => {
      opened.length = 0
      return link(new Glide(config)).dedicate('abc')
    }
    const WAIT = ['WAIT', '1', '100']
    beforeEach(() => {
      ;[id, process, fault] = [7, 'a1', null]
    })

    it('like that of the client, but for what is published', async () => {
      const own = await dedicate({ addresses: ['h'], requestTimeout: 300, pubsubSubscriptions: {} })
      expect(opened.map(({ config }) => config)).toEqual([{ addresses: ['h'], requestTimeout: 300 }])
      expect(own.usable()).toBe(true)
      expect(await own.send(GET)).toEqual([GET, BYTES])
      own.close()
      expect(opened[0]!.isClosed).toBe(true)
      expect(own.usable()).toBe(false)
    })

    it('that is asked after a WAIT whether it is still the same', async () => {
      const own = await dedicate()
      const [{ customCommand }] = opened as [Glide]
      customCommand.mockClear()
      await own.send(GET)
      expect(customCommand.mock.calls.map(([[command]]) => command)).toEqual(['GET'])
      expect(await own.send(WAIT)).toEqual([WAIT, BYTES])
      expect(customCommand.mock.calls.map(([args]) => args.join(' ')).slice(1)).toEqual([
        'WAIT 1 100',
        'CLIENT ID',
        'INFO server',
      ])
      expect(own.usable()).toBe(true)
    })

    it.each<[string, () => void]>([
      [
        'another connection',
        () => {
          id = 8
        },
      ],
      [
        'another process',
        () => {
          process = 'a2'
        },
      ],
    ])('of which no WAIT counts that was answered on %s', async (_, change) => {
      const own = await dedicate()
      change()
      expect(await own.send(GET)).toEqual([GET, BYTES])
      expect(own.usable()).toBe(true)
      expect(await failure(own.send(WAIT))).toEqual(new Error('the client connected anew before replicas acknowledged'))
      expect(own.usable()).toBe(false)
    })

    it('that is of no use after silence, and of use after a refusal', async () => {
      const own = await dedicate()
      fault = ['WAIT', named('RequestError', 'ERR: no')]
      expect(await failure(own.send(WAIT))).toMatchObject({ message: 'ERR no' })
      expect(own.usable()).toBe(true)
      const silence = named('TimeoutError')
      fault = ['WAIT', silence]
      expect(await failure(own.send(WAIT))).toBe(silence)
      expect(own.usable()).toBe(false)
    })

    it('of which no WAIT counts where nobody says whether it is the same', async () => {
      const own = await dedicate()
      const silence = named('ConnectionError')
      fault = ['CLIENT', silence]
      expect(await failure(own.send(WAIT))).toBe(silence)
      expect(own.usable()).toBe(false)
    })
  })

  it('has to come itself, or in a wrapper that tells whether it is closed', () => {
    expect(() => new RedisStore({ customCommand: async () => null })).toThrow(
      '{ customCommand: (...args) => client.customCommand(...args), get isClosed() { return client.isClosed } }',
    )
  })
})
