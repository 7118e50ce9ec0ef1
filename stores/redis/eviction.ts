// A Redis that evicts removes the index of active users first (of 194 of 200 under allkeys-lru). Their sessions stay, and
// logout-everywhere no longer finds them. So the store refuses to work on such a Redis.
import { type Link, NotReady } from './link.ts'
import { refusalOf } from './refusals.ts'

/** Says why this Redis must not keep sessions, or `null`. Asks every master once. */
export async function evictionHazard(link: Link): Promise<string | null> {
  let answers: unknown[]
  try {
    const masters = await link.masters()
    answers = await Promise.all(masters.map(master => master.send(['INFO', 'memory'])))
  } catch (error) {
    if (refusalOf(error) !== 'NOPERM') throw error
    return `the user of this connection may not ask INFO, so it is unknown whether Redis evicts sessions: grant +info, or pass allowEviction: true`
  }
  for (const answer of answers) {
    const memory = String(answer)
    const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1]
    const limit = /^maxmemory:(\d+)/m.exec(memory)?.[1]
    if (limit === undefined && policy === undefined) throw new NotReady('INFO memory was not understood')
    if (limit !== '0' && policy !== 'noeviction')
      return `Redis evicts keys when it is full (maxmemory ${limit}, maxmemory-policy ${policy}), and then logout-everywhere would miss sessions: set maxmemory-policy noeviction, or pass allowEviction: true`
  }
  return null
}
