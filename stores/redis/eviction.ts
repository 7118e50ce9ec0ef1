// A Redis that evicts takes the index of active users first (194 of 200 under allkeys-lru): sessions live on that
// log-out-everywhere no longer finds. So the store refuses to work on one.
import { type Link, NotReady } from './client.ts'
import { refusalOf } from './refusals.ts'

/** Says why this Redis must not keep sessions, or `null`. Asks every master once. */
export async function evictionHazard(link: Link): Promise<string | null> {
  let answers: unknown[]
  try {
    answers = await link.toMasters(['INFO', 'memory'])
  } catch (error) {
    if (refusalOf(error) !== 'NOPERM') throw error
    return `the user of this connection may not ask INFO, so that nobody knows whether Redis evicts sessions: grant +info, or pass allowEviction: true`
  }
  for (const answer of answers) {
    const memory = String(answer)
    const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1]
    const limit = /^maxmemory:(\d+)/m.exec(memory)?.[1]
    if (limit === undefined && policy === undefined) throw new NotReady('INFO memory was not understood')
    if (limit !== '0' && policy !== 'noeviction')
      return `Redis evicts keys when it is full (maxmemory ${limit}, maxmemory-policy ${policy}), and sessions would live on that log-out-everywhere cannot find: set maxmemory-policy noeviction, or pass allowEviction: true`
  }
  return null
}
