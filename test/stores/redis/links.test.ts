// What the store asks of each shape of client. The clients here are as small as they may be: a version of one without
// what is not asked for still works.
import { type RedisClient, RedisStore } from 'coatcheck/stores/redis'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { linkTo } from '../../../stores/redis/client.ts'
import { SLOTS, slotOf } from '../../../stores/redis/keys.ts'
import { NotReady } from '../../../stores/redis/link.ts'

const AWAY = 'the Redis client is not connected to its server'
const link = (client: object) => linkTo(client as RedisClient)
/** Answers what it was sent. */
const echo = async (command: string, args: string[]) => [command, ...args]
const GET = ['GET', 'k']

describe('a link over a client of ioredis', () => {
  const OWN = {
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    retryStrategy: null,
    enableAutoPipelining: false,
  }
  /** A connection that a client opens for the store. */
  const connection = () => ({
    status: 'wait',
    call: echo,
    on: vi.fn(),
    async connect() {
      this.status = 'ready'
    },
    disconnect() {
      this.status = 'end'
    },
  })

  it('sends to its one server, and knows by its status whether it can', async () => {
    const client = { status: 'ready', call: echo, options: { keyPrefix: 'p:' } }
    const one = link(client)
    expect(one).toMatchObject({ cluster: false, keyPrefix: 'p:' })
    expect(one.cannotWait).toBe(undefined)
    expect(one.notReadyReason('abc')).toBe(null)
    expect(await one.send('abc', GET)).toEqual(GET)
    const [master, ...others] = await one.masters()
    expect(others).toEqual([])
    expect(master).toMatchObject({ name: '', isReady: true })
    expect([one.master('abc'), one.master('xyz')]).toEqual(['', ''])
    expect(await master!.send(GET)).toEqual(GET)
    client.status = 'reconnecting'
    expect(one.notReadyReason('abc')).toBe(`${AWAY} (status 'reconnecting')`)
    expect(await one.masters()).toMatchObject([{ isReady: false }])
    expect(link({ status: 'ready', call: echo }).keyPrefix).toBe('')
    expect(link({ status: 'ready', call: echo, options: {} }).keyPrefix).toBe('')
  })

  it.each(['wait', 'end'])('is none with the status %s, and may be connecting', status => {
    expect(() => link({ status, call: echo })).toThrow(
      new TypeError(`the ioredis client is not connected (status '${status}'): call connect() first`),
    )
    expect(link({ status: 'connecting', call: echo }).notReadyReason('abc')).toContain('connecting')
  })

  it('counts how often its connections break, once for all stores that share it', () => {
    const listeners: [string, () => void][] = []
    const client = {
      status: 'ready',
      call: echo,
      on: (event: string, listener: () => void) => listeners.push([event, listener]),
    }
    const stores = [link(client), link(client)]
    expect(stores.map(each => each.breaks!())).toEqual([0, 0])
    expect(listeners.map(([event]) => event)).toEqual(['close', '-node'])
    for (const [, broke] of listeners) broke()
    expect(stores.map(each => each.breaks!())).toEqual([2, 2])
    expect(link({ status: 'ready', call: echo }).breaks!()).toBe(0)
  })

  it('opens a connection of its own that queues nothing, sends nothing again and does not come back', async () => {
    const opened = connection()
    const duplicate = vi.fn(() => opened)
    const own = await link({ status: 'ready', call: echo, duplicate }).dedicate('abc')
    expect(duplicate).toHaveBeenCalledWith(OWN)
    expect(opened.on).toHaveBeenCalledWith('error', expect.any(Function))
    expect(own.usable()).toBe(true)
    expect(await own.send(GET)).toEqual(GET)
    own.close()
    expect(opened.status).toBe('end')
    expect(own.usable()).toBe(false)
  })

  it('opens one without what it can do without', async () => {
    const opened = { status: 'ready', call: echo }
    const own = await link({ status: 'ready', call: echo, duplicate: () => opened }).dedicate('abc')
    expect(await own.send(GET)).toEqual(GET)
    expect(own.usable()).toBe(true)
    expect(() => own.close()).not.toThrow()
  })

  describe('of a cluster', () => {
    const nodeOf = (port: number, more: object = {}) => ({
      status: 'ready',
      options: { host: 'h', port } as object,
      call: async (command: string, args: string[]) => [port, command, ...args],
      ...more,
    })
    const clusterOf = (nodes: object[], more: object = {}) => {
      const slots = new Array(SLOTS).fill(['h:1', 'h:9'])
      slots[slotOf('xyz')] = ['h:2']
      return { status: 'ready', isCluster: true, call: echo, slots, nodes: vi.fn(() => nodes), ...more }
    }

    it('asks all masters, also one that connects at its first command', async () => {
      const client = clusterOf([nodeOf(1), nodeOf(2, { status: 'wait' }), nodeOf(3, { status: 'end' })])
      const many = link(client)
      expect(many).toMatchObject({ cluster: true, keyPrefix: '' })
      const masters = await many.masters()
      expect(client.nodes).toHaveBeenCalledWith('master')
      expect(masters.map(({ name, isReady }) => [name, isReady])).toEqual([
        ['h:1', true],
        ['h:2', true],
        ['h:3', false],
      ])
      expect(await masters[1]!.send(GET)).toEqual([2, ...GET])
      expect(await many.send('xyz', GET)).toEqual(GET)
      expect([many.master('abc'), many.master('xyz')]).toEqual(['h:1', 'h:2'])
      expect(many.breaks!()).toBe(0)
      expect(many.notReadyReason('abc')).toBe(null)
      client.status = 'reconnecting'
      expect(many.notReadyReason('abc')).toBe(`${AWAY} (status 'reconnecting')`)
    })

    it('sends what concerns several keys to the node that has them, if that is ready and has the same prefix', async () => {
      const MGET = ['MGET', 'k', 'l']
      const sent = (nodes: object[], more: object = {}) => link(clusterOf(nodes, more)).sendTogether!('xyz', MGET)
      expect(await sent([nodeOf(1), nodeOf(2)])).toEqual([2, ...MGET])
      expect(await sent([nodeOf(1)])).toEqual(MGET)
      expect(await sent([nodeOf(2, { status: 'wait' })])).toEqual(MGET)
      const options = { keyPrefix: 'p:' }
      expect(await sent([nodeOf(2)], { options })).toEqual(MGET)
      expect(await sent([nodeOf(2, { options: { host: 'h', port: 2, ...options } })], { options })).toEqual([
        2,
        ...MGET,
      ])
      expect(await sent([nodeOf(2)], { slots: [] })).toEqual(MGET)
      expect(await sent([nodeOf(2)], { slots: undefined })).toEqual(MGET)
      const client = clusterOf([nodeOf(2)])
      await link(client).sendTogether!('xyz', MGET)
      expect(client.nodes.mock.calls).toEqual([['master']])
    })

    it('takes no node that does not tell its address for the master of a shard', async () => {
      const nodes = [nodeOf(1, { options: undefined }), nodeOf(2)]
      const many = link(clusterOf(nodes))
      expect(await many.sendTogether!('xyz', GET)).toEqual([2, ...GET])
      expect((await many.masters()).map(({ name }) => name)).toContain('h:2')
      expect(link(clusterOf(nodes, { slots: [] })).master('xyz')).toBe('')
    })

    it('opens a connection of its own to the master of a shard', async () => {
      const duplicate = vi.fn(connection)
      const own = await link(clusterOf([nodeOf(1), nodeOf(2, { duplicate })])).dedicate('xyz')
      expect(duplicate).toHaveBeenCalledWith({ ...OWN, readOnly: false, keyPrefix: '' })
      expect(own.usable()).toBe(true)
      await expect(link(clusterOf([nodeOf(1)])).dedicate('xyz')).rejects.toThrow(
        /^no connection to the master h:2 of this shard$/,
      )
      await expect(link(clusterOf([nodeOf(1)], { slots: [] })).dedicate('xyz')).rejects.toThrow(/^no connection/)
    })
  })
})

