// Sends commands: at once or not at all, never after the deadline, and once more where Redis asks for it.
import { SessionStoreError, type StoreOperation } from '../../src/contract/errors.ts'
import { DEFAULT_STORE_TIMEOUT } from '../../src/contract/store.ts'
import { SLOTS, slotOf } from './keys.ts'
import { type Link, NotReady } from './link.ts'
import { isPassing, refusalOf, withoutArguments } from './refusals.ts'
import { type ReplicaWaiter, TooFewReplicas } from './replicas.ts'
import type { Script } from './scripts.ts'

/** A call of a script: what is declared, what is passed, and whether replicas have to acknowledge it. */
export interface Run {
  readonly shard: string
  readonly keys: readonly string[]
  readonly now: number
  readonly args: readonly (string | number)[]
  readonly acknowledged?: boolean
}

/** One call of a verb: all its commands share a deadline. */
export interface Call {
  readonly deadline: number
  /** Something has been written, so that a failure leaves a part behind. */
  partly: boolean
  run(script: Script, run: Run): Promise<[string, ...unknown[]]>
  read(shard: string, args: string[]): Promise<unknown>
}

// Redis tells whole milliseconds, and a timer of Node may be early by one.
const CLOCK_GRAIN = 2

/** When a call has to end, on the scale of `performance.now()`. */
export const deadlineOf = (deadline: number | undefined) => deadline ?? performance.now() + DEFAULT_STORE_TIMEOUT

/** When to give up: a little before the caller does, whose error would say no more than 'no answer in time'. */
export const endOf = (deadline: number) => deadline - Math.min(100, (deadline - performance.now()) / 4)

/** The command was refused on the server because its time was over. */
export class TooLate extends Error {}

/** The command was refused, and may have been run before: a connection broke, and the client sends again what it held. */
class SentAgain extends Error {}

/** Resolves with `silent` where nothing has come until then. */
export function inTime<T>(work: Promise<T>, end: number): Promise<T | 'silent'> {
  let timer: NodeJS.Timeout | undefined
  const silence = new Promise<'silent'>(resolve => {
    timer = setTimeout(resolve, Math.max(0, end - performance.now()), 'silent')
  })
  return Promise.race([work, silence]).finally(() => clearTimeout(timer))
}

export const pause = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))

export class Commands {
  readonly #link: Link
  readonly #replicas: ReplicaWaiter | null
  // Per slot: the server's clock in epoch ms minus performance.now(), NaN while unknown. Masters have their own clocks.
  readonly #clocks: Float64Array
  #lastClock = Number.NaN
  #everReady = false

  constructor(link: Link, replicas: ReplicaWaiter | null) {
    this.#link = link
    this.#replicas = replicas
    this.#clocks = new Float64Array(link.cluster ? SLOTS : 1).fill(Number.NaN)
  }

  /** Reads one key, or several of the shard, now; answers `null` where the client is not ready for it. */
  atOnce(shard: string, command: 'GET' | 'MGET', names: readonly string[]): Promise<unknown> | null {
    const link = this.#link
    if (link.notReadyReason(shard) !== null) return null
    this.#everReady = true
    const args = [command, ...names]
    return command === 'MGET' && link.sendTogether ? link.sendTogether(shard, args) : link.send(shard, args)
  }

  /** A command that changes nothing. */
  read(shard: string, args: string[], deadline: number | undefined): Promise<unknown> {
    return this.#again(shard, deadlineOf(deadline), () => this.#link.send(shard, args))
  }

  /** The checks before the first command of the store, as often as it takes until the deadline. */
  first<T>(shard: string, deadline: number, attempt: () => Promise<T>): Promise<T> {
    return this.#again(shard, deadline, attempt)
  }

