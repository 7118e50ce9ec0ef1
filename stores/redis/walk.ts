// `scan`: all that is stored, for operators; no request walks. Each page is a SCAN on one server. Its cursor means
// something to that very process: after a restart or a failover the walk over its keys begins again.
//
// In a cluster the masters are walked one after the other, and slots may move between them meanwhile. So the walk is
// about slots: those that a master had from the begin to the end of its part are done, all others are left, and the walk
// goes on until none is.
import type { ScanPage, SessionRecord } from '../../src/contract/store.ts'
import { quote } from '../../src/text/quote.ts'
import { type Commands, endOf, pause } from './commands.ts'
import { decode, forwardKeptUntil, text } from './format.ts'
import { type Keys, patternUnder, SLOTS, shardIn, shardOf, shardOfKey, slotOf } from './keys.ts'
import { type Link, type Master, NotReady } from './link.ts'
import { isPassing, isReply, refusalOf } from './refusals.ts'
import { SCAN } from './scripts.ts'
import { allSlots, hasSlots, type Slots, slotsFrom, slotsText } from './slots.ts'

/** How many entries one command looks at: it holds the server up for about a millisecond. */
const MOST = 500
/** And at least, as SCAN does by itself: fewer cost as much. */
const LEAST = 10
/** In the place of a run ID that a server does not tell. */
const UNTOLD = '-'

/** Where the walk over one server stands: the run ID of its process (empty: any), and the cursor of SCAN. */
interface Position {
  server: string
  cursor: string
}
/** The walk over one master of a cluster. */
interface Part extends Position {
  /** What is done when it ends. */
  slots: Slots
  /** The configuration epoch of the master: it rises where a slot that has left the master comes back. */
  readonly epoch: number
}
/** Where the walk over a cluster stands. */
interface Place {
  left: Slots
  part: Part | null
}
/** What a master of a cluster says of itself. */
interface State {
  readonly master: Master
  readonly epoch: number
  readonly slots: Slots
  /** Those of its slots that are on their way to another master. */
  readonly leaving: Slots
}

/** The pages of all that is stored. */
export class Walk {
  readonly #link: Link
  readonly #commands: Commands
  readonly #keys: Keys
  readonly #pattern: string
  /** Names of masters by run ID, as far as this store has met them. */
  readonly #names = new Map<string, string>()

  constructor(link: Link, commands: Commands, keys: Keys, prefix: string) {
    this.#link = link
    this.#commands = commands
    this.#keys = keys
    this.#pattern = patternUnder(link.keyPrefix + prefix)
  }

  /**
   * Where a page begins.
   *
   * @throws TypeError for a text that no page of such a Redis answered.
   */
  from(cursor: string | null): Place | Position {
    return this.#link.cluster ? clusterPlace(cursor) : serverPosition(cursor)
  }

  page(at: Place | Position, limit: number, now: number, deadline: number): Promise<ScanPage> {
    const page = new Page(limit, now, (performance.now() + deadline) / 2)
    return 'left' in at ? this.#ofCluster(page, at, deadline) : this.#ofServer(page, at, deadline)
  }