describe('a link over a client of node-redis', () => {
  const send = async (args: string[]) => args
  /** A client with a connection, and those that it opens for the store. */
  const clientOf = (more: object = {}) => {
    const opened: Record<string, any>[] = []
    const duplicate = vi.fn(() => {
      const own = {
        isOpen: false,
        isReady: false,
        on: vi.fn(),
        sendCommand: async (args: string[]) => ['own', ...args],
        connect: async () => Object.assign(own, { isOpen: true, isReady: true }),
        destroy: vi.fn(() => Object.assign(own, { isOpen: false, isReady: false })),
      }
      opened.push(own)
      return own
    })
    return {
      isOpen: true,
      isReady: true,
      sendCommand: send as (...args: any[]) => Promise<unknown>,
      duplicate,
      opened,
      ...more,
    }
  }
  const OWN = (socket: object = {}) => ({ disableOfflineQueue: true, socket: { ...socket, reconnectStrategy: false } })

  it('sends to its one server, and knows by isReady whether it can', async () => {
    const client = clientOf()
    const one = link(client)
    expect(one).toMatchObject({ cluster: false, keyPrefix: '' })
    expect(one.breaks).toBe(undefined)
    expect(one.notReadyReason('abc')).toBe(null)
    expect(await one.send('abc', GET)).toEqual(GET)
    const [master, ...others] = await one.masters()
    expect(others).toEqual([])
    expect(master).toMatchObject({ name: '', isReady: true })
    expect([one.master('abc'), one.master('xyz')]).toEqual(['', ''])
    expect(await master!.send(GET)).toEqual(GET)
    client.isReady = false
    expect(one.notReadyReason('abc')).toBe(AWAY)
    expect(await one.masters()).toMatchObject([{ isReady: false }])
  })

  it('is none before connect()', () => {
    const message = 'the node-redis client is not connected: await its connect() first'
    expect(() => link(clientOf({ isOpen: false }))).toThrow(new TypeError(message))
    expect(link(clientOf({ isReady: false })).notReadyReason('abc')).toBe(AWAY)
  })

  it('opens a connection of its own that queues nothing and does not come back', async () => {
    const client = clientOf({ options: { socket: { host: 'h', port: 7 } } })
    const own = await link(client).dedicate('abc')
    expect(client.duplicate).toHaveBeenCalledWith(OWN({ host: 'h', port: 7 }))
    const [opened] = client.opened
    expect(opened!.on).toHaveBeenCalledWith('error', expect.any(Function))
    expect(await own.send(GET)).toEqual(['own', ...GET])
    expect(own.usable()).toBe(true)
    opened!.isReady = false
    expect(own.usable()).toBe(false)
    own.close()
    own.close()
    expect(opened!.destroy).toHaveBeenCalledTimes(1)
    const plain = clientOf()
    await link(plain).dedicate('abc')
    expect(plain.duplicate).toHaveBeenCalledWith(OWN())
  })

  it('opens one without what it can do without', async () => {
    const opened = { isOpen: true, isReady: true, sendCommand: send, connect: async () => {} }
    const own = await link(clientOf({ duplicate: () => opened })).dedicate('abc')
    expect(await own.send(GET)).toEqual(GET)
    expect(() => own.close()).not.toThrow()
  })

  it('is one also where a wrapper tells a status of its own', async () => {
    const one = link(clientOf({ status: 'up' }))
    expect(one.notReadyReason('abc')).toBe(null)
    expect(await one.send('abc', GET)).toEqual(GET)
  })

  describe('of a pool', () => {
    const poolOf = (...clients: Record<string, any>[]) => {
      let turn = 0
      return {
        isOpen: true,
        totalClients: clients.length,
        sendCommand: send,
        execute: vi.fn(async (task: (client: object) => unknown) => task(clients[turn++ % clients.length]!)),
      }
    }
    const away = () => clientOf({ isReady: false })

    it('sends over a client that is ready, and asks each of them once', async () => {
      const pool = poolOf(away(), away(), clientOf())
      const one = link(pool)
      expect(one).toMatchObject({ cluster: false, keyPrefix: '' })
      expect(await one.send('abc', GET)).toEqual(GET)
      expect(pool.execute).toHaveBeenCalledTimes(3)
      const [master, ...others] = await one.masters()
      expect(others).toEqual([])
      expect(master).toMatchObject({ name: '', isReady: true })
      expect(await master!.send(GET)).toEqual(GET)
      expect(one.notReadyReason('abc')).toBe(null)
      expect([one.master('abc'), one.master('xyz')]).toEqual(['', ''])
      const silent = poolOf(away(), away())
      await expect(link(silent).send('abc', GET)).rejects.toEqual(new NotReady(AWAY))
      expect(silent.execute).toHaveBeenCalledTimes(2)
    })

    it('is not ready once it is closed', async () => {
      const pool = poolOf(clientOf())
      const one = link(pool)
      pool.isOpen = false
      expect(one.notReadyReason('abc')).toBe(AWAY)
      expect(await one.masters()).toMatchObject([{ isReady: false }])
    })

    it('opens a connection of its own like one of its clients', async () => {
      const client = clientOf()
      const own = await link(poolOf(away(), client)).dedicate('abc')
      expect(client.duplicate).toHaveBeenCalledWith(OWN())
      expect(own.usable()).toBe(true)
    })
  })

  describe('behind Sentinel', () => {
    const sentinelOf = (more: object = {}) => ({
      isOpen: true,
      isReady: true,
      sendCommand: async (isReadonly: boolean, args: string[]) => [isReadonly, ...args],
      getMasterNode: () => ({ host: 'h', port: 7 }) as object | undefined,
      ...more,
    })

    it('sends to the master, which has the name of its address', async () => {
      const client = sentinelOf()
      const one = link(client)
      expect(one).toMatchObject({ cluster: false, keyPrefix: '' })
      expect(await one.send('abc', GET)).toEqual([false, ...GET])
      expect(one.master('abc')).toBe('h:7')
      expect(one.notReadyReason('abc')).toBe(null)
      const [master, ...others] = await one.masters()
      expect(others).toEqual([])
      expect(master).toMatchObject({ name: '', isReady: true })
      expect(await master!.send(GET)).toEqual([false, ...GET])
      client.isReady = false
      expect(one.notReadyReason('abc')).toBe(AWAY)
      expect(await one.masters()).toMatchObject([{ isReady: false }])
      expect(typeof link(sentinelOf({ getMasterNode: () => undefined })).master('abc')).toBe('string')
    })

    it('counts how often the client sends a command again', async () => {
      const execute = vi.fn(async (_: boolean, task: (client: object) => Promise<unknown>) => {
        await task(clientOf({ sendCommand: async () => 'lost' }))
        return task(clientOf())
      })
      const one = link(sentinelOf({ _execute: execute }))
      expect(one.breaks!()).toBe(0)
      expect(await one.send('abc', GET)).toEqual(GET)
      expect(execute).toHaveBeenCalledWith(false, expect.any(Function))
      expect(one.breaks!()).toBe(1)
      execute.mockImplementationOnce(async (_, task) => task(clientOf()))
      expect(await one.send('abc', GET)).toEqual(GET)
      expect(one.breaks!()).toBe(1)
    })

    it('opens a connection of its own to the master', async () => {
      const client = clientOf()
      const execute = vi.fn(async (_: boolean, task: (client: object) => unknown) => task(client))
      const own = await link(sentinelOf({ _execute: execute })).dedicate('abc')
      expect(execute).toHaveBeenCalledWith(false, expect.any(Function))
      expect(client.duplicate).toHaveBeenCalledWith(OWN())
      expect(own.usable()).toBe(true)
    })
  })

  describe('of a cluster', () => {
    beforeEach(() => {
      vi.useFakeTimers()
    })
    afterEach(() => {
      vi.useRealTimers()
    })
    const nodeOf = (address: string, client?: object) => ({ address, client })
    type Send = (key: string | undefined, isReadonly: boolean, args: string[], options?: object) => Promise<unknown>
    const clusterOf = (own: object | undefined, other: object | undefined = clientOf()) => {
      const [first, second] = [nodeOf('h:1', other), nodeOf('h:2', own)]
      const slots: unknown[] = new Array(SLOTS).fill({ master: first })
      slots[slotOf('xyz')] = { master: second }
      return {
        isOpen: true,
        masters: [first, second],
        slots,
        sendCommand: vi.fn<Send>(async (key, isReadonly, args) => [key, isReadonly, ...args]),
        nodeClient: vi.fn(async (node: { client?: object }) => node.client ?? clientOf()),
      }
    }

    it('sends by the shard, and asks all masters by themselves', async () => {
      const client = clusterOf(clientOf())
      const many = link(client)
      expect(many).toMatchObject({ cluster: true, keyPrefix: '' })
      expect(many.notReadyReason('xyz')).toBe(null)
      expect(await many.send('xyz', GET)).toEqual(['{xyz}', false, ...GET])
      expect([many.master('abc'), many.master('xyz')]).toEqual(['h:1', 'h:2'])
      const masters = await many.masters()
      expect(masters).toMatchObject([
        { name: 'h:1', isReady: true },
        { name: 'h:2', isReady: true },
      ])
      expect(await masters[1]!.send(GET)).toEqual(GET)
      expect(client.nodeClient).toHaveBeenCalledWith(client.masters[1])
    })

    it('is ready where its node connects at the first command', async () => {
      const many = link(clusterOf(undefined))
      expect(many.notReadyReason('xyz')).toBe(null)
      expect(await many.masters()).toMatchObject([{ isReady: true }, { isReady: true }])
    })

    it('is not ready before it knows all slots, and once it is closed', () => {
      const client = clusterOf(clientOf())
      const many = link(client)
      client.isOpen = false
      expect(many.notReadyReason('xyz')).toBe(AWAY)
      client.isOpen = true
      client.slots.length = 0
      expect(many.notReadyReason('xyz')).toBe(AWAY)
      Object.assign(client, { slots: undefined })
      expect(many.notReadyReason('xyz')).toBe(AWAY)
      expect(many.master('xyz')).toBe('')
      expect(client.sendCommand).not.toHaveBeenCalled()
    })

    it('has no name for a master that it does not know', async () => {
      const client = clusterOf(clientOf())
      client.slots[slotOf('xyz')] = undefined
      Object.assign(client, { masters: [{ client: clientOf() }] })
      const many = link(client)
      expect(many.master('xyz')).toBe('')
      expect(await many.masters()).toMatchObject([{ name: '' }])
      await expect(many.dedicate('xyz')).rejects.toThrow(/^no master for this shard$/)
      expect(many.notReadyReason('xyz')).toBe(`${AWAY}: the master of this shard is away`)
    })

    it('looks for the new master of a shard by a read elsewhere, four times a second', async () => {
      const client = clusterOf(clientOf({ isReady: false }))
      const many = link(client)
      const ask = () => many.notReadyReason('xyz')
      for (let times = 0; times < 3; times++) expect(ask()).toBe(`${AWAY}: the master of this shard is away`)
      expect(client.sendCommand.mock.calls).toEqual([
        [undefined, false, ['GET', '{xyz}'], { abortSignal: expect.any(AbortSignal) }],
      ])
      await vi.advanceTimersByTimeAsync(249)
      ask()
      expect(client.sendCommand).toHaveBeenCalledTimes(1)
      await vi.advanceTimersByTimeAsync(1)
      ask()
      expect(client.sendCommand).toHaveBeenCalledTimes(2)
      expect(await many.masters()).toMatchObject([{ isReady: true }, { isReady: false }])
    })

    it('has sixteen of these reads under way at most: that node may be silent as well', async () => {
      const client = clusterOf(clientOf({ isReady: false }))
      const ends: (() => void)[] = []
      client.sendCommand.mockImplementation(
        () => new Promise((_, reject) => ends.push(() => reject(new Error('read ECONNRESET')))),
      )
      const many = link(client)
      for (let times = 0; times < 20; times++) {
        many.notReadyReason('xyz')
        await vi.advanceTimersByTimeAsync(250)
      }
      expect(ends).toHaveLength(16)
      ends[0]!()
      await vi.advanceTimersByTimeAsync(250)
      for (let times = 0; times < 3; times++) {
        many.notReadyReason('xyz')
        await vi.advanceTimersByTimeAsync(250)
      }
      expect(ends).toHaveLength(17)
    })

    it('opens a connection of its own to the master of a shard', async () => {
      const node = clientOf({ options: { socket: { port: 2 } } })
      const client = clusterOf(node)
      const own = await link(client).dedicate('xyz')
      expect(client.nodeClient).toHaveBeenCalledWith(client.masters[1])
      expect(node.duplicate).toHaveBeenCalledWith(OWN({ port: 2 }))
      expect(own.usable()).toBe(true)
    })
  })
})

