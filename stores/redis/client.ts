// The clients, typed by the methods used, and made alike here. None is imported at run time.
import { quote } from '../../src/text/quote.ts'
import { Connection, type Means, type Send, Server } from './connection.ts'
import { NotReady, type NoUse } from './errors.ts'
import { SLOTS, slotOf } from './keys.ts'

/** ioredis 5 and 6, iovalkey: `Redis` (also with sentinels) and `Cluster`. */
export interface IoredisClient {
  call(command: string, args: string[]): Promise<unknown>
}
/**
 * node-redis 5 and 6: `createClient` and `createClientPool`. Also any other client of one server, behind an object with
 * these three: `sendCommand`, and the getters `isOpen` and `isReady`.
 */
export interface NodeRedisClient {
  sendCommand(args: string[]): Promise<unknown>
}
/** node-redis 5 and 6: `createCluster`. */
export interface NodeRedisCluster {
  sendCommand(firstKey: string | undefined, isReadonly: boolean | undefined, args: string[]): Promise<unknown>
}
/** node-redis 5 and 6: `createSentinel`. */
export interface NodeRedisSentinel {
  sendCommand(isReadonly: boolean | undefined, args: string[]): Promise<unknown>
}
/** A connected client of Redis or Valkey, standalone, pool, Sentinel or Cluster. */
export type RedisClient = IoredisClient | NodeRedisClient | NodeRedisCluster | NodeRedisSentinel

/** Sends a command of a call that may take so long, in ms. */
type SendFor = (args: string[], timeout: number) => Promise<unknown>

/** A master of the servers behind a client. */
export interface Master {
  /** The first slot that it has, 0 if there are no slots: a master that takes its place after a failover has the same. */
  readonly firstSlot: number
  readonly send: SendFor
}

/** The part of any client that the store uses. The shard decides which master gets a command. */
export interface Link {
  readonly isCluster: boolean
  /** Why no command can be sent for this shard now, or `null`. The client itself would queue the command. */
  notReady(shard: string): string | null
  /** Why a connection was left a moment ago, or `null`: another one may be ready soon. */
  left(): NoUse | null
  /** Leaves the connections on which calls waited, and nothing came. To be awaited before a command is sent. */
  leaveSilent(): Promise<void>
  /** Sends a command of a call that may take so long, in ms. */
  send(shard: string, args: string[], timeout: number): Promise<unknown>
  /** All masters, in the order of their first slots. */
  masters(): readonly Master[]
  /** How often connections have broken so far. The client may send a command again after that. */
  breaks(): number
}

// Members of the clients that their public types lack.
interface Inner {
  call?(command: string, args: string[]): Promise<unknown>
  sendCommand?(...args: unknown[]): Promise<unknown>
  execute?(task: (client: Inner) => Promise<unknown>): Promise<unknown>
  on?(event: string, listener: (node?: Inner) => void): unknown
  nodes?(role: string): Inner[]
  nodeClient?(node: unknown): Promise<Inner> | Inner
  getMasterNode?(): unknown
  connect?(): Promise<unknown>
  destroy?(): unknown
  disconnect?(reconnect: boolean): void
  /** The `keyPrefix` of node-redis 6. */
  readonly _keyPrefix?: string
  readonly isOpen?: boolean
  readonly isReady?: boolean
  readonly isCluster?: boolean
  readonly status?: string
  readonly totalClients?: number
  readonly slots?: readonly unknown[]
  readonly options?: Record<string, unknown>
  readonly _options?: Record<string, unknown>
}
type NodeRedisNode = { readonly client?: Inner }

const EXPECTED =
  'expected a connected client of node-redis 5 or 6 (createClient, createClientPool, createCluster, createSentinel), or of ioredis 5 or 6 or iovalkey (Redis, Cluster)'
const NOT_READY = 'the Redis client is not connected to its server'

/**
 * The link over a client. The name `absent` is that of a key that is never there.
 *
 * @throws TypeError if it is no such client, was never connected, has a key prefix, or reads from replicas (an ended session
 * would live on there).
 */
