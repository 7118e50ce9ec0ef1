// The clients, typed by the methods used, and made alike here. None is imported at run time.
import { quote } from '../../src/text/quote.ts'
import { Connection, type Inner, type Send, Server, sendOf } from './connection.ts'
import { NotReady } from './errors.ts'
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

/** A master of the servers behind a client. */
export interface Master {
  /** The first slot that it has, 0 if there are no slots: a master that takes its place after a failover has the same. */
  readonly firstSlot: number
  /** Sends a command of a call that may take so long, in ms. */
  send(args: string[], timeout: number): Promise<unknown>
}

/** The part of any client that the store uses. The shard decides which master gets a command. */
export interface Link {
  readonly isCluster: boolean
  readonly server: Server
  /** Why no command can be sent for this shard now, or `null`. The client itself would queue the command. */
  notReady(shard: string): string | null
  /** Sends a command of a call that may take so long, in ms. */
  send(shard: string, args: string[], timeout: number): Promise<unknown>
  /** All masters, in the order of their first slots. */
  masters(): readonly Master[]
}

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
  const server = SERVERS.get(client) ?? new Server(client)
  SERVERS.set(client, server)
  const over: Over = (inner, args, timeout, send) => {
    let connection = CONNECTIONS.get(inner)
    if (connection === undefined) {
      // A wrapper around another client has no connection that could be left.
      if (typeof (inner.disconnect ?? inner.connect) !== 'function') return sendOf(inner)(args)
      connection = new Connection(server, inner)
      CONNECTIONS.set(inner, connection)
    }
    return connection.send(args, timeout, absent, send)
  }
  const isReady = () => (isPool ? client.isOpen : (client.isReady ?? client.status === 'ready'))
  const link: Link = {
    server,
    isCluster: false,
    notReady: () => (isReady() ? null : NOT_READY + (isIoredis ? ` (status '${client.status}')` : '')),
    send: (_, args, timeout) => (isPool ? throughPool(client, over, args, timeout) : over(client, args, timeout)),
    masters: () => [{ firstSlot: 0, send: (args, timeout) => link.send('', args, timeout) }],
  }
  return isCluster || client.isCluster ? { ...link, ...clusterOf(client, over) } : link
}

// For all stores that share a client.
const SERVERS = new WeakMap<Inner, Server>()
const CONNECTIONS = new WeakMap<Inner, Connection>()
/** Sends over one connection: the only way to. `send` is another way to the same one, which follows redirections. */
type Over = (inner: Inner, args: string[], timeout: number, send?: Send) => Promise<unknown>

function refuseOptions(client: Inner) {
  const options = { ...client.options, ...client._options } as Record<string, unknown>
  const perNode = options.redisOptions as Record<string, unknown> | undefined
  const { scaleReads = 'master' } = options
  const replicas = [options.useReplicas, options.readonly, options.readOnly, perNode?.readOnly]
  if (replicas.includes(true) || scaleReads !== 'master' || options.role === 'slave')
    throw new TypeError(
      'the client reads from replicas (useReplicas, readonly, readOnly, scaleReads or role), where an ended session lives on: give the store a client that does not',
    )
  const prefix = client._keyPrefix || options.keyPrefix
  if (prefix) throw new TypeError(`remove keyPrefix ${quote(prefix)} from the client and pass prefix to RedisStore`)
}

async function throughPool(pool: Inner, over: Over, args: string[], timeout: number): Promise<unknown> {
  // A pool also hands out clients that are reconnecting, which would queue the command.
  for (let tries = pool.totalClients!; tries >= 0; tries--) {
    const answer = await pool.execute!(async free => free.isReady && { reply: await over(free, args, timeout) })
    if (answer) return (answer as { reply: unknown }).reply
  }
  throw new NotReady(NOT_READY)
}

function clusterOf(client: Inner, over: Over): Partial<Link> {
  const isIoredis = client.call !== undefined
  /** What stands for the master of a slot: the first one of its addresses, or an object. */
  const masterOf = (slot: number) => {
    const { [slot]: known } = client.slots as readonly ((readonly string[] & { master?: object }) | undefined)[]
    return isIoredis ? known?.[0] : known?.master
  }
  /** The connection to a master, if there is one. */
  const nodeOf = (master: unknown) =>
    isIoredis
      ? client.nodes!('master').find(({ options }) => `${options?.host}:${options?.port}` === master)
      : (master as { client?: Inner } | undefined)?.client
  /** Sends to the master of a shard, and follows redirections. */
  const via = (shard: string): Send =>
    isIoredis ? sendOf(client) : args => client.sendCommand!(`{${shard}}`, false, args)
  return {
    isCluster: true,
    ...(!isIoredis && {
      notReady: lookingFor(client, shard => masterOf(slotOf(shard)) as { client?: Inner } | undefined),
    }),
    send(shard, args, timeout) {
      const inner = nodeOf(masterOf(slotOf(shard)))
      return inner ? over(inner, args, timeout, via(shard)) : via(shard)(args)
    },
    masters() {
      const masters = new Map<unknown, Master>()
      for (let firstSlot = 0; firstSlot < SLOTS; firstSlot++) {
        const master = masterOf(firstSlot) ?? lost()
        const send: Master['send'] = async (args, timeout) => {
          // ioredis forgets a connection that is lost, and finds its master again by a key alone, or where it is told to look.
          if (isIoredis && !nodeOf(master)) await new Promise(done => client.refreshSlotsCache!(done))
          const inner = nodeOf(master) ?? (await (client.nodeClient?.(master) ?? lost()))
          return over(inner.isReady === false ? lost() : inner, args, timeout)
        }
        if (!masters.has(master)) masters.set(master, { firstSlot, send })
      }
      return [...masters.values()]
    },
  }
}

/** How often to ask a cluster for a slot whose master is away, in ms. */
const LOOK_EVERY = 250

/** Whether a client of node-redis knows a master that is ready. */
function lookingFor(cluster: Inner, masterOf: (shard: string) => { client?: Inner } | undefined): Link['notReady'] {
  let lookedAt = Number.NEGATIVE_INFINITY
  return shard => {
    if (!cluster.isOpen || cluster.slots?.length !== SLOTS) return NOT_READY
    const master = masterOf(shard)
    // A node without a client is not connected yet (`minimizeConnections`): the first command connects it.
    if (master && master.client?.isReady !== false) return null
    // The client learns of a failover only from MOVED (version 5), or late (version 6). A harmless read provokes it.
    if (performance.now() - lookedAt >= LOOK_EVERY) {
      lookedAt = performance.now()
      const abortSignal = AbortSignal.timeout(1000)
      cluster.sendCommand!(undefined, false, ['GET', `{${shard}}`], { abortSignal }).catch(() => {})
    }
    return `${NOT_READY}: the master of this shard is away`
  }
}

function lost(): never {
  throw new NotReady('a master of the cluster is away')
}
