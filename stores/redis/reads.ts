// Reads of one turn of the event loop share an MGET. In a cluster only reads of one shard do, because all keys of an MGET
// must be in one slot.
import { SharedReads } from '../shared/shared-reads.ts'
import { type Call, type Commands, callOf, deadlineOf } from './commands.ts'
import { type Keys, shardOfKey } from './keys.ts'

/** How many keys one MGET reads: each holds the server up for 0.4 us, and costs little less in a longer one. */
const MOST = 128

export type ValueReads = ReturnType<typeof valueReads>
/** Reads the values of session keys as the client answers them. A read that failed within an MGET has its error as value. */
export function valueReads(commands: Commands, keys: Keys) {
  const { link } = commands
  /** Reads one key with a GET, and tries again until the deadline if Redis says so. */
  const alone = (key: string, call: Call) => commands.send(call, key, ['GET', keys.session(key)])
  const ask = async (asked: readonly string[], deadline: number): Promise<readonly unknown[]> => {
    const [key] = asked as [string]
    const call = callOf({ now: 0, deadline })
    if (asked.length === 1) return [await alone(key, call)]
    await link.server.leaveSilent()
    if (link.notReady(shardOfKey(key)) === null) {
      const args = ['MGET', ...asked.map(keys.session)]
      const answer = await link.send(shardOfKey(key), args, call.timeout).catch(() => null)
      if (Array.isArray(answer)) return answer
    }
    // One by one: each has its own error. MGET also fails while a slot moves, or if the user may not use it.
    return Promise.all(asked.map(each => alone(each, call).catch(error => error)))
  }
  const shared = new SharedReads<unknown>(MOST, ask, link.isCluster ? shardOfKey : undefined)
  return { alone, read: (key: string, deadline: number | undefined) => shared.read(key, deadlineOf(deadline)) }
}
