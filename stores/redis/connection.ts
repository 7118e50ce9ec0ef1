// A connection of no use is left, and the client makes a new one: its server answers READONLY (it was the primary, and
// another one has its address now), or calls waited and nothing at all came (a firewall forgot it, a host was lost).
import { setImmediate } from 'node:timers'
import { isThenable } from '../../src/time/within.ts'
import { isAnswer, NoUse, refusalOf, saysNo } from './errors.ts'

/** How long calls wait at least before a silent connection is left, in ms. */
const PATIENCE = 2000
/** From one leave of a connection to the next at least, in ms. */
const LEAVE_EVERY = 3000
const READONLY = 'READONLY: the server has become a replica, and what it says may be out of date'
const SILENT = 'no answer: the connection was silent, and is left for a new one'
const NEVER = Number.NEGATIVE_INFINITY

/** Members of the clients, and of their parts, that their public types lack. */
export interface Inner {
  call?(command: string, args: string[]): Promise<unknown>
  sendCommand?(...args: unknown[]): Promise<unknown>
  execute?(task: (client: Inner) => Promise<unknown>): Promise<unknown>
  on?(event: string, listener: (node?: Inner) => void): unknown
  nodes?(role: string): Inner[]
  nodeClient?(node: unknown): Promise<Inner> | Inner
  refreshSlotsCache?(done: (error: unknown) => void): void
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

export type Send = (args: string[]) => Promise<unknown>

/** What the connections of a client have in common. */
export class Server {
  readonly client: Inner
  /** How often connections have broken so far. The client may send a command again after that. */
  breaks = 0
  /** When a write was last refused by a replica. */
  refusedAt = NEVER
  leftAt = NEVER
  why = ''
  /** Connections on which calls wait. */
  readonly waiting = new Set<Connection>()

  constructor(client: Inner) {
    this.client = client
    // The loss of a replica, which gets no command, does not matter: iovalkey tells of many.
    const count = (node?: Inner) => {
      if (node?.options?.readOnly !== true) this.breaks++
    }
    // Of ioredis, and of the client of Sentinel. No other client sends a command again.
    for (const event of ['close', '-node', 'topology-change', 'client-error']) client.on?.(event, count)
  }

  /** Why a connection was left a moment ago, or `null`: a new one may be there soon. */
  left = () => (performance.now() < this.leftAt + LEAVE_EVERY ? new NoUse(this.why) : null)
  /** Leaves the connections on which calls waited, and nothing came. To be awaited before a command is sent. */
  leaveSilent = async () => {
    for (const each of this.waiting)
      if (each.isSilent()) {
        // After a blocked event loop the answer may be there, unread.
        await new Promise(setImmediate)
        if (each.isSilent()) each.leave(SILENT)
      }
  }
}

/** A connection of a client, and those that the client makes after it. */
export class Connection {
  readonly #server: Server
  readonly #inner: Inner
  readonly #send: Send
  #leftAt = NEVER
  /** Why it was left; `null` again once a new one is open. */
  #left: string | null = null
  /** When it was asked, and said that its server is a master. */
  #provenAt = NEVER
  #isMaster: Promise<boolean> | null = null
  /** Since when calls wait, and nothing has come; 0 if none does. */
  #silentSince = 0
  #patience = 0

