// Valkey's own client, `@valkey/valkey-glide`. It does not tell whether it is connected: while it is not, a command waits
// in it for `requestTimeout` (250 ms unless set) and fails then. So nothing waits for longer; that nothing is written late
// is seen to on the server, where every script compares its deadline.
import { follower } from './database.ts'
import { type Dedicated, type Link, type Master, NotReady } from './link.ts'

type Route =
  | 'allPrimaries'
  | { type: 'primarySlotKey'; key: string }
  | { type: 'routeByAddress'; host: string; port: number }
interface Config extends Record<string, unknown> {
  readonly readFrom?: unknown
  readonly readOnly?: unknown
  readonly clientSideCache?: unknown
  readonly pubsubSubscriptions?: unknown
}
/** What the store uses of a client; all but the first is beyond its public type. */
export interface GlideInner {
  customCommand(args: string[], options: { decoder: number; route?: Route }): Promise<unknown>
  readonly isClosed?: boolean
  readonly config?: Config
  /** Of `GlideClusterClient` alone. */
  readonly pubsubShardChannels?: unknown
  close(): void
}

/** `Decoder.Bytes`: as text, a value that is not UTF-8 would be an error and no value. */
const BYTES = 0
const CLOSED = 'the Valkey client is closed'
const CANNOT_WAIT =
  'GlideClusterClient follows redirections by itself, so that WAIT could ask another master than the one that was written to; node-redis and ioredis can wait'
const PROBE_EVERY = 100

/**
 * The link over a client of valkey-glide.
 *
 * @throws TypeError for one that is closed, reads from replicas, or keeps what it read: a session that was ended would
 * live on there.
 */
export function valkeyGlide(client: GlideInner): Link {
  const { readFrom = 'primary', readOnly, clientSideCache } = client.config ?? {}
  const setting = readFrom !== 'primary' ? `readFrom: '${readFrom}'` : readOnly === true ? 'readOnly: true' : null
  if (setting !== null)
    throw new TypeError(
      `the client reads from replicas (${setting}), where an ended session lives on: give the store one without it`,
    )
  if (clientSideCache !== undefined && clientSideCache !== null)
    throw new TypeError(
      'the client keeps what it reads (clientSideCache), where an ended session lives on: give the store one without it',
    )
  if (client.isClosed) throw new TypeError(`${CLOSED}: create a new one`)
  return typeof client.pubsubShardChannels === 'function' ? overCluster(client) : overServer(client)
}

function overServer(client: GlideInner): Link {
  const commands = new Answering(args => command(client, args))
  const notReadyReason = () => (client.isClosed ? CLOSED : commands.reason)
  const send = (args: string[]) => commands.send(args)
  return {
    cluster: false,
    keyPrefix: '',
    notReadyReason,
    send: (_shard, args) => send(args),
    masters: () => [{ name: '', isReady: notReadyReason() === null, send }],
    master: () => '',
    dedicate: () => dedicated(client),
  }
}

function overCluster(client: GlideInner): Link {
  const at = (shard: string): Route => ({ type: 'primarySlotKey', key: `{${shard}}` })
  return {
    cluster: true,
    keyPrefix: '',
    notReadyReason: () => (client.isClosed ? CLOSED : null),
    send: (shard, args) => command(client, args, at(shard)),
    // The client repeats an MGET until a slot which is moving has arrived, also on one node. As commands of their own the
    // keys are found on either side.
    sendTogether: (shard, [, ...names]) =>
      Promise.all(
        names.map(name =>
          command(client, ['GET', name], at(shard)).catch(error => {
            // MGET reads a key of another type as absent.
            if (/^WRONGTYPE/.test((error as Error).message)) return null
            throw error
          }),
        ),
      ),
    async masters() {
      // One master alone answers by itself, several with their addresses.
      const answer = await command(client, ['CLUSTER', 'NODES'], 'allPrimaries')
      const addresses = Array.isArray(answer)
        ? answer.map(([address]) => String(address))
        : [ownAddress(String(answer))]
      return addresses.map((name): Master => {
        const colon = name.lastIndexOf(':')
        const route: Route = { type: 'routeByAddress', host: name.slice(0, colon), port: Number(name.slice(colon + 1)) }
        return { name, isReady: true, send: args => command(client, args, route) }
      })
    },
    master: () => '',
    dedicate: () => Promise.reject(new NotReady(CANNOT_WAIT)),
    cannotWait: CANNOT_WAIT,
  }
}

