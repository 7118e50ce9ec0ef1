// Mistakes of a walk over all that is stored, and of a count.
import type { ReplaceOptions, ScanPage, SessionRecord, StoreCall } from 'coatcheck/custom-store'
import { SharingStore } from './reads.ts'
import type { WrongStore } from './wrong.ts'

class StopsAfterAPage extends SharingStore {
  override async scan(cursor: string | null, limit: number, call: StoreCall) {
    return { ...(await super.scan(cursor, limit, call)), next: null }
  }
}

class BeginsAnew extends SharingStore {
  override scan(_cursor: string | null, limit: number, call: StoreCall) {
    return super.scan(null, limit, call)
  }
}

/** Shows of each page what `show` leaves. */
class Shows extends SharingStore {
  readonly #show: (page: ScanPage) => Partial<ScanPage>
  constructor(show: (page: ScanPage) => Partial<ScanPage>) {
    super()
    this.#show = show
  }
  override async scan(cursor: string | null, limit: number, call: StoreCall) {
    const page = await super.scan(cursor, limit, call)
    return { ...page, ...this.#show(page) }
  }
}
const recordsBut = (left: (record: SessionRecord) => boolean) => () =>
  new Shows(({ records }) => ({ records: records.filter(record => !left(record)) }))

class CountsPlaces extends SharingStore {
  override async scan(cursor: string | null, limit: number, { now }: StoreCall) {
    const keys = [...this.records.keys(), ...this.forwards.keys()]
    const begin = Number(cursor)
    const page = keys.slice(begin, begin + limit)
    return {
      records: page.flatMap(key => this.live(key, now) ?? []).map(record => ({ ...record })),
      forwards: page.filter(key => this.forwards.has(key)),
      next: begin + limit < keys.length ? `${begin + limit}` : null,
    }
  }
}

class RemembersTheWalk extends SharingStore {
  #last: string | null = null
  override async scan(cursor: string | null, limit: number, call: StoreCall) {
    const page = await super.scan(cursor === null ? null : this.#last, limit, call)
    this.#last = page.next
    return page
  }
}

// Pages of records first, of forwards after them would do; the other way round misses what is replaced meanwhile.
class ForwardsFirst extends SharingStore {
  override async scan(cursor: string | null, limit: number, { now }: StoreCall) {
    const [part, from] = cursor === null ? ['f', ''] : [cursor[0], cursor.slice(1)]
    // By the end of the key: its begin is that of its successor, which would always be met next.
    const turned = (key: string) => [...key].reverse().join('')
    const keys = [...(part === 'f' ? this.forwards : this.records).keys()].map(turned)
    const left = keys.filter(key => key > from).sort()
    const page = left.slice(0, limit).map(turned)
    return {
      records: page.flatMap(key => this.live(key, now) ?? []).map(record => ({ ...record })),
      forwards: part === 'f' ? page : [],
      next: left.length > limit ? `${part}${left[limit - 1]}` : part === 'f' ? 'r' : null,
    }
  }
}

class ShowsTheFirstWriteId extends SharingStore {
  readonly #first = new Map<string, string>()
  override admit(record: SessionRecord, options: ReplaceOptions, old: SessionRecord | undefined, now: number) {
    this.#first.set(record.key, record.writeId)
    return super.admit(record, options, old, now)
  }
  override async scan(cursor: string | null, limit: number, call: StoreCall) {
    const page = await super.scan(cursor, limit, call)
    return { ...page, records: page.records.map(each => ({ ...each, writeId: this.#first.get(each.key)! })) }
  }
}

class ShowsItsOwnObjects extends SharingStore {
  override async scan(cursor: string | null, limit: number, call: StoreCall) {
    const page = await super.scan(cursor, limit, call)
    return { ...page, records: page.records.map(({ key }) => this.records.get(key)!) }
  }
}

class WalksByItsOwnClock extends SharingStore {
  override scan(cursor: string | null, limit: number) {
    return super.scan(cursor, limit, { now: Date.now() })
  }
}

class TakesZeroForNoClock extends SharingStore {
  override live(key: string, now: number) {
    return super.live(key, now || Date.now())
  }
}

class RemovesWhatItSkips extends SharingStore {
  override async scan(cursor: string | null, limit: number, call: StoreCall) {
    for (const [key, { expiresAt }] of this.records) if (expiresAt <= call.now) this.records.delete(key)
    return super.scan(cursor, limit, call)
  }
}

class TouchesWhatItMeets extends SharingStore {
  override async scan(cursor: string | null, limit: number, call: StoreCall) {
    const page = await super.scan(cursor, limit, call)
    for (const { key, expiresAt } of page.records) await this.touch(key, call.now, expiresAt, call)
    return page
  }
}

class ShowsTheCorrupt extends SharingStore {
  override async scan(cursor: string | null, limit: number, call: StoreCall) {
    const page = await super.scan(cursor, limit, call)
    return { ...page, records: [...page.records, ...[...this.records.values()].filter(({ version }) => version < 0)] }
  }
}

class StopsAtTheCorrupt extends SharingStore {
  override async scan(cursor: string | null, limit: number, call: StoreCall) {
    const page = await super.scan(cursor, limit, call)
    const isDamaged = [...this.records.values()].some(({ version }) => version < 0)
    return isDamaged ? { ...page, records: [], next: null } : page
  }
}

class EndsWhereTheDatabaseFails extends SharingStore {
  override scan(cursor: string | null, limit: number, call: StoreCall) {
    return super.scan(cursor, limit, call).catch(() => ({ records: [], forwards: [], next: null }))
  }
  override count(call: StoreCall) {
    return super.count(call).catch(() => 0)
  }
}

/** Counts what `counts` is true of. */
class Counts extends SharingStore {
  readonly #counts: (record: SessionRecord, now: number) => boolean
  readonly #more: (store: SharingStore) => number
  constructor(
    counts: (record: SessionRecord, now: number) => boolean,
    more: (store: SharingStore) => number = () => 0,
  ) {
    super()
    this.#counts = counts
    this.#more = more
  }
  override async count({ now }: StoreCall) {
    return [...this.records.values()].filter(record => this.#counts(record, now)).length + this.#more(this)
  }
}

const ALL = 'meets each live record and each forward in a walk, whatever the size of its pages'
const EXPIRED = "leaves out of a walk what has expired by the caller's clock, and removes nothing"
const UNCHANGED = 'prolongs nothing by a walk, and hands out objects that the caller may change'
const AGAIN = 'goes on from a cursor as often as it is asked to, and beside other walks'
const STANDING = 'meets in a walk whatever stands all the while, as others come, go, change and get new IDs'
const ENDS =
  'lets a walk that ends what it meets end all that existed when it began, though sessions get new IDs meanwhile'
const CORRUPT = 'leaves corrupted records out of a walk, and goes on behind them'
const OUTAGE = 'rejects a page where reads fail: a walk in an outage is not at its end'
const COUNT =
  'counts the live sessions of users and visitors, and neither series nor forwards nor what has expired or ended'
const NO_COUNT = 'rejects a count where reads fail: an outage is no count of 0'

const isLive = ({ expiresAt }: SessionRecord, now: number) => expiresAt > now
const isSession = (record: SessionRecord, now: number) => record.kind === 'session' && isLive(record, now)

export const walks: readonly WrongStore[] = [
  {
    mistake: 'ends a walk after its first page',
    open: () => new StopsAfterAPage(),
    caughtBy: [ALL, AGAIN, STANDING, ENDS],
  },
  { mistake: 'begins a walk anew with each page', open: () => new BeginsAnew(), caughtBy: [ALL, AGAIN] },
  {
    mistake: 'walks over sessions alone, not over series',
    open: recordsBut(({ kind }) => kind === 'remember'),
    caughtBy: [ALL, ENDS],
  },
  {
    mistake: 'walks over the sessions of users alone',
    open: recordsBut(({ userId }) => userId === null),
    caughtBy: [ALL, STANDING, ENDS],
  },
  {
    mistake: 'keeps its forwards to itself in a walk',
    open: () => new Shows(() => ({ forwards: [] })),
    caughtBy: [ALL, STANDING, ENDS],
  },
  {
    mistake: 'names as a forward whatever it meets',
    open: () =>
      new Shows(({ records, forwards }) => ({ forwards: [...forwards, ...records.map(record => record.key)] })),
    caughtBy: [ALL],
  },
  { mistake: 'goes on from a place in a list that shrinks', open: () => new CountsPlaces(), caughtBy: [STANDING] },
  { mistake: 'knows of one walk at a time', open: () => new RemembersTheWalk(), caughtBy: [AGAIN] },
  {
    mistake: 'walks over the forwards before the records',
    open: () => new ForwardsFirst(),
    caughtBy: [STANDING, ENDS],
  },
  {
    mistake: 'puts together a record from two of its writes in a walk',
    open: () => new ShowsTheFirstWriteId(),
    caughtBy: [STANDING],
  },
  { mistake: 'hands out its own objects in a walk', open: () => new ShowsItsOwnObjects(), caughtBy: [UNCHANGED] },
  { mistake: 'walks by its own clock', open: () => new WalksByItsOwnClock(), caughtBy: [EXPIRED] },
  { mistake: 'takes a clock at 0 for none', open: () => new TakesZeroForNoClock(), caughtBy: [EXPIRED] },
  { mistake: 'removes what has expired to the walker', open: () => new RemovesWhatItSkips(), caughtBy: [EXPIRED] },
  { mistake: 'touches what it meets in a walk', open: () => new TouchesWhatItMeets(), caughtBy: [UNCHANGED] },
  { mistake: 'shows corrupted records in a walk', open: () => new ShowsTheCorrupt(), caughtBy: [CORRUPT] },
  { mistake: 'ends a walk at a corrupted record', open: () => new StopsAtTheCorrupt(), caughtBy: [CORRUPT] },
  {
    mistake: 'ends a walk, and counts nothing, where the database fails',
    open: () => new EndsWhereTheDatabaseFails(),
    caughtBy: [OUTAGE, NO_COUNT],
  },
  { mistake: 'counts series', open: () => new Counts(isLive), caughtBy: [COUNT] },
  { mistake: 'counts what has expired', open: () => new Counts(({ kind }) => kind === 'session'), caughtBy: [COUNT] },
  {
    mistake: 'counts users alone',
    open: () => new Counts((record, now) => isSession(record, now) && record.userId !== null),
    caughtBy: [COUNT],
  },
  { mistake: 'counts forwards', open: () => new Counts(isSession, store => store.forwards.size), caughtBy: [COUNT] },
]