describe('a client that is refused', () => {
  const ready = { status: 'ready', call: echo }
  const reads = (setting: string) =>
    new TypeError(
      `the client reads from replicas (${setting}), where an ended session lives on: give the store one without it`,
    )

  it.each<[object, string]>([
    [{ ...ready, options: { readOnly: true } }, 'readOnly: true'],
    [{ ...ready, options: { redisOptions: { readOnly: true } } }, 'readOnly: true'],
    [{ ...ready, options: { readonly: true } }, 'readonly: true'],
    [{ ...ready, options: { role: 'slave' } }, "role: 'slave'"],
    [{ ...ready, options: { scaleReads: 'all' } }, "scaleReads: 'all'"],
    [{ ...ready, options: { scaleReads: () => null } }, "scaleReads: 'a function'"],
    [{ ...ready, _options: { useReplicas: true } }, 'useReplicas: true'],
  ])('%j reads from replicas', (client, setting) => {
    expect(() => link(client)).toThrow(reads(setting))
  })

  it.each<[object]>([
    [{ options: { readOnly: false, readonly: false, role: 'master', scaleReads: 'master', redisOptions: {} } }],
    [{ options: { redisOptions: { readOnly: false } }, _options: { useReplicas: false } }],
    [{ options: { keyPrefix: 'app:' }, _options: {} }],
  ])('is none that does not: %j', more => {
    expect(link({ ...ready, ...more }).cluster).toBe(false)
  })

  it.each(['{', '}', 'a{b}'])('is one with the key prefix %j', keyPrefix => {
    expect(() => link({ ...ready, options: { keyPrefix } })).toThrow(
      new TypeError(`the client's keyPrefix contains a brace, which moves the hash tag of Redis Cluster`),
    )
  })

  it.each<[object, string]>([
    [{ sendCommand: echo }, 'client has sendCommand(), and lacks isOpen, isReady: '],
    [{ sendCommand: echo, isReady: true }, 'client has sendCommand(), and lacks isOpen: '],
    [{ sendCommand: echo, isOpen: true }, 'client has sendCommand(), and lacks isReady: '],
    [{ call: echo }, 'client has call(), and lacks status: '],
    [{ client: {} }, 'client: pass it by itself, new RedisStore(client, { … }): '],
    [{}, 'client is an object without call(), sendCommand() and customCommand(): '],
    [{ isOpen: true, isReady: true }, 'client is an object without call(), sendCommand() and customCommand(): '],
  ])('lacks what tells its state: %j', (client, message) => {
    const open = () => new RedisStore(client as RedisClient)
    expect(open).toThrow(TypeError)
    expect(open).toThrow(message)
  })

  it('says how a wrapper would tell it', () => {
    expect(() => link({ sendCommand: echo })).toThrow(
      '{ sendCommand: (...args) => client.sendCommand(...args), get isOpen() { return client.isOpen }, get isReady() { return client.isReady } }',
    )
  })

  it.each([undefined, null, 'redis://localhost', 7, () => {}])('is no object: %s', client => {
    expect(() => linkTo(client as never)).toThrow(/^client is .*: expected a connected client of node-redis/)
  })
})