const ownAddress = (nodes: string) => / ([^\s@,]+)\S* \S*myself/.exec(nodes)?.[1] ?? ''

async function command(client: GlideInner, args: string[], route?: Route): Promise<unknown> {
  try {
    return plain(await client.customCommand(args, route ? { decoder: BYTES, route } : { decoder: BYTES }))
  } catch (error) {
    throw asRedisSaysIt(error)
  }
}

// Where the client knows an answer to be pairs (WITHSCORES, several nodes), it makes objects of them.
function plain(answer: unknown): unknown {
  if (!Array.isArray(answer) || !isPair(answer[0])) return answer
  return answer.map(({ key, value }) => [key, value])
}
const isPair = (item: unknown) => typeof item === 'object' && item !== null && 'key' in item && 'value' in item

// The client writes codes of errors in words of its own.
const CODES: Readonly<Record<string, string>> = {
  Ask: 'ASK',
  AuthenticationFailed: 'WRONGPASS',
  BusyLoadingError: 'LOADING',
  ClusterDown: 'CLUSTERDOWN',
  CrossSlot: 'CROSSSLOT',
  MasterDown: 'MASTERDOWN',
  Moved: 'MOVED',
  NoScriptError: 'NOSCRIPT',
  PermissionDenied: 'NOPERM',
  ReadOnly: 'READONLY',
  ResponseError: 'ERR',
  TryAgain: 'TRYAGAIN',
}
function asRedisSaysIt(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  // Not sent, because `inflightRequestsLimit` are under way (1,000 unless set): in a moment there is room again.
  if (error.message.startsWith('Reached maximum inflight requests')) return new Error(`TRYAGAIN ${error.message}`)
  const [, word, rest] = /^An error was signalled by the server: - (\w+): (.*)/s.exec(error.message) ?? []
  const [, code, detail] = /^([A-Z]+): (.*)/s.exec(error.message) ?? []
  const message =
    word !== undefined ? `${CODES[word] ?? word} ${rest}` : code !== undefined ? `${code} ${detail}` : null
  return message === null ? error : Object.assign(new Error(message), { name: error.name })
}

/**
 * Tells what the client does not: after a command without answer no other is sent until a PING is answered. So an outage
 * costs those commands their time that were under way when it began, and all others fail at once.
 */
class Answering {
  readonly #command: (args: string[]) => Promise<unknown>
  #isAway = false

  constructor(command: (args: string[]) => Promise<unknown>) {
    this.#command = command
  }

  get reason(): string | null {
    return this.#isAway ? 'the Valkey client gets no answer from its server' : null
  }

  async send(args: string[]): Promise<unknown> {
    try {
      return await this.#command(args)
    } catch (error) {
      if (isSilence(error) && !this.#isAway) {
        this.#isAway = true
        this.#probe()
      }
      throw error
    }
  }

  #probe() {
    this.#command(['PING']).then(
      () => {
        this.#isAway = false
      },
      error => {
        // An error is an answer too; a client that was closed gives no other.
        if (isSilence(error)) setTimeout(() => this.#probe(), PROBE_EVERY).unref()
        else this.#isAway = false
      },
    )
  }
}
const isSilence = (error: unknown) =>
  error instanceof Error && (error.name === 'TimeoutError' || error.name === 'ConnectionError')

// The client connects again by itself, and WAIT on a new connection knows nothing of what the one before wrote: it would
// acknowledge at once. So the connection has to be the same after the WAIT as when it was opened.
async function dedicated(client: GlideInner): Promise<Dedicated> {
  const { pubsubSubscriptions: _, ...config } = client.config!
  const own = await (
    client.constructor as unknown as { createClient(config: object): Promise<GlideInner> }
  ).createClient(config)
  const identity = async () => {
    const [id, server] = await Promise.all([command(own, ['CLIENT', 'ID']), command(own, ['INFO', 'server'])])
    return `${id} ${/run_id:\w+/.exec(String(server))}`
  }
  const opened = await identity()
  let isSame = true
  return {
    follow: follower(
      args => command(client, args),
      args => command(own, args),
    ),
    async send(args) {
      try {
        const answer = await command(own, args)
        if (args[0] !== 'WAIT' || (await identity()) === opened) return answer
      } catch (error) {
        if (isSilence(error)) isSame = false
        throw error
      }
      isSame = false
      throw new Error('the client connected anew before replicas acknowledged')
    },
    usable: () => isSame && own.isClosed === false,
    close: () => own.close(),
  }
}
