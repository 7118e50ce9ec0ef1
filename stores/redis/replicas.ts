// `waitReplicas`: a revocation is acknowledged when that many replicas have it. WAIT is about what its own connection
// wrote, and blocks that connection. So both go over a connection that belongs to the store, one per master: on the
// application's own connection all other commands would wait too, and a pool would send WAIT over another one.
import { type Dedicated, type Link, NotReady } from './link.ts'
import { refusalOf } from './refusals.ts'
import type { Script } from './scripts.ts'

interface Job {
  readonly script: Script
  readonly tail: string[]
  readonly deadline: number
  resolve(reply: unknown): void
  reject(error: unknown): void
}

/** Too few replicas acknowledged in time: the session ended on the master, but a replica promoted next may still have it. */
export class TooFewReplicas extends Error {}

export class ReplicaWaiter {
  readonly #link: Link
  readonly #replicas: number
  readonly #lanes = new Map<string, Lane>()

  constructor(link: Link, replicas: number) {
    this.#link = link
    this.#replicas = replicas
  }

  /** Runs the script on the master of the shard and resolves with its answer when enough replicas have it. */
  run(shard: string, script: Script, tail: string[], deadline: number): Promise<unknown> {
    const master = this.#link.master(shard)
    let lane = this.#lanes.get(master)
    if (!lane) {
      lane = new Lane(this.#replicas, () => this.#link.dedicate(shard))
      this.#lanes.set(master, lane)
    }
    const reply = new Promise((resolve, reject) => lane.add({ script, tail, deadline, resolve, reject }))
    return reply.catch(error => {
      this.#look(shard, tail, error)
      throw error
    })
  }

  // The client learns by a redirection of its own that a slot has gone to another master; it gets none for what is sent
  // past it. The key is one of the script: a user with few rights may read no other.
  #look(shard: string, [, key]: readonly string[], error: unknown) {
    const refusal = refusalOf(error)
    if (refusal !== 'MOVED' && refusal !== 'ASK') return
    if (key !== undefined && this.#link.notReadyReason(shard) === null)
      this.#link.send(shard, ['GET', key]).catch(() => {})
  }

  close() {
    for (const lane of this.#lanes.values()) lane.close()
    this.#lanes.clear()
  }
}

class Lane {
  readonly #replicas: number
  readonly #open: () => Promise<Dedicated>
  #waiting: Job[] = []
  #running = false
  #isClosed = false
  #connection: Dedicated | null = null

  constructor(replicas: number, open: () => Promise<Dedicated>) {
    this.#replicas = replicas
    this.#open = open
  }

  add(job: Job) {
    this.#waiting.push(job)
    if (!this.#running) void this.#work()
  }

  close() {
    this.#isClosed = true
    this.#connection?.close()
  }

  // A connection that is ready only after the store was closed is closed at once: no later call would close it.
  async #connect(): Promise<Dedicated> {
    const refuse = () => new NotReady('the store was closed')
    if (this.#isClosed) throw refuse()
    const connection = await this.#open()
    if (!this.#isClosed) return connection
    connection.close()
    throw refuse()
  }

  // In batches: the jobs that came during one WAIT share the next one.
  async #work() {
    this.#running = true
    while (this.#waiting.length > 0) {
      const batch = this.#waiting
      this.#waiting = []
      await this.#batch(batch)
    }
    this.#running = false
  }

  async #batch(batch: readonly Job[]) {
    try {
      if (!this.#connection?.usable()) {
        this.#connection?.close()
        this.#connection = null
        this.#connection = await this.#connect()
      }
      await this.#connection.follow?.()
    } catch (error) {
      for (const job of batch) job.reject(error)
      return
    }
    const connection = this.#connection
    const ran: { job: Job; reply: unknown }[] = []
    await Promise.all(
      batch.map(async job => {
        try {
          ran.push({ job, reply: await this.#evaluate(connection, job) })
        } catch (error) {
          job.reject(error)
        }
      }),
    )
    let open = ran
    while (open.length > 0) {
      // Answers a little before the caller stops waiting; the earliest deadline decides.
      const left = Math.min(...open.map(({ job }) => job.deadline)) - performance.now()
      const timeout = Math.max(1, Math.floor(left * 0.8))
      let acknowledged: number
      try {
        acknowledged = Number(await connection.send(['WAIT', String(this.#replicas), String(timeout)]))
      } catch (error) {
        // The script has run: from here on the outcome is never 'not applied'.
        const cause = new TooFewReplicas('the connection broke before replicas acknowledged', { cause: error })
        for (const { job } of open) job.reject(cause)
        return
      }
      if (acknowledged >= this.#replicas) {
        for (const { job, reply } of open) job.resolve(reply)
        return
      }
      const now = performance.now()
      const late = open.filter(({ job }) => job.deadline - now < 100 || timeout === 1)
      const shortage = new TooFewReplicas(`${acknowledged} of ${this.#replicas} replicas acknowledged in time`)
      const ended = late.length > 0 ? late : open.slice(0, 1)
      for (const { job } of ended) job.reject(shortage)
      open = open.filter(entry => !ended.includes(entry))
    }
  }

  async #evaluate(connection: Dedicated, { script, tail }: Job): Promise<unknown> {
    try {
      return await connection.send(['EVALSHA', script.sha, ...tail])
    } catch (error) {
      const refusal = refusalOf(error)
      if (refusal === 'NOSCRIPT') return connection.send(['EVAL', script.source, ...tail])
      // No longer the master of this shard: the next attempt opens a connection to the new one.
      if (refusal === 'READONLY' || refusal === 'MOVED') {
        connection.close()
        // Some time passes before it says itself that it is of no use; what was sent meanwhile would fail as 'unknown'.
        if (this.#connection === connection) this.#connection = null
      }
      throw error
    }
  }
}