  async #ofServer(page: Page, at: Position, deadline: number): Promise<ScanPage> {
    do {
      const piece = await this.#commands.first(shardOf(''), deadline, async () => {
        const [master] = await this.#link.masters()
        return this.#piece(master!, at, page)
      })
      Object.assign(
        at,
        piece === 'other' ? { server: '', cursor: '0' } : { server: piece.server, cursor: piece.cursor },
      )
      if (piece === 'other') continue
      if (piece.refused.length > 0) throw new Error(piece.reason)
      if (piece.cursor === '0') return page.answer(null)
    } while (page.hasRoom)
    return page.answer(`s ${at.server || UNTOLD} ${at.cursor}`)
  }

  async #ofCluster(page: Page, place: Place, deadline: number): Promise<ScanPage> {
    const end = endOf(deadline)
    let hasMoved = false
    for (let wait = 10; ; wait = Math.min(wait * 2, 200)) {
      let failure: unknown
      try {
        await this.#step(place, page)
        if (!hasSlots(place.left)) return page.answer(null)
        hasMoved = true
        if (!page.hasRoom) return page.answer(placeText(place))
        wait = 5
        continue
      } catch (error) {
        // Slots on their way, a master that is away or is no longer one: the walk over its keys begins again.
        if (isReply(error) && !isPassing(error)) throw error
        failure = error
        place.part = null
      }
      if (performance.now() + wait >= end) {
        if (!hasMoved) throw failure
        return page.answer(placeText(place))
      }
      await pause(wait)
    }
  }

  /** One command of a part; throws where it brought the walk no further. */
  async #step(place: Place, page: Page): Promise<void> {
    const found = place.part && (await this.#find(place.part.server))
    if (place.part && !found) throw new NotReady('a master whose keys were being walked is away')
    const { part, master } = place.part ? { part: place.part, master: found! } : await this.#begin(place.left)
    place.part = part
    const piece = await this.#piece(master, part, page)
    if (piece === 'other') throw new NotReady('another process has taken the place of a master')
    this.#names.set(piece.server, master.name)
    part.server = piece.server
    part.cursor = piece.cursor
    if (piece.refused.length > 0 && !/non local key/.test(piece.reason))
      throw /cluster is down/.test(piece.reason) ? new NotReady(piece.reason) : new Error(`ERR ${piece.reason}`)
    // Keys whose slot is arriving or has left: they are read where it is at home by then.
    for (const key of piece.refused) part.slots[slotOf(shardOfKey(key))] = 0
    if (part.cursor !== '0') return
    const done = await this.#done(part, master)
    place.part = null
    if (!hasSlots(done)) throw new NotReady('the slots of a master moved while its keys were walked')
    for (let slot = 0; slot < SLOTS; slot++) if (done[slot] === 1) place.left[slot] = 0
  }

  /** Begins with the master that has most of what is left. */
  async #begin(left: Slots): Promise<{ part: Part; master: Master }> {
    const owners = ownersOf(await this.#states())
    const parts = new Map<State, { slots: Slots; size: number }>()
    for (let slot = 0; slot < SLOTS; slot++) {
      const owner = owners[slot]
      if (left[slot] === 0 || !owner || owner.leaving[slot] === 1) continue
      const part = parts.get(owner) ?? { slots: new Uint8Array(SLOTS), size: 0 }
      parts.set(owner, part)
      part.slots[slot] = 1
      part.size++
    }
    const [largest] = [...parts].sort(([, a], [, b]) => b.size - a.size)
    if (!largest) {
      await this.#look(left.findIndex((isLeft, slot) => isLeft === 1 && !owners[slot]))
      throw new NotReady(`the slots ${slotsText(left)} are moving between masters, or their master is away`)
    }
    const [{ master, epoch }, { slots }] = largest
    return { master, part: { slots, epoch, server: '', cursor: '0' } }
  }

  /** The slots of a part that were its master's all the time. */
  async #done(part: Part, master: Master): Promise<Slots> {
    const owners = ownersOf(await this.#states())
    return part.slots.map((isIn, slot) => {
      const owner = owners[slot]
      const isHome = owner?.master.name === master.name && owner.epoch === part.epoch && owner.leaving[slot] === 0
      return isIn === 1 && isHome ? 1 : 0
    })
  }

  // A client learns by a redirection that a slot has gone to a master which it does not know.
  async #look(slot: number): Promise<void> {
    if (slot < 0) return
    const shard = shardIn(slot)
    if (this.#link.notReadyReason(shard) === null)
      await this.#link.send(shard, ['GET', this.#keys.session(shard)]).catch(() => {})
  }

  /** The master that is this process. */
  async #find(server: string): Promise<Master | undefined> {
    const masters = (await this.#link.masters()).filter(({ isReady }) => isReady)
    const name = this.#names.get(server)
    const known = masters.find(master => master.name === name)
    if (known) return known
    const answers = await Promise.all(masters.map(master => master.send(['INFO', 'server']).catch(() => '')))
    return masters[answers.findIndex(answer => text(answer).includes(`run_id:${server}`))]
  }

  async #states(): Promise<State[]> {
    const masters = (await this.#link.masters()).filter(({ isReady }) => isReady)
    const answers = await Promise.all(
      masters.map(master =>
        master.send(['CLUSTER', 'NODES']).catch(error => {
          if (isReply(error) && refusalOf(error) !== 'LOADING') throw error
          return ''
        }),
      ),
    )
    return answers.flatMap((answer, i) => {
      const state = stateIn(text(answer), masters[i]!)
      return state ? [state] : []
    })
  }

  async #piece(master: Master, { server, cursor }: Position, page: Page) {
    // It changes nothing, so that it may run late.
    const args = ['0', `${Number.MAX_SAFE_INTEGER}`, `${page.now}`, server, cursor, this.#pattern, `${page.room}`]
    const reply = await master.send(['EVALSHA', SCAN.sha, ...args]).catch(error => {
      if (refusalOf(error) !== 'NOSCRIPT') throw error
      return master.send(['EVAL', SCAN.source, ...args])
    })
    if (!Array.isArray(reply)) throw new Error('the answer of a script was not understood')
    const [outcome, , told, next, found, refused, reason] = reply
    if (text(outcome) === 'other') return 'other'
    page.add(found as unknown[])
    return { server: text(told), cursor: text(next), refused: (refused as unknown[]).map(text), reason: text(reason) }
  }
}