export function linkTo(given: RedisClient, absent: string): Link {
  if (typeof given !== 'object' || given === null) throw new TypeError(`client is ${quote(given)}: ${EXPECTED}`)
  const client = given as Inner
  refuseOptions(client)
  const isIoredis = typeof client.call === 'function'
  const method = isIoredis ? 'call' : 'sendCommand'
  if (typeof client[method] !== 'function') {
    const inside =
      'client' in client ? 'pass it by itself, new RedisStore(client, { … })' : 'no call() or sendCommand()'
    throw new TypeError(`client: ${inside}: ${EXPECTED}`)
  }
  const isCluster = typeof client.nodeClient === 'function'
  const isPool = typeof client.totalClients === 'number'
  const told = isIoredis ? (['status'] as const) : (['isOpen', 'isReady'] as const)
  const missing = told.slice(0, isCluster || isPool ? 1 : 2).filter(name => client[name] === undefined)
  if (missing.length > 0)
    throw new TypeError(
      `client has ${method}(), and lacks ${missing.join(', ')}: pass the client itself, or a wrapper with getters for these`,
    )
  if (client.status === 'wait' || client.status === 'end')
    throw new TypeError(`the ioredis client is not connected (status '${client.status}'): call connect() first`)
  if (!isIoredis && !client.isOpen)
    throw new TypeError('the node-redis client is not connected: await its connect() first')
  const server = SERVERS.get(client) ?? new Server()
  SERVERS.set(client, server)
  const over: Over = (inner, args, timeout, send) => {
    const known = CONNECTIONS.get(inner)
    if (known !== undefined) return known.send(args, timeout, absent, send)
    const means = meansOf(inner, inner !== client)
    if (typeof (inner.disconnect ?? inner.connect) !== 'function') return means.send(args)
    const connection = new Connection(server, means)
    CONNECTIONS.set(inner, connection)
    return connection.send(args, timeout, absent, send)
  }
  const shape = isIoredis ? ioredis : isCluster ? nodeRedisCluster : isPool ? nodeRedisPool : nodeRedis
  const { left, leaveSilent } = server
  const link = { left, leaveSilent, breaks: () => 0, isCluster: false, ...shape(client, over) }
  return { masters: () => [{ firstSlot: 0, send: (args, timeout) => link.send('', args, timeout) }], ...link }
}

// For all stores that share a client.
const SERVERS = new WeakMap<Inner, Server>()
const CONNECTIONS = new WeakMap<Inner, Connection>()
/** Sends over one connection: the only way to. `send` is another way to the same one, which follows redirections. */
type Over = (inner: Inner, args: string[], timeout: number, send?: Send) => Promise<unknown>
type Shape = Pick<Link, 'notReady' | 'send'> & Partial<Link>

function meansOf(inner: Inner, isPart: boolean): Means {
  const onReady = (listener: () => void) => inner.on!('ready', listener)
  if (inner.call !== undefined)
    return {
      // An array, because thousands of arguments would not fit on the stack.
      send: args => inner.call!(args[0]!, args.slice(1)),
      // A cluster makes its nodes anew; a client by itself needs a strategy for that.
      canLeave: () => inner.status === 'ready' && (isPart || typeof inner.options?.retryStrategy === 'function'),
      leave: () => void inner.disconnect!(true),
      onReady,
    }
  const isSentinel = typeof inner.getMasterNode === 'function'
  const send: Send = args => (isSentinel ? inner.sendCommand!(false, args) : inner.sendCommand!(args))
  const socket = inner.options?.socket as { reconnectStrategy?: unknown } | undefined
  return {
    send,
    canLeave: () => inner.isReady === true,
    leave(isSilent) {
      // The server answers and closes: others on this client lose no more than with any lost connection.
      if (!isSilent && !isSentinel && socket?.reconnectStrategy !== false) return void send(['QUIT']).catch(() => {})
      const destroyed = inner.destroy!()
      // In one turn where that is possible: in another one the application may close its client.
      return destroyed instanceof Promise ? destroyed.then(() => inner.connect!()) : inner.connect!()
    },
    onReady,
  }
}

function refuseOptions(client: Inner) {
  const options = { ...client.options, ...client._options } as Record<string, unknown>
  const perNode = options.redisOptions as Record<string, unknown> | undefined
  const { scaleReads = 'master' } = options
  const replicas = [options.useReplicas, options.readonly, options.readOnly, perNode?.readOnly]
  if (replicas.includes(true) || scaleReads !== 'master' || options.role === 'slave')
    throw new TypeError(
      'the client reads from replicas (useReplicas, readonly, readOnly, scaleReads or role), where an ended session lives on: give the store a client that does not',
    )
  const prefix = client._keyPrefix || options.keyPrefix || perNode?.keyPrefix
  if (prefix) throw new TypeError(`remove keyPrefix ${quote(prefix)} from the client and pass prefix to RedisStore`)
}

/** How often connections of a client have broken, for all stores that share it. */
const BREAKS = new WeakMap<Inner, { count: number }>()
function breaksOf(client: Inner, ...events: string[]): () => number {
  const breaks = BREAKS.get(client) ?? { count: 0 }
  // The loss of a replica, which gets no command, does not matter: iovalkey tells of many.
  const count = (node?: Inner) => {
    if (node?.options?.readOnly !== true) breaks.count++
  }
  if (!BREAKS.has(client)) for (const event of events) client.on?.(event, count)
  BREAKS.set(client, breaks)
  return () => breaks.count
}

