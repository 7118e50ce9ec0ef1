import { channel } from 'node:diagnostics_channel'
import { setImmediate } from 'node:timers'

// Not the global setImmediate, which tests of an application may replace (fake timers) or remove (jsdom): no read would
// ever be sent.
const atEndOfTurn = setImmediate

/** The message on the `node:diagnostics_channel` 'coatcheck:shared-read', one for each command. */
export interface SharedRead {
  /** How many keys it asks for. */
  readonly keys: number
  /** How many reads it answers: at least one for each key. */
  readonly reads: number
}

const published = channel('coatcheck:shared-read')

interface Reader<A> {
  readonly key: string
  readonly deadline: number
  readonly resolve: (answer: A) => void
  readonly reject: (error: unknown) => void
}

/**
 * Collects the reads of one turn of the event loop and sends them at its end, so requests that arrive together share a
 * command. A microtask would be too early: each request has its own. A read never joins a command that was already sent, so
 * it sees every write that was acknowledged before.
 */
export class SharedReads<A> {
  readonly #most: number
  readonly #ask: (keys: readonly string[], deadline: number) => Promise<readonly A[]>
  readonly #groupOf: (key: string) => unknown
  #readers: Reader<A>[] = []

  /**
   * `ask` gets at most `most` different keys, and the latest deadline of their readers. It answers in the order of the keys.
   * If it rejects, all of their readers do. With `groupOf`, only keys of the same group share a command.
   */
  constructor(
    most: number,
    ask: (keys: readonly string[], deadline: number) => Promise<readonly A[]>,
    groupOf: (key: string) => unknown = () => null,
  ) {
    this.#most = most
    this.#ask = ask
    this.#groupOf = groupOf
  }

  /** The answer for a key. Readers of the same key in the same turn get the same one. */
  read(key: string, deadline: number): Promise<A> {
    return new Promise((resolve, reject) => {
      if (this.#readers.push({ key, deadline, resolve, reject }) === 1) atEndOfTurn(() => this.#send())
    })
  }

  #send(): void {
    const readers = this.#readers
    this.#readers = []
    if (readers.length === 1) {
      this.#askFor([[readers[0]!.key, readers]])
      return
    }
    const groups = new Map<unknown, Map<string, Reader<A>[]>>()
    for (const reader of readers) {
      const group = this.#groupOf(reader.key)
      const byKey = groups.get(group) ?? new Map<string, Reader<A>[]>()
      const others = byKey.get(reader.key)
      if (others === undefined) groups.set(group, byKey.set(reader.key, [reader]))
      else others.push(reader)
    }
    for (const byKey of groups.values()) {
      const all = [...byKey]
      for (let from = 0; from < all.length; from += this.#most) this.#askFor(all.slice(from, from + this.#most))
    }
  }

  async #askFor(asked: readonly (readonly [key: string, readers: readonly Reader<A>[]])[]): Promise<void> {
    if (published.hasSubscribers) {
      const told: SharedRead = { keys: asked.length, reads: asked.reduce((sum, [, { length }]) => sum + length, 0) }
      published.publish(told)
    }
    let deadline = Number.NEGATIVE_INFINITY
    for (const [, readers] of asked) for (const reader of readers) deadline = Math.max(deadline, reader.deadline)
    try {
      const keys = asked.map(([key]) => key)
      const answers = await this.#ask(keys, deadline)
      // With fewer answers than keys we can't tell which is missing: a live session would look ended.
      if (answers.length !== keys.length) throw new Error(`${answers.length} answers for ${keys.length} keys`)
      for (let i = 0; i < keys.length; i++) for (const reader of asked[i]![1]) reader.resolve(answers[i] as A)
    } catch (error) {
      for (const [, readers] of asked) for (const reader of readers) reader.reject(error)
    }
  }
}
