// `read`: the reads of one turn of the event loop share an MGET, in a cluster those of one slot; a read alone is a GET.
import { SharedReads } from '../shared/shared-reads.ts'
import { type Commands, deadlineOf } from './commands.ts'
import { type Keys, shardOfKey, slotOf } from './keys.ts'
import { isLasting, isPassing, isReply, refusalOf } from './refusals.ts'

/**
 * How many keys one MGET reads. Each of them holds the server up, for 0.4 us and longer where sessions are large, while a
 * key costs little less in a longer one: 1.9 us of Node.js among 16, 1.1 among 128, 0.5 among 512.
 */
const MOST = 128

/** Each key has to be asked for by itself, within the time of its own reader. */
export const ALONE = new Error('to be read alone')
/** As `ALONE`, because MGET is refused. If GET is not, all reads to come are better asked for by themselves. */
const REFUSED = new Error('MGET is refused')

/** For how long MGET is not tried again, ms. */
const REFUSED_FOR = 60_000

/** Reads the values of session keys, as the client answers them. */
export class ValueReads {
  readonly #commands: Commands
  readonly #keys: Keys
  readonly #isCluster: boolean
  readonly #shared: SharedReads<unknown>
  #isSharing = true
  #refusedAt = 0

  constructor(commands: Commands, keys: Keys, isCluster: boolean) {
    this.#commands = commands
    this.#keys = keys
    this.#isCluster = isCluster
    const slotOfKey = (key: string) => slotOf(shardOfKey(key))
    this.#shared = new SharedReads(MOST, asked => this.#ask(asked), isCluster ? slotOfKey : undefined)
  }

  /** Where this rejects, `again` may help. */
  read(key: string, deadline: number | undefined): Promise<unknown> {
    return this.#isSharing || this.#triesAgain() ? this.#shared.read(key, deadlineOf(deadline)) : this.#get(key)
  }

  /** Asks for a key again, by itself, if that helps against the error; throws it if not. */
  async again(error: unknown, key: string, deadline: number | undefined): Promise<unknown> {
    if (error !== ALONE && error !== REFUSED && !isPassing(error)) throw error
    const value = await this.#commands.read(shardOfKey(key), ['GET', this.#keys.session(key)], deadlineOf(deadline))
    if (error === REFUSED) {
      this.#isSharing = false
      this.#refusedAt = performance.now()
    }
    return value
  }

  // A right may have been missing for a moment only.
  #triesAgain(): boolean {
    this.#isSharing = performance.now() - this.#refusedAt >= REFUSED_FOR
    return this.#isSharing
  }

  async #get(key: string): Promise<unknown> {
    const answer = this.#commands.atOnce(shardOfKey(key), 'GET', [this.#keys.session(key)])
    if (answer === null) throw ALONE
    return answer
  }

  async #ask(keys: readonly string[]): Promise<readonly unknown[]> {
    if (keys.length === 1) return [await this.#get(keys[0]!)]
    const names = keys.map(this.#keys.session)
    const answer = this.#isSharing ? this.#commands.atOnce(shardOfKey(keys[0]!), 'MGET', names) : null
    if (answer === null) throw ALONE
    let values: unknown
    try {
      values = await answer
    } catch (error) {
      // In a cluster a read alone is led to the node that has the key by now.
      if (!isReply(error) && !this.#isCluster) throw error
      // Elsewhere CROSSSLOT comes from a proxy before a cluster, and will come again.
      const isRefused = isLasting(error) || (refusalOf(error) === 'CROSSSLOT' && !this.#isCluster)
      throw isRefused ? REFUSED : ALONE
    }
    if (!Array.isArray(values)) throw new Error('the answer of MGET was not understood')
    return values
  }
}
