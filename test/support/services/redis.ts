// Private Redis servers: one alone, one with replicas, three masters with three replicas, and sentinels.
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findBinary, freePort, type Running, start, startGuarded, until } from './process.ts'
import { redisCommand } from './redis-command.ts'

export interface RedisServer {
  readonly port: number
  readonly url: string
  /** One command; answers what redis-cli would print. */
  cli(...args: string[]): Promise<string>
  /** Numbers of `INFO commandstats`: calls by command name. */
  commandStats(): Promise<Record<string, number>>
  /** Ends it at once, as a crash does; with SIGTERM as an operator does. */
  kill(signal?: NodeJS.Signals): Promise<void>
  /** Starts it again on the same port, with what its folder holds. */
  restart(extra?: readonly string[]): Promise<void>
  pause(): void
  resume(): void
  stop(): Promise<void>
}

/** A node of a cluster: its port, and what its nodes.conf says of all nodes. */
interface Node {
  readonly port: number
  readonly conf: string
}

/**
 * Starts a redis-server without persistence unless told; `options` are `--name value` pairs. A `guarded` one ends with this
 * process.
 */
export async function startRedis(
  options: readonly string[] = [],
  { node, guarded = false }: { node?: Node; guarded?: boolean } = {},
): Promise<RedisServer> {
  const port = node?.port ?? (await freePort())
  const folder = mkdtempSync(join(tmpdir(), 'coatcheck-redis-'))
  if (node) writeFileSync(join(folder, 'nodes.conf'), node.conf)
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'no']
  const cli = (...command: string[]) => redisCommand(port, command)
  let running: Running
  const launch = async (extra: readonly string[] = []) => {
    const begin = guarded ? startGuarded.bind(null, folder) : start
    const server = begin(findBinary('redis-server')!, [...args, ...options, ...extra])
    running = server
    const ready = async () => {
      const pong = await cli('PING')
      if (!/PONG|NOAUTH|LOADING|MASTERDOWN/.test(pong)) throw new Error(pong)
    }
    await until('redis-server answering', ready, { server })
  }
  await launch()
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    cli,
    async commandStats() {
      const stats = await cli('INFO', 'commandstats')
      return Object.fromEntries(
        [...stats.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(([, name, calls]) => [name!, Number(calls)]),
      )
    },
    kill: (signal = 'SIGKILL') => running.stop(signal),
    restart: launch,
    pause: () => running.pause(),
    resume: () => running.resume(),
    async stop() {
      running.child.kill('SIGCONT')
      await running.stop('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export interface RedisCluster {
  readonly nodes: readonly RedisServer[]
  readonly masters: readonly RedisServer[]
  /** Replica of the master with the same index. */
  readonly replicas: readonly RedisServer[]
  readonly addresses: readonly { host: string; port: number }[]
  /** The node that serves a slot now. */
  masterOf(slot: number): Promise<RedisServer>
  /** Moves one slot between two masters, key by key, as redis-cli does it. */
  migrate(slot: number, from: RedisServer, to: RedisServer, pace?: number): Promise<void>
  stop(): Promise<void>
}

/**
 * Three masters and three replicas. Each finds in its nodes.conf what they would tell each other: to let them meet takes
 * a busy machine ten seconds and more.
 */
export async function startRedisCluster(
  options: readonly string[] = [],
  { guarded = false }: { guarded?: boolean } = {},
): Promise<RedisCluster> {
  const planned = await Promise.all(
    Array.from({ length: 6 }, async () => ({
      id: randomBytes(20).toString('hex'),
      port: await freePort(),
      bus: await freePort(),
    })),
  )
  const lineOf = ({ id, port, bus }: (typeof planned)[number], index: number, isItself: boolean) => {
    const shard = index % 3
    const first = Math.ceil((shard * 16384) / 3)
    const last = Math.ceil(((shard + 1) * 16384) / 3) - 1
    const [role, slots] = index < 3 ? ['master -', ` ${first}-${last}`] : [`slave ${planned[shard]!.id}`, '']
    return `${id} 127.0.0.1:${port}@${bus} ${isItself ? 'myself,' : ''}${role} 0 0 ${shard + 1} connected${slots}`
  }
  const nodes = await Promise.all(
    planned.map((node, me) => {
      const lines = planned.map((each, index) => lineOf(each, index, index === me))
      const settings = [
        ...['--cluster-enabled', 'yes', '--cluster-port', `${node.bus}`, '--cluster-node-timeout', '15000'],
        ...['--cluster-replica-validity-factor', '0', '--repl-ping-replica-period', '1'],
        ...['--repl-diskless-sync-delay', '0', '--cluster-allow-replica-migration', 'no', ...options],
      ]
      const conf = [...lines, 'vars currentEpoch 3 lastVoteEpoch 0', ''].join('\n')
      return startRedis(settings, { node: { port: node.port, conf }, guarded })
    }),
  )
  const [masters, replicas] = [nodes.slice(0, 3), nodes.slice(3)]
  const id = (node: RedisServer) => node.cli('CLUSTER', 'MYID')
  await Promise.all(
    nodes.map((node, index) =>
      until('the cluster agreeing', async () => {
        const isLinked = index < 3 || (await node.cli('INFO', 'replication')).includes('master_link_status:up')
        const isReady = isLinked && (await node.cli('CLUSTER', 'INFO')).includes('cluster_state:ok')
        if (!isReady) throw new Error(await node.cli('CLUSTER', 'NODES'))
      }),
    ),
  )
  return {
    nodes,
    masters,
    replicas,
    addresses: masters.map(({ port }) => ({ host: '127.0.0.1', port })),
    async masterOf(slot) {
      for (const node of nodes) {
        const myself = await node.cli('CLUSTER', 'NODES').catch(() => '')
        const line = myself.split('\n').find(l => l.includes('myself,master'))
        for (const range of line?.split(' ').slice(8) ?? []) {
          const [first, last = first] = range.split('-').map(Number)
          if (slot >= first! && slot <= last!) return node
        }
      }
      throw new Error(`no master for slot ${slot}`)
    },
    async migrate(slot, from, to, pace = 0) {
      const [fromId, toId] = await Promise.all([id(from), id(to)])
      await to.cli('CLUSTER', 'SETSLOT', `${slot}`, 'IMPORTING', fromId)
      await from.cli('CLUSTER', 'SETSLOT', `${slot}`, 'MIGRATING', toId)
      for (;;) {
        const keys = (await from.cli('CLUSTER', 'GETKEYSINSLOT', `${slot}`, '1')).split('\n').filter(Boolean)
        if (keys.length === 0) break
        await from.cli('MIGRATE', '127.0.0.1', `${to.port}`, '', '0', '5000', 'KEYS', ...keys)
        if (pace > 0) await new Promise(resolve => setTimeout(resolve, pace))
      }
      await to.cli('CLUSTER', 'SETSLOT', `${slot}`, 'NODE', toId)
      await from.cli('CLUSTER', 'SETSLOT', `${slot}`, 'NODE', toId)
    },
    async stop() {
      await Promise.all(nodes.map(node => node.stop()))
    },
  }
}

let shared: Promise<RedisCluster> | undefined

/** The one cluster that the files of this process share, emptied by `stop`. Who kills, pauses or moves needs another. */
export async function sharedRedisCluster(): Promise<RedisCluster> {
  shared ??= startRedisCluster([], { guarded: true })
  const cluster = await shared
  return { ...cluster, stop: async () => void (await Promise.all(cluster.masters.map(({ cli }) => cli('FLUSHALL')))) }
}

/**
 * Moves slots between the masters without end, `window` of them at a time, all keys with them; every slot is in turn.
 * `stop` finishes the window and answers how many slots were moved.
 */
export async function churn(
  cluster: RedisCluster,
  window = 400,
): Promise<{ moved(): number; stop(): Promise<number> }> {
  const { createClient } = await import('redis')
  const admins = await Promise.all(
    cluster.masters.map(async ({ port, cli }) => {
      const client = createClient({ url: `redis://127.0.0.1:${port}` })
      client.on('error', () => {})
      await client.connect()
      return { port, client, id: await cli('CLUSTER', 'MYID') }
    }),
  )
  type Admin = (typeof admins)[0]
  const ownersBy = async ({ client }: Admin) => {
    const owners = new Array<number>(16384)
    type Range = [number, number, [string, number]]
    for (const [first, last, [, port]] of (await client.sendCommand(['CLUSTER', 'SLOTS'])) as unknown as Range[]) {
      const owner = admins.findIndex(admin => admin.port === Number(port))
      owners.fill(owner, Number(first), Number(last) + 1)
    }
    return owners
  }
  // The next window begins when all masters agree on the last one: ownership travels by gossip.
  const agreed = () =>
    until('the masters agreeing', async () => {
      const views = await Promise.all(admins.map(ownersBy))
      if (new Set(views.map(String)).size > 1) throw new Error('not yet')
      return views[0]!
    })
  let owners = await agreed()
  let ended = false
  let moved = 0
  const move = async (slots: readonly number[]) => {
    if (slots.length === 0) return
    const each = (step: (slot: number, from: Admin, to: Admin) => Promise<unknown>) =>
      Promise.all(slots.map(slot => step(slot, admins[owners[slot]!]!, admins[(owners[slot]! + 1) % 3]!)))
    const setSlot = (client: Admin['client'], slot: number, ...rest: string[]) =>
      client.sendCommand(['CLUSTER', 'SETSLOT', `${slot}`, ...rest])
    await each((slot, from, to) => setSlot(to.client, slot, 'IMPORTING', from.id))
    await each((slot, from, to) => setSlot(from.client, slot, 'MIGRATING', to.id))
    await each(async (slot, from, to) => {
      for (;;) {
        // One key at a time, so that scripts meet slots whose keys are on both sides.
        const [key] = (await from.client.sendCommand([
          'CLUSTER',
          'GETKEYSINSLOT',
          `${slot}`,
          '1',
        ])) as unknown as string[]
        if (key === undefined) return
        await from.client.sendCommand(['MIGRATE', '127.0.0.1', `${to.port}`, key, '0', '5000'])
        await new Promise(resolve => setTimeout(resolve, 2))
      }
    })
    await each((slot, _, to) => setSlot(to.client, slot, 'NODE', to.id))
    await each((slot, from, to) => setSlot(from.client, slot, 'NODE', to.id))
    owners = await agreed()
    moved += slots.length
  }
  const done = (async () => {
    // Slots far apart, so that no master is ever left without any.
    const stride = Math.floor(16384 / window)
    for (let start = 0; !ended; start = (start + 1) % stride) {
      const slots = Array.from({ length: window }, (_, i) => i * stride + start)
      // One source at a time: two importing masters could claim the same epoch.
      for (const from of [0, 1, 2]) await move(slots.filter(slot => owners[slot] === from))
    }
  })()
  return {
    moved: () => moved,
    async stop() {
      ended = true
      await done
      for (const { client } of admins) client.destroy()
      return moved
    },
  }
}

function expectAll(answer: string, patterns: readonly RegExp[]): void {
  if (!patterns.every(pattern => pattern.test(answer))) throw new Error(answer)
}

export interface RedisSentinels {
  readonly name: string
  readonly master: RedisServer
  readonly replica: RedisServer
  readonly sentinels: readonly { host: string; port: number }[]
  stop(): Promise<void>
}

/** A master, its replica and three sentinels that fail over after a second. */
export async function startRedisSentinels(): Promise<RedisSentinels> {
  const master = await startRedis(['--repl-diskless-sync-delay', '0'])
  const replica = await startRedis(['--replicaof', `127.0.0.1 ${master.port}`, '--repl-diskless-sync-delay', '0'])
  const name = 'coats'
  const planned = await Promise.all(
    Array.from({ length: 3 }, async () => ({ id: randomBytes(20).toString('hex'), port: await freePort() })),
  )
  const watchers = planned.map(({ id, port }) => {
    const folder = mkdtempSync(join(tmpdir(), 'coatcheck-sentinel-'))
    const lines = [
      `port ${port}`,
      'bind 127.0.0.1',
      `dir ${folder}`,
      `sentinel myid ${id}`,
      `sentinel monitor ${name} 127.0.0.1 ${master.port} 2`,
      `sentinel down-after-milliseconds ${name} 1000`,
      `sentinel failover-timeout ${name} 5000`,
      // What they would hear from the master, some seconds later.
      `sentinel known-replica ${name} 127.0.0.1 ${replica.port}`,
      ...planned
        .filter(other => other.id !== id)
        .map(other => `sentinel known-sentinel ${name} 127.0.0.1 ${other.port} ${other.id}`),
    ]
    writeFileSync(join(folder, 'sentinel.conf'), lines.join('\n'))
    const running = start(findBinary('redis-server')!, [join(folder, 'sentinel.conf'), '--sentinel'])
    const cli = (...args: string[]) => redisCommand(port, args)
    return { port, folder, running, cli }
  })
  await until('the sentinels knowing each other and the servers', async () => {
    for (const { cli } of watchers) {
      expectAll(await cli('SENTINEL', 'MASTER', name), [
        /num-slaves\n1\n/,
        /num-other-sentinels\n2\n/,
        /flags\nmaster\n/,
      ])
      expectAll(await cli('SENTINEL', 'REPLICAS', name), [/flags\nslave\n/, /master-link-status\nok\n/])
      expectAll(await cli('SENTINEL', 'SENTINELS', name), [/flags\nsentinel\n(.*\n)*flags\nsentinel\n/])
    }
  })
  return {
    name,
    master,
    replica,
    sentinels: watchers.map(({ port }) => ({ host: '127.0.0.1', port })),
    async stop() {
      for (const { running, folder } of watchers) {
        await running.stop('SIGKILL')
        rmSync(folder, { recursive: true, force: true })
      }
      await Promise.all([master.stop(), replica.stop()])
    },
  }
}
