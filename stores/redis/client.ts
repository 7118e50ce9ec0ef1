// The clients, typed by the few methods used: node-redis in its four shapes of `sendCommand`, ioredis by `call`, Valkey's
// own by `customCommand` (valkey-glide.ts). None is imported at run time; what differs between them ends here.
import { quote } from '../../src/text/quote.ts'
import { follower } from './database.ts'
import { SLOTS, slotOf } from './keys.ts'
import { type Dedicated, type Link, NotReady } from './link.ts'
import { ReadyClients } from './pool.ts'
import { type GlideInner, valkeyGlide } from './valkey-glide.ts'

/** ioredis 5 and 6: `Redis` (also with sentinels) and `Cluster`. */
export interface IoredisClient {
  call(command: string, args: string[]): Promise<unknown>
}
/** node-redis 5 and 6: `createClient` and `createClientPool`. */
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
/** `@valkey/valkey-glide` 2: `GlideClient` and `GlideClusterClient`. */
export interface ValkeyGlideClient {
  customCommand(args: string[]): Promise<unknown>
}
/** A connected client of Redis or Valkey, standalone, pool, Sentinel or Cluster. */
export type RedisClient = IoredisClient | NodeRedisClient | NodeRedisCluster | NodeRedisSentinel | ValkeyGlideClient

// What the clients have beyond the methods in their public types above; all of it is optional to the compiler, so that
// a version without it degrades instead of crashing.
interface Inner {
  call?(command: string, args: string[]): Promise<unknown>
  sendCommand?(...args: unknown[]): Promise<unknown>
  execute?<T>(task: (client: Inner) => Promise<T>): Promise<T>
  _execute?<T>(isReadonly: boolean, task: (client: Inner) => Promise<T>): Promise<T>
  duplicate?(overrides?: unknown, options?: unknown): Inner
  connect?(): Promise<unknown>
  destroy?(): void
  disconnect?(): void
  on?(event: string, listener: (error: unknown) => void): unknown
  nodes?(role: string): Inner[]
  nodeClient?(node: unknown): Promise<Inner> | Inner
  /** The `keyPrefix` of node-redis 6, which its `sendCommand` leaves out. */
  readonly _keyPrefix?: unknown
  readonly isOpen?: boolean
  readonly isReady?: boolean
  readonly isCluster?: boolean
  readonly status?: string
  readonly condition?: { readonly select?: number } | null
  readonly totalClients?: number
  readonly idleClients?: number
  readonly masters?: readonly NodeRedisNode[]
  readonly slots?: readonly unknown[]
  readonly options?: Record<string, unknown>
  readonly _options?: Record<string, unknown>
  getMasterNode?(): { host: string; port: number } | undefined
}
interface NodeRedisNode {
  readonly address?: string
  readonly client?: Inner
}

const EXPECTED =
  'expected a connected client of node-redis 5 or 6 (createClient, createClientPool, createCluster, createSentinel), ioredis 5 or 6 (Redis, Cluster) or @valkey/valkey-glide 2 (GlideClient, GlideClusterClient)'
const NOT_READY = 'the Redis client is not connected to its server'
const ignore = () => {}

/**
 * The link over a client.
 *
 * @throws TypeError for what is no such client, for one that was never connected, and for one that reads from replicas:
 * a session that was ended would live on there.
 */
