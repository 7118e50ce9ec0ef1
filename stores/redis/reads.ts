// Reads of one turn of the event loop share an MGET. In a cluster only reads of one shard do, because all keys of an MGET
// must be in one slot.
import { SharedReads } from '../shared/shared-reads.ts'
import { type Call, type Commands, callOf, deadlineOf } from './commands.ts'
import { type Keys, shardOfKey } from './keys.ts'

/** How many keys one MGET reads: each holds the server up for 0.4 us, and costs little less in a longer one. */
const MOST = 128

/** Reads the values of session keys as the client answers them. A read that failed within an MGET has its error as value. */
export class ValueReads {
  readonly #commands: Commands
  readonly #keys: Keys
  readonly #shared: SharedReads<unknown>

  constructor(commands: Commands, keys: Keys) {
    this.#commands = commands
    this.#keys = keys
    const groupOf = commands.link.isCluster ? shardOfKey : undefined
    this.#shared = new SharedReads(MOST, (asked, deadline) => this.#ask(asked, deadline), groupOf)
  }

  read(key: string, deadline: number | undefined): Promise<unknown> {
    return this.#shared.read(key, deadlineOf(deadline))
  }

  /** Reads one key with a GET, and tries again until the deadline if Redis says so. */
  alone(key: string, call: Call): Promise<unknown> {
    return this.#commands.send(call, key, ['GET', this.#keys.session(key)])
  }

  async #ask(keys: readonly string[], deadline: number): Promise<readonly unknown[]> {
    const [key] = keys as [string]
    const call = callOf({ now: 0, deadline })
    if (keys.length === 1) return [await this.alone(key, call)]
    const { link } = this.#commands
    await link.server.leaveSilent()
    if (link.notReady(shardOfKey(key)) === null) {
      const args = ['MGET', ...keys.map(this.#keys.session)]
      const answer = await link.send(shardOfKey(key), args, call.timeout).catch(() => null)
      if (Array.isArray(answer)) return answer
    }
    // One by one: each has its own error. MGET also fails while a slot moves, or if the user may not use it.
    return Promise.all(keys.map(each => this.alone(each, call).catch(error => error)))
  }
}