  /** Runs a script; answers its outcome and what follows it. */
  run(
    script: Script,
    { shard, keys, now, args, acknowledged }: Run,
    deadline: number,
  ): Promise<[string, ...unknown[]]> {
    const slot = this.#link.cluster ? slotOf(shard) : 0
    const acknowledge = acknowledged === true ? this.#replicas : null
    const breaks = this.#link.breaks?.()
    const run = this.#again<[string, ...unknown[]]>(shard, deadline, async () => {
      for (;;) {
        const sentAt = performance.now()
        const known = this.#clocks[slot]! || this.#lastClock
        // With no clock known yet the script answers 'late' and tells the time.
        const until = Number.isNaN(known) ? 0 : Math.floor(known + deadline) - CLOCK_GRAIN
        const tail = [String(keys.length), ...keys, String(until), String(now), ...args.map(String)]
        const reply = acknowledge
          ? await acknowledge.run(shard, script, tail, deadline)
          : await this.#evaluate(shard, script, tail)
        if (!Array.isArray(reply)) throw new Error('the answer of a script was not understood')
        const [outcome, clock, ...rest] = reply
        this.#learn(slot, Number(clock), sentAt)
        if (String(outcome) !== 'late') return [String(outcome), ...rest]
        if (performance.now() >= deadline) throw new TooLate('the server came to the command after its deadline')
      }
    })
    return breaks === undefined
      ? run
      : run.catch(error => {
          // What refused the second delivery says nothing of the first.
          if (this.#link.breaks?.() === breaks) throw error
          throw new SentAgain('a connection broke, and the client may have sent the command twice', { cause: error })
        })
  }

  async #evaluate(shard: string, script: Script, tail: string[]): Promise<unknown> {
    try {
      return await this.#link.send(shard, ['EVALSHA', script.sha, ...tail])
    } catch (error) {
      if (refusalOf(error) !== 'NOSCRIPT') throw error
      // EVAL also fills the script cache of the node that it reaches; SCRIPT LOAD has no key to go by.
      return this.#link.send(shard, ['EVAL', script.source, ...tail])
    }
  }

  // The true difference lies between the clock minus the time of arrival and the clock minus the time of sending. The
  // smallest possible one is kept: then the server may refuse a command a little early, but never runs one late.
  #learn(slot: number, clock: number, sentAt: number) {
    const least = clock - performance.now()
    const most = clock - sentAt
    const known = this.#clocks[slot]!
    const next = Number.isNaN(known) ? least : Math.min(Math.max(known, least), most)
    this.#clocks[slot] = next
    this.#lastClock = next
  }

  async #again<T>(shard: string, deadline: number, attempt: () => Promise<T>): Promise<T> {
    const end = endOf(deadline)
    for (let wait = 10; ; wait = Math.min(wait * 2, 200)) {
      const notReadyReason = this.#link.notReadyReason(shard)
      if (notReadyReason === null) {
        this.#everReady = true
        try {
          return await attempt()
        } catch (error) {
          if (!isPassing(error)) throw error
          if (performance.now() + wait >= end) throw error
        }
        // The store waits for a client that is still making its first connection, not for one that lost it.
      } else if (this.#everReady || performance.now() + wait >= end) throw new NotReady(notReadyReason)
      await pause(wait * (0.5 + Math.random() / 2))
    }
  }
}

/**
 * The error to reject a verb with: what is known about the outcome. What Redis said is in the cause, for the log; the
 * message may reach a client of the application.
 */
export function storeError(operation: StoreOperation, error: unknown, writes: boolean, partly: boolean): unknown {
  if (error instanceof SessionStoreError) return error
  // A refusal says nothing of what came before it: another delivery, or the script whose WAIT was refused.
  const hasRun = partly || error instanceof SentAgain || error instanceof TooFewReplicas
  const untouched = !writes || (!hasRun && (error instanceof TooLate || refusalOf(error) !== null))
  const outcome = untouched ? 'not-applied' : 'unknown'
  return new SessionStoreError(operation, outcome, `${operation}: the store failed`, { cause: withoutArguments(error) })
}