export function linkTo(client: RedisClient): Link {
  const inner = client as Inner
  if (typeof client !== 'object' || client === null) throw new TypeError(`client is ${quote(client)}: ${EXPECTED}`)
  refuseReplicas(inner)
  const glide = client as unknown as GlideInner
  if (typeof glide.customCommand === 'function') {
    if (typeof glide.isClosed !== 'boolean') throw incomplete('customCommand', ['isClosed'])
    return valkeyGlide(glide)
  }
  if (typeof inner.call === 'function' && typeof inner.status === 'string') {
    if (inner.status === 'wait' || inner.status === 'end')
      throw new TypeError(`the ioredis client is not connected (status '${inner.status}'): call connect() first`)
    return inner.isCluster ? ioredisCluster(inner) : ioredis(inner)
  }
  if (typeof inner.sendCommand !== 'function' || typeof inner.isOpen !== 'boolean') throw unusable(inner)
  const { _keyPrefix: keyPrefix = '' } = inner
  // With the prefix left out, two applications that it should keep apart would have their sessions in common.
  if (keyPrefix !== '')
    throw new TypeError(
      `the keyPrefix ${quote(keyPrefix)} of the node-redis client does not stand before what the store writes: give the store a client without it, and the option prefix`,
    )
  if (!inner.isOpen) throw new TypeError('the node-redis client is not connected: await its connect() first')
  if (typeof inner.nodeClient === 'function') return nodeRedisCluster(inner)
  if (typeof inner.getMasterNode === 'function') return nodeRedisSentinel(inner)
  if (typeof inner.totalClients === 'number') return nodeRedisPool(inner)
  if (typeof inner.isReady !== 'boolean') throw unusable(inner)
  return nodeRedis(inner)
}

// What is sent while the connection is away would be queued and run later: a client has to tell its state.
function unusable(client: Inner): TypeError {
  if (typeof client.sendCommand === 'function') {
    const missing = (['isOpen', 'isReady'] as const).filter(name => typeof client[name] !== 'boolean')
    return incomplete('sendCommand', missing)
  }
  if (typeof client.call === 'function') return incomplete('call', ['status'])
  if ('client' in client) return new TypeError(`client: pass it by itself, new RedisStore(client, { … }): ${EXPECTED}`)
  return new TypeError(`client is an object without call(), sendCommand() and customCommand(): ${EXPECTED}`)
}

function incomplete(method: string, missing: readonly string[]): TypeError {
  const getters = missing.map(name => `get ${name}() { return client.${name} }`).join(', ')
  return new TypeError(
    `client has ${method}(), and lacks ${missing.join(', ')}: pass the client itself, or let the wrapper tell the state of the connection: { ${method}: (...args) => client.${method}(...args), ${getters} }`,
  )
}

function refuseReplicas(client: Inner) {
  const { useReplicas } = client._options ?? {}
  const { scaleReads, readOnly, readonly, role, redisOptions } = client.options ?? {}
  const perNode = redisOptions as { readOnly?: boolean } | undefined
  const setting =
    useReplicas === true
      ? 'useReplicas: true'
      : scaleReads !== undefined && scaleReads !== 'master'
        ? `scaleReads: '${typeof scaleReads === 'string' ? scaleReads : 'a function'}'`
        : readOnly === true || perNode?.readOnly === true
          ? 'readOnly: true'
          : readonly === true
            ? 'readonly: true'
            : role === 'slave'
              ? `role: 'slave'`
              : null
  if (setting !== null)
    throw new TypeError(
      `the client reads from replicas (${setting}), where an ended session lives on: give the store one without it`,
    )
  if (/[{}]/.test(prefixOf(client)))
    throw new TypeError(`the client's keyPrefix contains a brace, which moves the hash tag of Redis Cluster`)
}

// — ioredis —

// As an array: thousands of keys as arguments of a function would not fit on the stack.
const callOn = (client: Inner, [command, ...args]: string[]) => client.call!(command!, args)

const openIoredis = async (client: Inner, overrides: object): Promise<Inner> => {
  const own = client.duplicate!({ ...OWN_IOREDIS, ...overrides })
  own.on?.('error', ignore)
  await own.connect?.()
  return own
}
const asDedicatedIoredis = (own: Inner): Dedicated => ({
  send: args => callOn(own, args),
  usable: () => own.status === 'ready',
  close: () => own.disconnect?.(),
})
const ioredisReason = ({ status }: Inner) => (status === 'ready' ? null : `${NOT_READY} (status '${status}')`)
// Nothing is queued, resent or reconnected: a connection that broke is replaced, not healed.
const OWN_IOREDIS = {
  lazyConnect: true,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  retryStrategy: null,
  enableAutoPipelining: false,
}