function ioredis(client: Inner, over: Over): Shape {
  const isCluster = client.isCluster === true
  /** A slot has a list of addresses, the master's first. */
  const addressIn = (slot: unknown) => (slot as readonly string[] | undefined)?.[0]
  const nodeAt = (address: unknown) =>
    client.nodes!('master').find(({ options }) => `${options?.host}:${options?.port}` === address)
  const viaCluster: Send = args => client.call!(args[0]!, args.slice(1))
  const link: Shape = {
    isCluster,
    notReady: () => (client.status === 'ready' ? null : `${NOT_READY} (status '${client.status}')`),
    send(shard, args, timeout) {
      const inner = isCluster ? nodeAt(addressIn(client.slots![slotOf(shard)])) : client
      return inner ? over(inner, args, timeout, viaCluster) : viaCluster(args)
    },
    breaks: breaksOf(client, 'close', '-node'),
  }
  const sender =
    (address: unknown): SendFor =>
    async (args, timeout) =>
      over(nodeAt(address) ?? lost(), args, timeout)
  return isCluster ? { ...link, masters: () => bySlot(client.slots!, addressIn, sender) } : link
}

const nodeRedis = (client: Inner, over: Over): Shape => ({
  notReady: () => (client.isReady ? null : NOT_READY),
  send: (_shard, args, timeout) => over(client, args, timeout),
  // Only the client of Sentinel sends a command again.
  ...(client.getMasterNode && { breaks: breaksOf(client, 'topology-change', 'client-error') }),
})

const nodeRedisPool = (pool: Inner, over: Over): Shape => ({
  notReady: () => (pool.isOpen ? null : NOT_READY),
  async send(_shard, args, timeout) {
    // A pool also hands out clients that are reconnecting, which would queue the command.
    for (let tries = pool.totalClients!; tries >= 0; tries--) {
      const answer = await pool.execute!(async free => free.isReady && { reply: await over(free, args, timeout) })
      if (answer) return (answer as { reply: unknown }).reply
    }
    throw new NotReady(NOT_READY)
  },
})

/** How often to ask a cluster for a slot whose master is away, in ms. */
const LOOK_EVERY = 250

function nodeRedisCluster(cluster: Inner, over: Over): Shape {
  const masterIn = (slot: unknown) => (slot as { master?: NodeRedisNode } | undefined)?.master
  // A node without a client is not connected yet (`minimizeConnections`): the first command connects it.
  const isReady = ({ client }: NodeRedisNode) => client === undefined || client.isReady === true
  let lookedAt = Number.NEGATIVE_INFINITY
  // The client learns of a failover only from MOVED (version 5), or late (version 6). A harmless read provokes it.
  const look = (shard: string) => {
    if (performance.now() - lookedAt < LOOK_EVERY) return
    lookedAt = performance.now()
    const abortSignal = AbortSignal.timeout(1000)
    cluster.sendCommand!(undefined, false, ['GET', `{${shard}}`], { abortSignal }).catch(() => {})
  }
  return {
    isCluster: true,
    notReady(shard) {
      if (!cluster.isOpen || cluster.slots?.length !== SLOTS) return NOT_READY
      const master = masterIn(cluster.slots[slotOf(shard)])
      if (master && isReady(master)) return null
      look(shard)
      return `${NOT_READY}: the master of this shard is away`
    },
    send(shard, args, timeout) {
      const send: Send = each => cluster.sendCommand!(`{${shard}}`, false, each)
      const client = masterIn(cluster.slots![slotOf(shard)])?.client
      return client ? over(client, args, timeout, send) : send(args)
    },
    masters: () =>
      bySlot(cluster.slots!, masterIn, master => async (args, timeout) => {
        if (!isReady(master as NodeRedisNode)) lost()
        return over(await cluster.nodeClient!(master), args, timeout)
      }),
    breaks: () => 0,
  }
}

function bySlot(slots: readonly unknown[], masterIn: (slot: unknown) => unknown, sender: (master: unknown) => SendFor) {
  const masters = new Map<unknown, Master>()
  for (let firstSlot = 0; firstSlot < SLOTS; firstSlot++) {
    const master = masterIn(slots[firstSlot]) ?? lost()
    if (!masters.has(master)) masters.set(master, { firstSlot, send: sender(master) })
  }
  return [...masters.values()]
}

function lost(): never {
  throw new NotReady('a master of the cluster is away')
}
