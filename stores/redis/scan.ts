// `scan` reads all that is stored, for operators; no request uses it. Each page is one SCAN at one master. In a cluster it
// goes from master to master by their first slots, which a failover does not change. A cursor is valid for one process of
// Redis: after a restart or a failover the scan of that master begins anew. It may miss sessions while slots move.
import type { ScanPage, SessionRecord } from '../../src/contract/store.ts'
import { quote } from '../../src/text/quote.ts'
import type { Master } from './client.ts'
import type { Call, Commands } from './commands.ts'
import { NotReady, orIfForeign } from './errors.ts'
import { decode, live, text } from './format.ts'
import type { Keys } from './keys.ts'

/** How many entries one command looks at: at most (that holds the server up for about a millisecond), and at least. */
const MOST = 500
const LEAST = 10
/** First slot of the master, run ID of its process, cursor of SCAN there. */
const CURSOR = /^([0-9]{1,5}) ([0-9A-Za-z]{1,64}) ([0-9]{1,20})$/

/** @throws TypeError for a text that no page answered. */
export function positionIn(cursor: string | null) {
  const [, slot, process, at] = cursor === null ? ['', '0', '0', '0'] : (CURSOR.exec(cursor) ?? [])
  if (slot === undefined)
    throw new TypeError(`cursor: expected null, or the next of the page before, got ${quote(cursor)}`)
  return { slot: Number(slot), process: process!, at: at! }
}
type Position = ReturnType<typeof positionIn>

/** The page that begins at this position. */
export function page(commands: Commands, keys: Keys, call: Call, position: Position, limit: number) {
  return commands.again(call, 'AAA', async (): Promise<ScanPage> => {
    const masters = commands.link.masters()
    const number = masters.findIndex(({ firstSlot }) => firstSlot === position.slot)
    const master = masters[number]
    if (master === undefined) throw new Error('the slots of the cluster have moved: begin the walk again')
    const count = String(Math.max(LEAST, Math.min(MOST, limit)))
    const [info, answer] = await Promise.all([
      master.send(['INFO'], call.timeout),
      master.send(['SCAN', position.at, 'MATCH', keys.pattern, 'COUNT', count], call.timeout),
    ])
    const process = /^run_id:(\w+)/m.exec(text(info))?.[1]
    if (process === undefined || !Array.isArray(answer))
      throw new Error('the answer of INFO or SCAN was not understood')
    if (/^role:slave/m.test(text(info))) throw new NotReady('a master is no longer one')
    const next = (master: Master | undefined, at: string) =>
      master === undefined ? null : `${master.firstSlot} ${at === '0' ? '0' : process} ${at}`
    if (position.at !== '0' && process !== position.process)
      return { records: [], forwards: [], next: next(master, '0') }
    const [at, names] = answer as [unknown, unknown[]]
    return {
      ...(await storedIn(master, keys, names.map(text), call)),
      next: text(at) === '0' ? next(masters[number + 1], '0') : next(master, text(at)),
    }
  })
}

async function storedIn(master: Master, keys: Keys, names: readonly string[], { now, timeout }: Call) {
  const records: SessionRecord[] = []
  const forwards: string[] = []
  await Promise.all(
    names.map(async name => {
      const key = keys.sessionIn(name)
      if (key === null) return
      const value = await master.send(['GET', name], timeout).catch(orIfForeign(null))
      const stored = decode(key, value)
      // The next read removes a corrupt value.
      const found = stored === null || 'corrupt' in stored ? null : live(stored, now)
      if (found === null) return
      if ('movedTo' in found) forwards.push(key)
      else records.push(found)
    }),
  )
  return { records, forwards }
}