/** What is found for one page. */
class Page {
  readonly now: number
  readonly #limit: number
  readonly #until: number
  readonly #records: SessionRecord[] = []
  readonly #forwards: string[] = []

  constructor(limit: number, now: number, until: number) {
    this.#limit = limit
    this.now = now
    this.#until = until
  }

  /** How many entries to look at next. */
  get room(): number {
    return Math.max(LEAST, Math.min(MOST, this.#limit - this.#records.length - this.#forwards.length))
  }

  /** Whether there is place and time for more. */
  get hasRoom(): boolean {
    return this.#records.length + this.#forwards.length < this.#limit && performance.now() < this.#until
  }

  add(found: readonly unknown[]) {
    for (let i = 0; i < found.length; i += 2) {
      const key = text(found[i])
      const value = text(found[i + 1])
      const stored = decode(key, value)
      if (stored === null) {
        // What is prepared becomes live once its other step is done. `delete` ends that like a forward, and the step is
        // refused: so nothing that was there when a walk began lives on behind it.
        if (value.startsWith('p ')) this.#forwards.push(key)
      } else if ('corrupt' in stored) {
        // Removed by the next read.
      } else if (stored.movedTo !== undefined) {
        if (forwardKeptUntil(value) > this.now) this.#forwards.push(key)
      } else if (stored.expiresAt > this.now) this.#records.push(stored)
    }
  }

  answer(next: string | null): ScanPage {
    return { records: this.#records, forwards: this.#forwards, next }
  }
}

// The line of the node itself in CLUSTER NODES: id, address, flags, master, ping, pong, epoch, link, then its slots; one
// that is leaving stands once more, in brackets, with an arrow.
function stateIn(nodes: string, master: Master): State | null {
  const fields = nodes.split('\n').map(line => line.trim().split(' '))
  const own = fields.find(([, , flags = '']) => /\bmyself\b/.test(flags))
  if (own === undefined || !/\bmaster\b/.test(own[2]!)) return null
  const ranges = own.slice(8)
  const leaving = ranges.flatMap(range => /^\[(\d+)->-/.exec(range)?.[1] ?? [])
  const slots = ranges.filter(range => !range.startsWith('['))
  return { master, epoch: Number(own[6]), slots: slotsFrom(slots), leaving: slotsFrom(leaving) }
}

// Where two claim a slot, the one with the higher epoch has it, and the other has not heard of it yet.
function ownersOf(states: readonly State[]): readonly (State | undefined)[] {
  const owners = new Array<State | undefined>(SLOTS)
  for (const state of states)
    for (let slot = 0; slot < SLOTS; slot++)
      if (state.slots[slot] === 1 && state.epoch >= (owners[slot]?.epoch ?? 0)) owners[slot] = state
  return owners
}

const isRange = (range: string) => {
  const [first, last = first] = range.split('-').map(Number)
  return first! <= last! && last! < SLOTS
}
const RANGES = '([0-9]{1,5}(?:-[0-9]{1,5})?(?:,[0-9]{1,5}(?:-[0-9]{1,5})?)*)'
const POSITION = '(-|[0-9A-Za-z]{1,64}) ([0-9]{1,20})'
const SERVER = new RegExp(`^s ${POSITION}$`)
const CLUSTER = new RegExp(`^c ${RANGES}(?: ${RANGES} ([0-9]{1,16}) ${POSITION})?$`)

const foreign = (cursor: string, where: string) =>
  new TypeError(`cursor: expected null, or what the page before of ${where} answered as next, got ${quote(cursor)}`)

function serverPosition(cursor: string | null): Position {
  if (cursor === null) return { server: '', cursor: '0' }
  const [, server, at] = SERVER.exec(cursor) ?? []
  if (server === undefined) throw foreign(cursor, 'a Redis that is no cluster')
  return { server, cursor: at! }
}

function clusterPlace(cursor: string | null): Place {
  if (cursor === null) return { left: allSlots(), part: null }
  const [isCursor, left = '', slots = left, epoch, server, at] = CLUSTER.exec(cursor) ?? []
  if (isCursor === undefined || !`${left},${slots}`.split(',').every(isRange)) throw foreign(cursor, 'a Redis Cluster')
  const part =
    at === undefined ? null : { slots: slotsFrom(slots.split(',')), epoch: Number(epoch), server: server!, cursor: at }
  return { left: slotsFrom(left.split(',')), part }
}

function placeText({ left, part }: Place): string {
  const all = `c ${slotsText(left)}`
  return part && hasSlots(part.slots)
    ? `${all} ${slotsText(part.slots)} ${part.epoch} ${part.server} ${part.cursor}`
    : all
}
