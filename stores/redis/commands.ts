// Sends commands: at once or not at all, never after the deadline, and again if Redis says so.
import { DEFAULT_STORE_TIMEOUT, type StoreCall } from '../../src/contract/store.ts'
import type { Link } from './client.ts'
import { isPassing, NotReady, refusalOf, SentAgain, saysNo, TooLate } from './errors.ts'
import { SLOTS, shardOfKey, slotOf } from './keys.ts'
import type { Script } from './scripts.ts'

/** The answer of a script: its outcome, and the values that go with it. */
export type Answer = [outcome: string, ...rest: unknown[]]

/** The arguments of a script that are no keys. */
export type Args = readonly (string | number)[]

/** The commands of one call of the store: they share a deadline. */
export interface Call extends StoreCall {
  /** On the scale of `performance.now()`. */
  readonly deadline: number
  /** How long the call may take, in ms. */
  readonly timeout: number
  /** Something has been written: after a failure the outcome is unknown. */
  partly: boolean
}
export function callOf({ now, deadline: given }: StoreCall): Call {
  const deadline = deadlineOf(given)
  return { now, deadline, timeout: deadline - performance.now(), partly: false }
}

export const deadlineOf = (deadline: number | undefined) => deadline ?? performance.now() + DEFAULT_STORE_TIMEOUT

export class Commands {
  readonly link: Link
  // Per slot, because masters have their own clocks: the server's clock in epoch ms minus performance.now(), 0 if unknown.
  readonly #clocks: Float64Array
  #lastClock = 0
  #wasReady = false

  constructor(link: Link) {
    this.link = link
    this.#clocks = new Float64Array(link.isCluster ? SLOTS : 1)
  }

  /** Sends a command that changes nothing to the master of `key`. */
  send(call: Call, key: string, args: string[]): Promise<unknown> {
    return this.again(call, shardOfKey(key), () => this.link.send(shardOfKey(key), args, call.timeout))
  }

  /** Runs a script at the master of `key`. */
  async run(call: Call, script: Script, key: string, keys: readonly string[], args: Args): Promise<Answer> {
    const shard = shardOfKey(key)
    const rest = [call.now, ...args].map(String)
    let isTwice = false
    const attempt = async () => {
      const breaks = this.link.server.breaks
      try {
        return await this.#run(call, script, shard, [String(keys.length), ...keys], rest)
      } finally {
        isTwice ||= this.link.server.breaks !== breaks
      }
    }
    const again = (cause?: unknown) =>
      new SentAgain('a connection broke, and the client may have sent the command twice', { cause })
    // The client may have sent it twice: that the second delivery failed, or found nothing to do, says nothing about the first.
    const answer = await this.again(call, shard, attempt).catch(error => {
      throw isTwice ? again(error) : error
    })
    if (isTwice && saysNo(answer)) throw again()
    return answer
  }

  async #run(call: Call, script: Script, shard: string, keys: string[], args: string[]): Promise<Answer> {
    const { deadline, timeout } = call
    const slot = this.link.isCluster ? slotOf(shard) : 0
    for (;;) {
      const sentAt = performance.now()
      // With no clock known yet the script answers 'late' and tells the time. Redis tells whole milliseconds, and a timer
      // of Node may be early by one.
      const clock = this.#clocks[slot] || this.#lastClock
      const until = clock === 0 ? 0 : Math.floor(clock + deadline) - 2
      const evaluate = (...how: string[]) => this.link.send(shard, [...how, ...keys, String(until), ...args], timeout)
      const reply = await evaluate('EVALSHA', script.sha).catch(error => {
        if (refusalOf(error) !== 'NOSCRIPT') throw error
        // EVAL also fills the script cache of the node that it reaches; SCRIPT LOAD has no key to go by.
        return evaluate('EVAL', script.source)
      })
      if (!Array.isArray(reply)) throw new Error('the answer of a script was not understood')
      const [outcome, time, ...rest] = reply
      this.#learn(slot, Number(time), sentAt)
      if (String(outcome) !== 'late') return [String(outcome), ...rest]
      if (performance.now() >= deadline) throw new TooLate('the server came to the command after its deadline')
    }
  }

  // The true difference is between the clock minus the time of arrival and the clock minus the time of sending. The
  // smallest possible one is kept: the server may refuse a command a little early, but never runs one late.
  #learn(slot: number, time: number, sentAt: number) {
    const least = time - performance.now()
    const known = this.#clocks[slot]!
    this.#lastClock = known === 0 ? least : Math.min(Math.max(known, least), time - sentAt)
    this.#clocks[slot] = this.#lastClock
  }

  /**
   * Tries until the deadline as long as Redis asks for it, while the client makes its first connection, and for a moment
   * while it makes one in place of one that was left.
   */
  async again<T>({ deadline }: Call, shard: string, attempt: () => Promise<T>): Promise<T> {
    // A little before the caller gives up, whose error would say no more than 'no answer in time'.
    const end = deadline - Math.min(100, (deadline - performance.now()) / 4)
    for (let wait = 10; ; wait = Math.min(wait * 2, 200)) {
      try {
        if (this.link.server.waiting.size > 0) await this.link.server.leaveSilent()
        const reason = this.link.notReady(shard)
        if (reason !== null) throw new NotReady(reason)
        this.#wasReady = true
        return await attempt()
      } catch (error) {
        const isAway = refusalOf(error) === 'NOTREADY'
        const left = isAway ? this.link.server.left() : null
        const isFinal = isAway ? this.#wasReady && left === null : !isPassing(error)
        if (isFinal || performance.now() + wait >= end) throw left ?? error
      }
      await new Promise(resolve => setTimeout(resolve, wait * (0.5 + Math.random() / 2)))
    }
  }
}
