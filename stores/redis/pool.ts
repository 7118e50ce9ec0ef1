// A pool of node-redis. It hands out its idle clients in turn, also those that are connecting anew, where a command would
// wait in a queue: only the client itself knows.
import { NotReady } from './link.ts'

/** What is used of a client in a pool. */
export interface Pooled {
  readonly isOpen?: boolean
  readonly isReady?: boolean
  on?(event: string, listener: () => void): unknown
}
/** What is used of a pool. */
export interface Pool<C extends Pooled> {
  execute?<T>(task: (client: C) => Promise<T>): Promise<T>
  readonly idleClients?: number
  readonly totalClients?: number
}

/** A call that waits for a client. */
interface Waiting<C> {
  giveUp(cause?: unknown): void
  /** Gives back this client, where it is held. */
  release(client: C): void
}

/** Runs tasks over those clients of a pool that are connected. */
export class ReadyClients<C extends Pooled> {
  readonly #pool: Pool<C>
  readonly #reason: string
  /** The clients that were handed out so far and are open. */
  readonly #seen = new Set<C>()
  readonly #waiting = new Set<Waiting<C>>()

  constructor(pool: Pool<C>, reason: string) {
    this.#pool = pool
    this.#reason = reason
  }

  /** Rejects with `NotReady`, and has run nothing, where all clients are away or none was free in time. */
  run<T>(task: (client: C) => Promise<T>): Promise<T> {
    const reason = this.#reason
    return new Promise((resolve, reject) => {
      // The clients that are away are held for as long, so that the pool hands out others.
      const held = new Map<C, () => void>()
      let isOver = false
      const end = () => {
        isOver = true
        this.#waiting.delete(waiting)
        for (const release of held.values()) release()
      }
      const waiting: Waiting<C> = {
        giveUp(cause) {
          end()
          reject(new NotReady(reason, { cause }))
        },
        release(client) {
          held.get(client)?.()
          held.delete(client)
        },
      }
      const attempt = (client: C): Promise<void> => {
        if (isOver) return Promise.resolve()
        this.#see(client)
        if (client.isReady) {
          end()
          return task(client).then(resolve, reject)
        }
        const hold = new Promise<void>(release => held.set(client, release))
        const idle = this.#pool.idleClients ?? this.#pool.totalClients! - held.size
        if (idle > 0 || this.#hasReady) ask()
        else waiting.giveUp()
        return hold
      }
      // One that is in use may break: then there is nothing to wait for.
      this.#waiting.add(waiting)
      const ask = () => {
        this.#pool.execute!(attempt).catch(error => {
          if (!isOver) waiting.giveUp(error)
        })
      }
      ask()
    })
  }

  get #hasReady(): boolean {
    let isReady = false
    for (const client of this.#seen) {
      if (client.isReady) isReady = true
      else if (!client.isOpen) this.#seen.delete(client)
    }
    return isReady
  }

  #see(client: C) {
    if (this.#seen.has(client)) return
    this.#seen.add(client)
    const broke = () => {
      if (!this.#hasReady) for (const waiting of this.#waiting) waiting.giveUp()
    }
    client.on?.('reconnecting', broke)
    client.on?.('end', broke)
    // One that is back serves a call that waits: those in use may be so for long.
    client.on?.('ready', () => {
      for (const waiting of this.#waiting) waiting.release(client)
    })
  }
}