/** How many connections of a client have broken: several stores may share one, and count them once. */
const BREAKS = new WeakMap<Inner, { count: number }>()

// ioredis sends what was not answered once more on the next connection, a cluster to the next node.
function breaksOf(client: Inner): () => number {
  const breaks = BREAKS.get(client) ?? { count: 0 }
  if (!BREAKS.has(client)) {
    BREAKS.set(client, breaks)
    const broke = () => {
      breaks.count++
    }
    client.on?.('close', broke)
    client.on?.('-node', broke)
  }
  return () => breaks.count
}

const prefixOf = ({ options }: Inner) => String(options?.keyPrefix ?? '')

function ioredis(client: Inner): Link {
  return {
    cluster: false,
    keyPrefix: prefixOf(client),
    notReadyReason: () => ioredisReason(client),
    send: (_shard, args) => callOn(client, args),
    breaks: breaksOf(client),
    masters: () => [{ name: '', isReady: client.status === 'ready', send: args => callOn(client, args) }],
    master: () => '',
    async dedicate() {
      const own = await openIoredis(client, {})
      let at: number | null = own.condition?.select ?? 0
      return {
        ...asDedicatedIoredis(own),
        async follow() {
          // Until it has connected anew, it tells the database of its options, and goes back to its own only then.
          const reason = ioredisReason(client)
          if (reason !== null) throw new NotReady(reason)
          const database = client.condition?.select ?? 0
          if (database === at) return
          // Unknown where this fails: it may have been done.
          at = null
          await callOn(own, ['select', `${database}`])
          at = database
        },
      }
    },
  }
}

function ioredisCluster(client: Inner): Link {
  const masterOf = (shard: string) => {
    const key = (client.slots?.[slotOf(shard)] as string[] | undefined)?.[0] ?? ''
    const node = client.nodes!('master').find(({ options }) => `${options?.host}:${options?.port}` === key)
    return { key, node }
  }
  return {
    cluster: true,
    keyPrefix: prefixOf(client),
    notReadyReason: () => ioredisReason(client),
    send: (_shard, args) => callOn(client, args),
    breaks: breaksOf(client),
    // The client repeats for TRYAGAIN, its nodes do not. They have key prefixes of their own.
    sendTogether(shard, args) {
      const { node } = masterOf(shard)
      const isUsable = node?.status === 'ready' && prefixOf(node) === prefixOf(client)
      return callOn(isUsable ? node : client, args)
    },
    masters: () =>
      client.nodes!('master').map(node => ({
        name: `${node.options?.host}:${node.options?.port}`,
        // One that waits connects at its first command.
        isReady: node.status === 'ready' || node.status === 'wait',
        send: args => callOn(node, args),
      })),
    master: shard => masterOf(shard).key,
    async dedicate(shard) {
      const { key, node } = masterOf(shard)
      if (!node) throw new Error(`no connection to the master ${key} of this shard`)
      // The nodes do not have the key prefix of the client: it writes that itself.
      const keyPrefix = client.options?.keyPrefix ?? ''
      return asDedicatedIoredis(await openIoredis(node, { readOnly: false, keyPrefix }))
    },
  }
}

// — node-redis —

const asDedicatedNodeRedis = async (client: Inner): Promise<Dedicated> => {
  const own = client.duplicate!({
    disableOfflineQueue: true,
    socket: { ...(client.options?.socket as object | undefined), reconnectStrategy: false },
  })
  own.on?.('error', ignore)
  await own.connect!()
  return {
    send: args => own.sendCommand!(args),
    usable: () => own.isReady === true,
    close: () => {
      if (own.isOpen) own.destroy?.()
    },
  }
}

function nodeRedis(client: Inner): Link {
  return {
    cluster: false,
    keyPrefix: '',
    notReadyReason: () => (client.isReady ? null : NOT_READY),
    send: (_shard, args) => client.sendCommand!(args),
    masters: () => [{ name: '', isReady: client.isReady === true, send: args => client.sendCommand!(args) }],
    master: () => '',
    async dedicate() {
      const own = await asDedicatedNodeRedis(client)
      const ask = async (args: string[]) => {
        if (!client.isReady) throw new NotReady(NOT_READY)
        return client.sendCommand!(args)
      }
      return { ...own, follow: follower(ask, own.send) }
    },
  }
}

