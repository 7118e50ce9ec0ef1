// A walk over a cluster of two masters: two servers, of which the test says which slots they have.
import type { ScanPage, SessionRecord } from 'coatcheck/custom-store'
import { type RedisClient, RedisStore } from 'coatcheck/stores/redis'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { quote } from '../../../src/text/quote.ts'
import { shardIn } from '../../../stores/redis/keys.ts'
import { SCAN } from '../../../stores/redis/scripts.ts'
import { describeEngine } from '../../services/engines.ts'
import { type RedisServer, startRedis } from '../../services/redis.ts'
import { HOUR, keyIn, recordOf, T0 } from '../../support/redis/records.ts'
import { runs } from '../../support/redis/tapped.ts'

const nameOf = (key: string) => `coatcheck:{${key.slice(0, 3)}}:${key.slice(3)}`
const call = (ms = 1000) => ({ now: T0, deadline: performance.now() + ms })
const keysOf = (records: readonly { key: string }[]) => records.map(({ key }) => key).sort()

/** One of the masters: the server behind it, and what it says of itself. */
interface Node {
  readonly name: string
  client: Redis
  status: string
  flags: string
  epoch: number
  /** Its slots, and those that are on their way. */
  slots: string
  /** Answers instead of the server, where that is not undefined. */
  answer: (command: string[], sent: () => Promise<unknown>) => unknown
  sent: string[][]
}