  constructor(server: Server, inner: Inner) {
    this.#server = server
    this.#inner = inner
    this.#send = sendOf(inner)
    inner.on!('ready', this.#open)
  }

  /**
   * Sends a command of a call that may take so long, in ms. Rejects with `NoUse` if the connection is of none.
   *
   * @param absent the name of a key that is never there
   */
  async send(args: string[], timeout: number, absent: string, send = this.#send): Promise<unknown> {
    if (this.#left !== null) throw new NoUse(this.#left)
    const server = this.#server
    const sentAt = performance.now()
    const isScript = args[0]!.startsWith('EVAL')
    if (server.refusedAt > this.#provenAt) {
      this.#isMaster ??= this.#prove(timeout, absent)
      if (!(await this.#isMaster)) {
        this.leave(READONLY)
        throw new NoUse(READONLY)
      }
    }
    const answer = await this.#ask(send, args, timeout).catch(error => {
      if (refusalOf(error) === 'READONLY') {
        server.refusedAt = performance.now()
        this.#isMaster = Promise.resolve(false)
        this.leave(READONLY)
      }
      if (this.#leftAt < sentAt || isAnswer(error)) throw error
      throw isScript ? new Error(SILENT, { cause: error }) : new NoUse(SILENT)
    })
    // It waited while a write was refused. A script that wrote did so before.
    if (server.refusedAt > sentAt && (!isScript || saysNo(answer))) throw new NoUse(READONLY)
    return answer
  }

  /** Asks a connection that a refused write made doubtful, once. A user who may not ask for the role writes nothing. */
  async #prove(timeout: number, absent: string): Promise<boolean> {
    const askedAt = performance.now()
    const ask = (...args: string[]) => this.#ask(this.#send, args, timeout)
    const role = await ask('ROLE')
      .catch(error => (refusalOf(error) === 'NOPERM' ? ask('DEL', absent).then(() => 'master') : ''))
      .catch(() => '')
    const isMaster = String(role).startsWith('master')
    if (isMaster) [this.#provenAt, this.#isMaster] = [askedAt, null]
    return isMaster
  }

  async #ask(send: Send, args: string[], timeout: number): Promise<unknown> {
    this.#wait(timeout)
    try {
      const answer = await send(args)
      this.#hear()
      return answer
    } catch (error) {
      if (isAnswer(error)) this.#hear()
      throw error
    }
  }

  #wait(timeout: number): void {
    if (this.#silentSince === 0) {
      this.#silentSince = performance.now()
      this.#patience = PATIENCE
      this.#server.waiting.add(this)
    }
    this.#patience = Math.max(this.#patience, 2 * timeout)
  }

  #hear(): void {
    this.#silentSince = 0
    this.#server.waiting.delete(this)
  }

  #open = () => {
    this.#left = this.#isMaster = null
    this.#hear()
  }

  isSilent(): boolean {
    return this.#silentSince !== 0 && performance.now() > this.#silentSince + this.#patience && this.#mayLeave()
  }

  /** At most once in a while, and never while the client makes a new one, or if it would make none. */
  #mayLeave(): boolean {
    const { status, isReady, options } = this.#inner
    if (performance.now() < this.#leftAt + LEAVE_EVERY) return false
    // The nodes of a cluster have no strategy: the cluster makes them anew.
    const isMadeAnew = this.#inner !== this.#server.client || typeof options?.retryStrategy === 'function'
    return isReady ?? (status === 'ready' && isMadeAnew)
  }

  /** Leaves it by the client's own means. */
  leave(why: string): void {
    if (!this.#mayLeave()) return
    this.#leftAt = this.#server.leftAt = performance.now()
    this.#left = this.#server.why = why
    // A farewell may stay without an answer as well.
    this.#wait(0)
    const { options, getMasterNode } = this.#inner
    const { reconnectStrategy } = (options?.socket ?? {}) as { reconnectStrategy?: unknown }
    if (this.#inner.call) this.#inner.disconnect!(true)
    else if (why === READONLY && !getMasterNode && reconnectStrategy !== false)
      // The server answers and closes: others on this client lose no more than with any lost connection.
      this.#send(['QUIT']).catch(() => {})
    else {
      const destroyed = this.#inner.destroy!()
      // In one turn where that is possible: in another one the application may close its client.
      const connected = isThenable(destroyed) ? destroyed.then(this.#connect) : this.#connect()
      connected.then(this.#open, () => {})
    }
  }

  #connect = () => this.#inner.connect!()
}

/** How to send by a client, or by a part of one. */
export function sendOf(inner: Inner): Send {
  // An array, because thousands of arguments would not fit on the stack.
  if (inner.call) return args => inner.call!(args[0]!, args.slice(1))
  return inner.getMasterNode ? args => inner.sendCommand!(false, args) : args => inner.sendCommand!(args)
}