/** The clients of each pool: several stores may share one, and listen to them once. */
const POOLED = new WeakMap<Inner, ReadyClients<Inner>>()

function nodeRedisPool(pool: Inner): Link {
  const clients = POOLED.get(pool) ?? new ReadyClients(pool, NOT_READY)
  POOLED.set(pool, clients)
  const send = (args: string[]) => clients.run(client => client.sendCommand!(args))
  return {
    cluster: false,
    keyPrefix: '',
    notReadyReason: () => (pool.isOpen ? null : NOT_READY),
    send: (_shard, args) => send(args),
    masters: () => [{ name: '', isReady: pool.isOpen === true, send }],
    master: () => '',
    dedicate: () => clients.run(asDedicatedNodeRedis),
  }
}

function nodeRedisSentinel(sentinel: Inner): Link {
  // The client sends a command again where its connection broke: it calls the same function once more.
  let sentAgain = 0
  const send = (args: string[]) => {
    if (!sentinel._execute) return sentinel.sendCommand!(false, args)
    let times = 0
    return sentinel._execute(false, async client => {
      if (times++ > 0) sentAgain++
      return client.sendCommand!(args)
    })
  }
  return {
    cluster: false,
    keyPrefix: '',
    notReadyReason: () => (sentinel.isReady ? null : NOT_READY),
    send: (_shard, args) => send(args),
    breaks: () => sentAgain,
    masters: () => [{ name: '', isReady: sentinel.isReady === true, send }],
    master: () => {
      const node = sentinel.getMasterNode!()
      return `${node?.host}:${node?.port}`
    },
    dedicate: () => sentinel._execute!(false, async client => asDedicatedNodeRedis(client)),
  }
}

const PROBE_EVERY = 250
const MAX_PROBES = 16

function nodeRedisCluster(cluster: Inner): Link {
  const nodeOf = (slot: number) => (cluster.slots?.[slot] as { master?: NodeRedisNode } | undefined)?.master
  let probedAt = Number.NEGATIVE_INFINITY
  // The client learns of a failover from MOVED alone (version 5) or late (version 6). While a master is away, a harmless
  // read for its slot on another node makes it look again; a few at a time, because that node may be silent as well.
  let probes = 0
  const probe = (shard: string) => {
    const now = performance.now()
    if (probes >= MAX_PROBES || now - probedAt < PROBE_EVERY) return
    probedAt = now
    probes++
    const abortSignal = AbortSignal.timeout(1000)
    cluster.sendCommand!(undefined, false, ['GET', `{${shard}}`], { abortSignal })
      .catch(ignore)
      .finally(() => {
        probes--
      })
  }
  // Without a client the node is not connected yet (`minimizeConnections`): the command connects it.
  const isReady = (node: NodeRedisNode) => node.client === undefined || node.client.isReady === true
  return {
    cluster: true,
    keyPrefix: '',
    notReadyReason(shard) {
      if (!cluster.isOpen || cluster.slots?.length !== SLOTS) return NOT_READY
      const node = nodeOf(slotOf(shard))
      if (node && isReady(node)) return null
      probe(shard)
      return `${NOT_READY}: the master of this shard is away`
    },
    send: (shard, args) => cluster.sendCommand!(`{${shard}}`, false, args),
    masters: () =>
      cluster.masters!.map(node => ({
        name: node.address ?? '',
        isReady: isReady(node),
        send: async args => (await cluster.nodeClient!(node)).sendCommand!(args),
      })),
    master: shard => nodeOf(slotOf(shard))?.address ?? '',
    async dedicate(shard) {
      const node = nodeOf(slotOf(shard))
      if (!node) throw new Error('no master for this shard')
      return asDedicatedNodeRedis(await cluster.nodeClient!(node))
    },
  }
}