describeEngine('redis', 'a walk over a cluster', () => {
  let servers: RedisServer[]
  let clients: Redis[]
  let nodes: [Node, Node]
  /** What was sent by the shard, and how that is refused. */
  let looks: string[]
  let refusal: string | null
  /** The status of the client of the whole cluster. */
  let status: string
  let store: RedisStore
  beforeAll(async () => {
    servers = await Promise.all([startRedis(), startRedis()])
    clients = servers.map(({ url }) => new Redis(url))
  })
  afterAll(async () => {
    for (const client of clients) client.disconnect()
    await Promise.all(servers.map(server => server.stop()))
  })

  const nodeOf = (i: number, slots: string): Node => ({
    name: `h:${i}`,
    client: clients[i]!,
    status: 'ready',
    flags: 'myself,master',
    epoch: i + 1,
    slots,
    answer: () => undefined,
    sent: [],
  })
  const nodesText = (node: Node) =>
    [
      `b1 h:8@1 slave 0 0 0 9 connected`,
      `a${node.name} ${node.name}@1 ${node.flags} - 0 0 ${node.epoch} connected ${node.slots}`,
      `c1 h:9@1 master - 0 0 9 connected 0-16383`,
      '',
    ].join('\n')
  const inner = (node: Node) => ({
    options: { host: 'h', port: node.name.slice(2) },
    get status() {
      return node.status
    },
    async call(command: string, args: string[]) {
      node.sent.push([command, ...args])
      const answer = await node.answer([command, ...args], () => node.client.call(command, args))
      if (answer !== undefined) return answer
      return command === 'CLUSTER' && args[0] === 'NODES' ? nodesText(node) : node.client.call(command, args)
    },
  })
  const openStore = (prefix = 'coatcheck:') => {
    const client = {
      get status() {
        return status
      },
      isCluster: true,
      slots: [],
      nodes: () => nodes.map(inner),
      async call(command: string, args: string[]) {
        looks.push([command, ...args].join(' '))
        if (refusal !== null) throw new Error(refusal)
        return null
      },
    }
    return new RedisStore(client as unknown as RedisClient, { allowEviction: true, prefix })
  }
  /** The clock of the store, in ms: it goes on in pauses alone. */
  let clock: number
  let pauses: number[]
  beforeEach(async () => {
    await Promise.all(clients.map(client => client.flushall()))
    clock = 0
    pauses = []
    vi.spyOn(performance, 'now').mockImplementation(() => clock)
    vi.stubGlobal('setTimeout', (done: () => void, ms: number) => {
      clock += ms
      pauses.push(ms)
      setImmediate(done)
    })
    nodes = [nodeOf(0, '0-8191'), nodeOf(1, '8192-16383')]
    looks = []
    refusal = null
    status = 'ready'
    store = openStore()
  })
  afterEach(() => {
    vi.restoreAllMocks()
    vi.unstubAllGlobals()
  })
  /** Sessions on one of the servers, in a slot. */
  const make = async (i: number, slot: number, count: number): Promise<SessionRecord[]> => {
    const records = Array.from({ length: count }, () => recordOf(store, null, { key: keyIn(shardIn(slot)) }))
    const here = new RedisStore(clients[i]!, { allowEviction: true })
    await Promise.all(records.map(record => here.create(record, {}, call())))
    return records
  }
  const walk = async (limit = 1000, from: string | null = null, other = () => store) => {
    const pages: ScanPage[] = []
    let cursor = from
    do {
      const page = await other().scan(cursor, limit, call())
      pages.push(page)
      if (pages.length > 100) throw new Error('it never ends')
      cursor = page.next
    } while (cursor !== null)
    return pages
  }
  const met = (pages: readonly ScanPage[]) => keysOf(pages.flatMap(({ records }) => records))
  const scans = (node: Node) => node.sent.filter(command => runs(SCAN, command)).length
  const failure = (ms: number, from: string | null = null) =>
    store.scan(from, 1000, call(ms)).then(
      page => page,
      error => error.cause.message as string,
    )

  it('meets what each master has, in one page where that is enough', async () => {
    const records = [...(await make(0, 5, 3)), ...(await make(1, 9000, 3))]
    const pages = await walk()
    expect(pages).toHaveLength(1)
    expect(met(pages)).toEqual(keysOf(records))
  })

  it('begins with the master that has most, and its cursor tells what is left', async () => {
    await make(0, 5, 40)
    nodes[0].slots = '0-99'
    nodes[1].slots = '100-16383'
    await make(1, 9000, 40)
    const page = await store.scan(null, 10, call())
    expect(page.records.length).toBeGreaterThan(0)
    expect(page.next).toMatch(/^c 0-16383 100-16383 2 [0-9a-f]{40} [1-9][0-9]*$/)
    expect([scans(nodes[0]), scans(nodes[1]) > 0]).toEqual([0, true])
    // No part is under way where one has just ended.
    nodes[1].client = clients[0]!
    const all = await store.scan(null, 40, call())
    expect(all.next).toMatch(/^c 0-99$|^c 0-16383 /)
  })

  it('goes on from a cursor in another process, with the master whose keys it was about', async () => {
    const records = [...(await make(0, 5, 50)), ...(await make(1, 9000, 50))]
    const pages = await walk(10, null, () => openStore())
    expect(pages.length).toBeGreaterThan(5)
    expect(met(pages)).toEqual(keysOf(records))
    const info = (node: Node) => node.sent.filter(([command]) => command === 'INFO').length
    expect(info(nodes[0])).toBeGreaterThan(0)
    nodes[0].sent = []
    nodes[1].sent = []
    // The same process remembers which one that is.
    expect(met(await walk(10))).toEqual(keysOf(records))
    expect([info(nodes[0]), info(nodes[1])]).toEqual([0, 0])
  })

  it('begins a part again where its server is another process by now', async () => {
    const records = await make(0, 5, 30)
    nodes[0].slots = '0-16383'
    nodes[1].slots = ''
    const { next } = await store.scan(null, 10, call())
    const pages = await walk(1000, next!.replace(/[0-9a-f]{40}/, 'f'.repeat(40)))
    expect(met(pages)).toEqual(keysOf(records))
    // The process has ended, and its master is another one.
    nodes[0].client = clients[1]!
    expect(met(await walk(1000, next))).toEqual([])
  })

  it('meets what is prepared and what was replaced as keys, and nothing of what is over or damaged', async () => {
    const [live, expired, damaged, prepared, replaced, over] = await make(0, 5, 6)
    const set = (record: SessionRecord, value: string) => clients[0]!.set(nameOf(record.key), value)
    await set(expired!, (await clients[0]!.get(nameOf(expired!.key)))!.replace(' 30m ', ' 0 '))
    await set(damaged!, 'gibberish')
    await set(prepared!, 'p attempt s 1')
    const forward = (until: number) => `f ${live!.key} ${T0} ${until} `
    await set(replaced!, forward(T0 + 1))
    await set(over!, forward(T0))
    const [marked] = await make(0, 5, 1)
    await set(marked!, 'x attempt')
    const page = await store.scan(null, 1000, call())
    expect(page).toEqual({ records: [live], forwards: expect.any(Array), next: null })
    expect([...page.forwards].sort()).toEqual([prepared!.key, replaced!.key].sort())
  })

  it('does not count what it meets twice as room', async () => {
    await make(0, 5, 25)
    for (const { key } of await make(0, 5, 25)) await clients[0]!.set(nameOf(key), `f ${key} ${T0} ${T0 + HOUR} `)
    const page = await store.scan(null, 20, call())
    expect(page.next).not.toBe(null)
    expect(page.records.length + page.forwards.length).toBeGreaterThanOrEqual(20)
    const [counts] = [
      nodes.flatMap(node => node.sent.filter(command => runs(SCAN, command)).map(command => command.at(-1))),
    ]
    // As many as the page has room for, and ten at least.
    expect(counts[0]).toBe('20')
    expect(counts.every(count => Number(count) >= 10 && Number(count) <= 20)).toBe(true)
    const large = openStore()
    nodes[0].sent = []
    await large.scan(null, 10_000, call())
    expect(nodes[0].sent.find(command => runs(SCAN, command))!.at(-1)).toBe('500')
  })

  describe('while slots move', () => {
    it('leaves those that are on their way for later, and says which, where there is no time', async () => {
      const records = [...(await make(0, 5, 3)), ...(await make(0, 6, 3))]
      nodes[0].slots = '0-8191 [5->-b1]'
      const page = (await failure(400)) as ScanPage
      expect(page.next).toBe('c 5')
      expect(await failure(300, 'c 5')).toBe('the slots 5 are moving between masters, or their master is away')
      nodes[0].slots = '0-8191 [5-<-b1]'
      const rest = await store.scan('c 5', 1000, call())
      // SCAN has no slots: the others are met again.
      expect(rest.next).toBe(null)
      expect(keysOf(rest.records)).toEqual(keysOf(records))
      // An owner is there: nobody has to look for one.
      expect(looks).toEqual([])
    })

    it.each([
      [100, '0-99 101-8191'],
      [0, '1-8191'],
    ])('looks for the master of a slot that none of them has: %i', async (slot, slots) => {
      nodes[0].slots = slots
      const page = (await failure(400)) as ScanPage
      expect(page.next).toBe(`c ${slot}`)
      expect(new Set(looks)).toEqual(new Set([`GET ${nameOf(shardIn(slot))}`]))
    })

    it('looks for the master of what is left alone, although nobody knows that of what is done', async () => {
      nodes[0].slots = '0-4 6-99 101-8191'
      expect(await failure(200, 'c 100')).toBe('the slots 100 are moving between masters, or their master is away')
      expect(new Set(looks)).toEqual(new Set([`GET ${nameOf(shardIn(100))}`]))
    })

    it('looks for no master while the client has no connection, and goes on where looking is refused', async () => {
      nodes[0].slots = '1-8191'
      const LEFT = 'the slots 0 are moving between masters, or their master is away'
      refusal = 'NOPERM no right to get'
      expect(await failure(200, 'c 0')).toBe(LEFT)
      expect(looks.length).toBeGreaterThan(0)
      looks = []
      status = 'reconnecting'
      expect(await failure(200, 'c 0')).toBe(LEFT)
      expect(looks).toEqual([])
    })

    it('believes a master whose epoch is 0', async () => {
      const [record] = await make(1, 9000, 1)
      nodes[1].epoch = 0
      expect(met(await walk())).toEqual([record!.key])
    })

    it('believes the one with the higher epoch where two claim a slot', async () => {
      for (const [first, second] of [
        [1, 2],
        [2, 1],
      ] as const) {
        nodes[0].slots = nodes[1].slots = '0-16383'
        ;[nodes[0].epoch, nodes[1].epoch] = [first, second]
        nodes[0].sent = []
        nodes[1].sent = []
        expect((await store.scan(null, 1000, call())).next).toBe(null)
        expect(nodes.map(scans)).toEqual(first > second ? [1, 0] : [0, 1])
      }
    })

    it.each<[string, string | null, (node: Node, other: Node) => void]>([
      [
        'its epoch rose: a slot had left and come back',
        null,
        node => {
          node.epoch++
        },
      ],
      [
        'they have gone',
        null,
        (node, other) => {
          const { slots } = node
          node.slots = other.slots
          other.slots = slots
        },
      ],
      [
        'some are on their way',
        'c 5,4711',
        node => {
          node.slots += ' [5->-b1] [4711->-b1]'
        },
      ],
      [
        'one has gone to a master that nobody knows',
        'c 5',
        node => {
          node.slots = '0-4 6-8191'
        },
      ],
    ])('walks again over the slots of a master where %s', async (_, next, move) => {
      const [record] = await make(0, 5, 1)
      let isFirst = true
      nodes[0].answer = async (command, sent) => {
        if (!runs(SCAN, command) || !isFirst) return undefined
        isFirst = false
        // SCAN is asked whole by a server that does not know it yet.
        const answer = await sent().catch(() => nodes[0].client.call('EVAL', [SCAN.source, ...command.slice(2)]))
        move(nodes[0], nodes[1])
        return answer
      }
      const page = (await failure(1500)) as ScanPage
      expect(page.next).toBe(next)
      if (next === null) {
        expect(page.records).toContainEqual(record)
        expect(nodes.map(scans)[0]).toBeGreaterThan(1)
      }
    })

    it('asks nothing of a master without slots', async () => {
      const [record] = await make(0, 5, 1)
      nodes[0].slots = '0-16383'
      nodes[1].slots = ''
      expect(met(await walk())).toEqual([record!.key])
      expect(nodes.map(scans)).toEqual([1, 0])
    })

    it('begins the part again of which no slot is left', async () => {
      const [record, away] = (await make(0, 5, 2)) as [SessionRecord, SessionRecord]
      nodes[0].slots = '5'
      nodes[1].slots = ''
      const value = await clients[0]!.get(nameOf(record.key))
      const found = [record.key, value]
      nodes[0].answer = command =>
        runs(SCAN, command) ? ['page', '0', 'a1', '7', found, [away.key], 'non local key'] : undefined
      const page = await store.scan('c 5', 1, call())
      expect(page).toEqual({ records: [record], forwards: [], next: 'c 5' })
      nodes[0].answer = () => undefined
      expect(met(await walk(1000, page.next))).toEqual(keysOf([record, away]))
    })

    it('leaves the slot of a key that could not be read there for later', async () => {
      const [record] = await make(0, 5, 1)
      let isAway = true
      nodes[0].answer = async (command, sent) => {
        if (!runs(SCAN, command) || !isAway) return undefined
        const answer = (await sent()) as unknown[]
        return [...answer.slice(0, 4), [], [record!.key], 'ERR Script attempted to access a non local key']
      }
      await store.scan(null, 1000, call()).catch(() => {})
      const page = (await failure(400)) as ScanPage
      expect(page.next).toBe('c 5')
      isAway = false
      expect((await store.scan('c 5', 1000, call())).records).toEqual([record])
    })

    it.each<[string, string, boolean]>([
      ['-CLUSTERDOWN the cluster is down', '-CLUSTERDOWN the cluster is down', true],
      ['NOPERM no permission', 'ERR NOPERM no permission', false],
    ])('does not pass over a key that cannot be read for another reason: %s', async (reason, message, isAwaited) => {
      const [record] = await make(0, 5, 1)
      nodes[1].slots = ''
      nodes[0].slots = '0-16383'
      let tries = 0
      nodes[0].answer = async (command, sent) => {
        if (!runs(SCAN, command)) return undefined
        tries++
        const answer = (await sent()) as unknown[]
        return [...answer.slice(0, 4), [], [record!.key], reason]
      }
      expect(await failure(400)).toBe(message)
      expect(tries > 1).toBe(isAwaited)
    })
  })

  describe('while masters are away', () => {
    it('goes on with the others, and answers what is left when its time is over', async () => {
      const records = await make(0, 5, 3)
      nodes[1].status = 'reconnecting'
      const page = (await failure(400)) as ScanPage
      expect(keysOf(page.records)).toEqual(keysOf(records))
      expect(page.next).toBe('c 8192-16383')
      expect(nodes[1].sent).toEqual([])
    })

    it('waits for one that is loading its data', async () => {
      const [record] = await make(0, 5, 1)
      let refusals = 1
      nodes[0].answer = command => {
        if (runs(SCAN, command) && refusals-- > 0) throw new Error('LOADING Redis is loading the dataset in memory')
      }
      expect(met([(await failure(1000)) as ScanPage])).toEqual([record!.key])
    })

    it('asks soon again at first, and five times a second at most', async () => {
      nodes[1].status = 'end'
      // It has come further after the first of the masters, and does not wait then.
      // Of 1,410 ms it keeps 100 for its caller, and a pause that would end with the others is not worth it.
      await failure(1410)
      expect(pauses).toEqual([10, 20, 40, 80, 160, 200, 200, 200, 200])
    })

    it('says what kept it from its first step where there is no time for a second one', async () => {
      await make(0, 5, 40)
      nodes[0].slots = '0-16383'
      nodes[1].slots = ''
      const { next } = await store.scan(null, 10, call())
      nodes[0].client = clients[1]!
      expect(await failure(12, next)).toBe('another process has taken the place of a master')
      nodes[0].status = 'reconnecting'
      expect(await failure(12, next)).toBe('a master whose keys were being walked is away')
      nodes[0].status = 'ready'
      nodes[0].answer = command => {
        if (runs(SCAN, command)) nodes[0].epoch++
      }
      expect(await failure(12)).toBe('the slots of a master moved while its keys were walked')
    })

    it('ends with an error where it comes no further', async () => {
      for (const node of nodes) node.status = 'end'
      expect(await failure(200)).toBe('the slots 0-16383 are moving between masters, or their master is away')
      for (const node of nodes) Object.assign(node, { status: 'ready', flags: 'myself,slave' })
      expect(await failure(200)).toMatch(/^the slots 0-16383 /)
    })

    it.each<[string, boolean]>([
      ['read ECONNRESET', true],
      ['LOADING the data', true],
      ['NOPERM no right to it', false],
      ["ERR unknown command 'CLUSTER'", false],
    ])('takes one for away that answers %s to a question about its slots: %s', async (message, isAway) => {
      nodes[1].answer = ([command]) => {
        if (command === 'CLUSTER') throw new Error(message)
      }
      const page = await failure(300)
      if (isAway) expect(page).toMatchObject({ next: 'c 8192-16383' })
      else expect(page).toBe(message)
    })

    it('begins the part again whose master is away', async () => {
      await make(0, 5, 40)
      nodes[0].slots = '0-16383'
      nodes[1].slots = ''
      const { next } = await store.scan(null, 10, call())
      nodes[0].status = 'reconnecting'
      expect(await failure(200, next)).toMatch(/ are moving between masters, or their master is away$/)
      nodes[0].status = 'ready'
      // Another process, to which the one that is asked does not answer.
      store = openStore()
      nodes[0].answer = ([command]) => {
        if (command === 'INFO') throw new Error('read ECONNRESET')
      }
      const page = await store.scan(next, 1000, call())
      expect(page.records).toHaveLength(40)
      expect(page.next).toBe(null)
    })
  })

  it('says at once what Redis refuses', async () => {
    for (const node of nodes)
      node.answer = command => {
        if (runs(SCAN, command)) throw new Error('NOPERM no right to evalsha')
      }
    expect(await failure(5000)).toBe('NOPERM no right to evalsha')
    expect(scans(nodes[0]) + scans(nodes[1])).toBe(1)
  })

  it('answers what it has when half of its time is over', async () => {
    // Marks of sessions that have ended fill no page.
    const marks = Array.from({ length: 300 }, () => [nameOf(keyIn(shardIn(5))), 'x attempt'])
    await clients[0]!.mset(marks.flat())
    nodes[0].slots = '0-16383'
    nodes[1].slots = ''
    nodes[0].answer = command => {
      if (runs(SCAN, command)) clock += 100
    }
    const pieces = async (ms: number) => {
      nodes[0].sent = []
      await store.scan(null, 100, call(ms))
      return scans(nodes[0])
    }
    expect(await pieces(100_000)).toBeGreaterThan(1)
    expect(await pieces(200)).toBe(1)
    expect(await pieces(202)).toBe(2)
  })

  it('sends its script whole where a server does not know it', async () => {
    await Promise.all(clients.map(client => client.script('FLUSH')))
    const [record] = await make(0, 5, 1)
    expect((await store.scan(null, 1000, call())).records).toEqual([record])
    expect(nodes[0].sent.map(([command]) => command)).toContain('EVAL')
  })

  it('takes nothing else than a list for an answer', async () => {
    nodes[0].answer = nodes[1].answer = command => (runs(SCAN, command) ? 'OK' : undefined)
    expect(await failure(200)).toBe('the answer of a script was not understood')
  })

  describe('of one server', () => {
    const only = () => new RedisStore(inner(nodes[0]) as unknown as RedisClient, { allowEviction: true })
    beforeEach(() => {
      store = only()
    })
    const sent = () => nodes[0].sent.filter(command => runs(SCAN, command))

    it('goes on in another process from a cursor that names the process of the server', async () => {
      const records = await make(0, 5, 50)
      const pages = await walk(10, null, only)
      expect(pages.length).toBeGreaterThan(4)
      expect(met(pages)).toEqual(keysOf(records))
      for (const { next } of pages.slice(0, -1)) expect(next).toMatch(/^s [0-9a-f]{40} [1-9][0-9]*$/)
      // Each page asks about what that before it has answered.
      const [, server, cursor] = pages[0]!.next!.split(' ')
      nodes[0].sent = []
      await store.scan(pages[0]!.next, 10, call())
      expect(sent()[0]!.slice(5, 7)).toEqual([server, cursor])
    })

    it('fills a page with several commands', async () => {
      const records = await make(0, 5, 20)
      // Marks of sessions that have ended fill no page.
      await clients[0]!.mset(Array.from({ length: 300 }, () => [nameOf(keyIn(shardIn(5))), 'x attempt']).flat())
      const page = await store.scan(null, 50, call())
      expect(page).toMatchObject({ forwards: [], next: null })
      expect(keysOf(page.records)).toEqual(keysOf(records))
      expect(sent().length).toBeGreaterThan(2)
      expect(sent()[0]!.slice(5, 7)).toEqual(['', '0'])
    })

    it('asks for as many as the page has room for', async () => {
      const records = await make(0, 5, 15)
      const values = await clients[0]!.mget(records.map(({ key }) => nameOf(key)))
      const forwards = records.map(() => keyIn('abc'))
      const found = [
        ...records.flatMap(({ key }, i) => [key, values[i]]),
        ...forwards.flatMap(key => [key, `f ${key} ${T0} ${T0 + HOUR} `]),
      ]
      nodes[0].answer = command => {
        if (!runs(SCAN, command)) return undefined
        return sent().length === 1 ? ['page', '0', 'a1', '7', found, [], ''] : ['page', '0', 'a1', '0', [], [], '']
      }
      expect(await store.scan(null, 100, call())).toEqual({ records, forwards, next: null })
      expect(sent().map(command => command.at(-1))).toEqual(['100', '70'])
    })

    it('ends a page as soon as it is full', async () => {
      const records = await make(0, 5, 2)
      const values = await clients[0]!.mget(records.map(({ key }) => nameOf(key)))
      const found = records.flatMap(({ key }, i) => [key, values[i]])
      nodes[0].answer = command => (runs(SCAN, command) ? ['page', '0', 'a1', '7', found, [], ''] : undefined)
      expect(await store.scan(null, 2, call())).toEqual({ records, forwards: [], next: 's a1 7' })
      expect(sent()).toHaveLength(1)
    })

    it('begins again where the server is another process by now', async () => {
      const records = await make(0, 5, 30)
      const { next } = await store.scan(null, 10, call())
      const other = next!.replace(/[0-9a-f]{40}/, 'f'.repeat(40))
      expect(met(await walk(1000, other))).toEqual(keysOf(records))
      // There was no time for more than finding that out.
      nodes[0].answer = command => {
        if (runs(SCAN, command)) clock += 200
      }
      const page = await store.scan(other, 10, call(300))
      expect(page).toEqual({ records: [], forwards: [], next: 's - 0' })
      nodes[0].answer = () => undefined
      expect(met(await walk(1000, 's - 0'))).toEqual(keysOf(records))
    })

    it('does not pass over a key that cannot be read', async () => {
      const [record] = await make(0, 5, 1)
      nodes[0].answer = async (command, send) => {
        if (!runs(SCAN, command)) return undefined
        const answer = (await send()) as unknown[]
        return [...answer.slice(0, 4), [], [record!.key], 'NOPERM no right to it']
      }
      await store.scan(null, 10, call()).catch(() => {})
      expect(await failure(300)).toBe('NOPERM no right to it')
    })
  })

  describe('goes on from no cursor', () => {
    it.each([
      '',
      'x',
      'c',
      'c ',
      'c 5-3',
      'c 0-16384',
      'c 16384',
      'c 1,',
      'c 1,99999',
      'c 1 2',
      'c 1 2 3 a',
      'c 1 2-1 3 a 5',
      'c 1 2 3 a b',
      'c 1 2 3 ! 5',
      'c 1 2 3 a 5 ',
      ' c 1',
      's a 1',
    ])('that it did not answer: %j', async cursor => {
      const message = `cursor: expected null, or what the page before of a Redis Cluster answered as next, got ${quote(cursor)}`
      await expect((async () => store.scan(cursor, 10, call()))()).rejects.toEqual(new TypeError(message))
    })

    it.each(['c 0', 'c 16383', 'c 0-16383', 'c 1,3-5', 'c 7-7'])('but from %j', async cursor => {
      expect((await store.scan(cursor, 10, call())).next).toBe(null)
    })
  })
})

describe('a cursor of a walk over one server', () => {
  const client = { status: 'ready', call: async () => null } as unknown as RedisClient
  it.each([
    '',
    's',
    's a',
    's a -1',
    's a 1 ',
    ' s a 1',
    'c 0-16383',
    `s ${'a'.repeat(65)} 1`,
    `s a ${'9'.repeat(21)}`,
  ])('is none that it did not answer: %j', async cursor => {
    const store = new RedisStore(client)
    const message = `cursor: expected null, or what the page before of a Redis that is no cluster answered as next, got ${quote(cursor)}`
    await expect((async () => store.scan(cursor, 10, call()))()).rejects.toEqual(new TypeError(message))
  })
})
