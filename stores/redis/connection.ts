// A connection of no use is left, and the client makes a new one: its server answers READONLY (it was the primary, and
// another one has its address now), or calls waited and nothing at all came (a firewall forgot it, a host was lost).
import { setImmediate } from 'node:timers'
import { isAnswer, NoUse, refusalOf, saysNo } from './errors.ts'
import { text } from './format.ts'

/** How long calls wait at least before a silent connection is left, in ms. */
const PATIENCE = 2000
/** From one leave of a connection to the next at least, in ms. */
const LEAVE_EVERY = 3000
const READONLY = 'READONLY: the server has become a replica, and what it says may be out of date'
const SILENT = 'no answer: the connection was silent, and is left for a new one'

export type Send = (args: string[]) => Promise<unknown>
/** What a client lets the store do with a connection. */
export interface Means {
  readonly send: Send
  /** Whether it is open, and the client would make a new one. */
  canLeave(): boolean
  /** What it answers, if anything, resolves when the new one is open. */
  leave(isSilent: boolean): Promise<unknown> | undefined
  onReady(listener: () => void): unknown
}

/** What the connections of a client have in common. */
export class Server {
  /** When a write was last refused by a replica. */
  refusedAt = Number.NEGATIVE_INFINITY
  leftAt = Number.NEGATIVE_INFINITY
  why = ''
  /** Connections on which calls wait. */
  readonly waiting = new Set<Connection>()
  /** Why a connection was left a moment ago, or `null`: a new one may be there soon. */
  left = () => (performance.now() < this.leftAt + LEAVE_EVERY ? new NoUse(this.why) : null)
  leaveSilent = async () => {
    for (const each of this.waiting)
      if (each.isSilent()) {
        // After a blocked event loop the answer may be there, unread.
        await new Promise(setImmediate)
        if (each.isSilent()) each.leave(SILENT)
      }
  }
}

/** What is known of a connection from its opening on: how many calls wait, since when nothing came, and how long they may. */
class Opened {
  left: string | null = null
  isMaster: Promise<boolean> | null = null
  waiting = 0
  silentSince = 0
  patience = 0
}

/** A connection of a client, and those that the client makes after it. */
export class Connection {
  #opened = new Opened()
  #leftAt = Number.NEGATIVE_INFINITY
  #provenAt = Number.NEGATIVE_INFINITY
  readonly #server: Server
  readonly #means: Means

  constructor(server: Server, means: Means) {
    this.#server = server
    this.#means = means
    means.onReady(this.#open)
  }

  /**
   * Sends a command of a call that may take so long, in ms. Rejects with `NoUse` if the connection is of none.
   *
   * @param absent the name of a key that is never there
   */
  async send(args: string[], timeout: number, absent: string, send = this.#means.send): Promise<unknown> {
    if (this.#opened.left !== null) throw new NoUse(this.#opened.left)
    const sentAt = performance.now()
    const isScript = args[0]!.startsWith('EVAL')
    if (this.#server.refusedAt > this.#provenAt && !(await this.#prove(sentAt, timeout, absent))) {
      this.leave(READONLY)
      throw new NoUse(READONLY)
    }
    const answer = await this.#ask(send, args, timeout).catch(error => {
      if (refusalOf(error) === 'READONLY') {
        this.#server.refusedAt = performance.now()
        this.#opened.isMaster = Promise.resolve(false)
        this.leave(READONLY)
      }
      if (this.#leftAt < sentAt || isAnswer(error)) throw error
      throw isScript ? new Error(SILENT, { cause: error }) : new NoUse(SILENT)
    })
    // It waited while a write was refused. A script that wrote did so before.
    if (this.#server.refusedAt > sentAt && (!isScript || saysNo(answer))) throw new NoUse(READONLY)
    return answer
  }

  /** Asks a connection that a refused write made doubtful, once. A user who may not ask for the role writes nothing. */
  #prove(now: number, timeout: number, absent: string): Promise<boolean> {
    const ask = (...args: string[]) => this.#ask(this.#means.send, args, timeout)
    const mayWrite = async (error: unknown) => refusalOf(error) === 'NOPERM' && (await ask('DEL', absent)) !== undefined
    this.#opened.isMaster ??= ask('ROLE')
      .then(role => text((role as unknown[])[0]) === 'master', mayWrite)
      .catch(() => false)
      .then(isMaster => {
        if (isMaster) [this.#provenAt, this.#opened.isMaster] = [now, null]
        return isMaster
      })
    return this.#opened.isMaster
  }

  async #ask(send: Send, args: string[], timeout: number): Promise<unknown> {
    const opened = this.#opened
    const settle = (isHeard: boolean) => {
      opened.waiting--
      if (isHeard) opened.silentSince = opened.waiting > 0 ? performance.now() : 0
      if (this.#opened.silentSince === 0) this.#server.waiting.delete(this)
    }
    opened.waiting++
    if (opened.silentSince === 0) [opened.silentSince, opened.patience] = [performance.now(), PATIENCE]
    opened.patience = Math.max(opened.patience, 2 * timeout)
    this.#server.waiting.add(this)
    const answer = send(args)
    answer.then(
      () => settle(true),
      error => settle(isAnswer(error)),
    )
    return answer
  }

  #mayLeave = () => performance.now() >= this.#leftAt + LEAVE_EVERY && this.#means.canLeave()

  isSilent(): boolean {
    const { silentSince, patience } = this.#opened
    return silentSince !== 0 && performance.now() > silentSince + patience && this.#mayLeave()
  }

  leave(why: string): void {
    if (!this.#mayLeave()) return
    this.#leftAt = this.#server.leftAt = performance.now()
    this.#opened.left = this.#server.why = why
    // A farewell may stay without an answer as well.
    this.#opened.silentSince ||= this.#leftAt
    this.#server.waiting.add(this)
    this.#means.leave(why === SILENT)?.then(this.#open, () => {})
  }

  #open = () => {
    this.#opened = new Opened()
    this.#server.waiting.delete(this)
  }
}
