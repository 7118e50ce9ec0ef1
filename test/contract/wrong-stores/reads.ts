// Mistakes of a store that sends the reads of one turn of the event loop as one command.
import type { Corrupt, Forward, RecordChange, SessionRecord, StoreCall } from 'coatcheck/custom-store'
import type { TestStoreOptions } from 'coatcheck/custom-store/testing'
import { CheckedStore, corrupt } from './checked.ts'
import { pause, type WrongStore } from './wrong.ts'

type Answer = SessionRecord | Forward | Corrupt | null

interface Reader {
  readonly key: string
  readonly call: StoreCall
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/** The right one. An answer takes a turn to come back, as over a network. */
export class SharingStore extends CheckedStore {
  isAway = false
  #readers: Reader[] = []

  override read(key: string, call: StoreCall): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#readers.push({ key, call, resolve, reject }) === 1) setImmediate(() => this.#send())
    })
  }

  #send(): void {
    const readers = this.#readers
    this.#readers = []
    this.ask(readers).then(
      answers => {
        for (const [place, reader] of readers.entries()) reader.resolve(answers[place]!)
      },
      error => {
        for (const reader of readers) reader.reject(error)
      },
    )
  }

  async ask(readers: readonly Reader[]): Promise<Answer[]> {
    if (this.isAway) throw new Error('the database is away')
    const answers = await Promise.all(readers.map(({ key, call }) => this.find(key, call)))
    await pause()
    return answers
  }

  override async scan(cursor: string | null, limit: number, call: StoreCall) {
    if (this.isAway) throw new Error('the database is away')
    return super.scan(cursor, limit, call)
  }

  override async count(call: StoreCall) {
    if (this.isAway) throw new Error('the database is away')
    return super.count(call)
  }

  find(key: string, call: StoreCall): Promise<Answer> {
    return super.read(key, call)
  }
}

/** What the suite is told of these stores. */
export const SHARING: TestStoreOptions = {
  corrupt,
  async outage(store) {
    const sharing = store as SharingStore
    sharing.isAway = true
    return async () => {
      sharing.isAway = false
    }
  },
}

class AnswersByPosition extends SharingStore {
  override async ask(readers: readonly Reader[]) {
    const rows = (await super.ask(readers)).filter(answer => answer !== null)
    return readers.map((_, place) => rows[place] ?? null)
  }
}

class AnswersByPositionOfKeys extends SharingStore {
  override async ask(readers: readonly Reader[]) {
    const answers = await super.ask(readers)
    const keys = [...new Set(readers.map(({ key }) => key))]
    const rows = keys.map(key => answers[readers.findIndex(reader => reader.key === key)]!)
    return readers.map((_, place) => rows[place] ?? null)
  }
}

class OneObjectForAKey extends SharingStore {
  override async ask(readers: readonly Reader[]) {
    const answers = await super.ask(readers)
    return readers.map(({ key }) => answers[readers.findIndex(reader => reader.key === key)]!)
  }
}

class JoinsWhatIsUnderWay extends SharingStore {
  readonly #underWay = new Map<string, Promise<Answer>>()
  override async read(key: string, call: StoreCall) {
    const joined = this.#underWay.get(key)
    const answer = joined ?? super.read(key, call).finally(() => this.#underWay.delete(key))
    if (joined === undefined) this.#underWay.set(key, answer)
    const found = await answer
    return found === null ? null : { ...found }
  }
}

class AsksForAKeyOncePerTurn extends SharingStore {
  readonly #thisTurn = new Map<string, Promise<Answer>>()
  override async read(key: string, call: StoreCall) {
    if (this.#thisTurn.size === 0) setImmediate(() => this.#thisTurn.clear())
    const answer = this.#thisTurn.get(key) ?? this.find(key, call)
    this.#thisTurn.set(key, answer)
    const found = await answer
    return found === null ? null : { ...found }
  }
}

class ClockOfTheFirst extends SharingStore {
  override ask(readers: readonly Reader[]) {
    return super.ask(readers.map(reader => ({ ...reader, call: readers[0]!.call })))
  }
}

class LatestClock extends SharingStore {
  override ask(readers: readonly Reader[]) {
    const now = Math.max(...readers.map(({ call }) => call.now))
    return super.ask(readers.map(reader => ({ ...reader, call: { now } })))
  }
}

class FirstThousandKeys extends SharingStore {
  override async ask(readers: readonly Reader[]) {
    return (await super.ask(readers)).map((answer, place) => (place < 1000 ? answer : null))
  }
}

class OneForwardHidesTheRest extends SharingStore {
  override async ask(readers: readonly Reader[]) {
    const answers = await super.ask(readers)
    const isMoved = (answer: Answer) => answer !== null && 'movedTo' in answer
    return answers.some(isMoved) ? answers.map(answer => (isMoved(answer) ? answer : null)) : answers
  }
}

class OneExpiredEndsTheRest extends SharingStore {
  override async ask(readers: readonly Reader[]) {
    const isExpired = ({ key, call }: Reader) => (this.records.get(key)?.expiresAt ?? call.now + 1) <= call.now
    return readers.some(isExpired) ? readers.map(() => null) : super.ask(readers)
  }
}

class EarliestDeadline extends SharingStore {
  override async ask(readers: readonly Reader[]) {
    const deadlines = readers.map(({ call }) => call.deadline ?? Number.POSITIVE_INFINITY)
    if (Math.min(...deadlines) < performance.now()) throw new Error('no time was left')
    return super.ask(readers)
  }
}

class TimeOverIsAbsent extends SharingStore {
  override async ask(readers: readonly Reader[]) {
    const isLate = ({ call }: Reader) => (call.deadline ?? Number.POSITIVE_INFINITY) < performance.now()
    return (await super.ask(readers)).map((answer, place) => (isLate(readers[place]!) ? null : answer))
  }
}

class OneMalformedKeyFailsAll extends SharingStore {
  override async ask(readers: readonly Reader[]) {
    if (readers.some(({ key }) => !/^[\w-]{46}$/.test(key))) throw new Error('malformed key')
    return super.ask(readers)
  }
}

class OneCorruptFailsAll extends SharingStore {
  override async ask(readers: readonly Reader[]) {
    const answers = await super.ask(readers)
    if (answers.some(answer => answer !== null && 'corrupt' in answer)) throw new Error('corrupt')
    return answers
  }
}

class OneCorruptIsToldToAll extends SharingStore {
  override async ask(readers: readonly Reader[]) {
    const answers = await super.ask(readers)
    const told = answers.find(answer => answer !== null && 'corrupt' in answer)
    return told === undefined ? answers : answers.map(() => ({ ...told }))
  }
}

class AwayIsAbsent extends SharingStore {
  override ask(readers: readonly Reader[]) {
    return super.ask(readers).catch(() => readers.map(() => null))
  }
}

class AwayIsAbsentForAllButTheFirst extends SharingStore {
  override async read(key: string, call: StoreCall) {
    if (!this.isAway) return super.read(key, call)
    const isFirst = !this.#isTold
    this.#isTold = true
    setImmediate(() => {
      this.#isTold = false
    })
    if (isFirst) throw new Error('the database is away')
    return null
  }
  #isTold = false
}

class UpdatesInTwoParts extends SharingStore {
  override async update(key: string, version: number, change: RecordChange, call: StoreCall) {
    const live = this.live(key, call.now)
    const outcome = await super.update(key, version, change, call)
    if (outcome !== 'updated' || live === undefined) return outcome
    const { data } = this.records.get(key)!
    this.records.set(key, { ...this.records.get(key)!, data: live.data })
    await pause()
    await pause()
    this.records.set(key, { ...this.records.get(key)!, data })
    return outcome
  }
}

const OWN_KEY = 'brings each of many readers in one turn what stands under its own key'
const OWN_CLOCK = 'decides for each of many readers in one turn by its own clock'
const MANY = 'answers 1,000 and 5,000 readers in one turn, each its own'
const OWN_OBJECT = 'gives readers of one key in one turn equal answers, and to each an object of its own'
const CORRUPT = 'reports a corrupted record to its own readers alone, in one turn with others'
const ODD_KEY = 'finds nothing under a key of another shape, and readers in the same turn do not notice'
const OWN_TIME = 'lets a reader whose time is over fail alone, in one turn with others'
const ACKNOWLEDGED =
  'shows a write to a reader that asks after its acknowledgement, though others of that key are under way'
const VISITORS = 'shows many visitors at once what they wrote, and nothing that was never there'
const OUTAGE = 'rejects for each of many readers in one turn while its commands fail: an outage ends no session'

export const reads: readonly WrongStore[] = [
  {
    mistake: 'answers readers by the position of the rows, and one is missing',
    open: () => new AnswersByPosition(),
    caughtBy: [OWN_KEY, OWN_CLOCK, MANY],
  },
  {
    mistake: 'answers readers by the position of their keys, and two have the same',
    open: () => new AnswersByPositionOfKeys(),
    caughtBy: [OWN_KEY, MANY],
  },
  {
    mistake: 'gives one object to all readers of a key',
    open: () => new OneObjectForAKey(),
    caughtBy: [OWN_OBJECT],
  },
  {
    mistake: 'lets a reader join a command that is under way',
    open: () => new JoinsWhatIsUnderWay(),
    caughtBy: [ACKNOWLEDGED, VISITORS],
  },
  {
    mistake: 'asks for a key when the first reader of a turn does, and answers the others by that',
    open: () => new AsksForAKeyOncePerTurn(),
    caughtBy: [ACKNOWLEDGED, VISITORS],
  },
  {
    mistake: 'decides for all readers by the clock of the first',
    open: () => new ClockOfTheFirst(),
    caughtBy: [OWN_CLOCK],
  },
  {
    mistake: 'decides for all readers by the latest clock',
    open: () => new LatestClock(),
    caughtBy: [OWN_CLOCK],
  },
  {
    mistake: 'answers a thousand readers in one turn and no more',
    open: () => new FirstThousandKeys(),
    caughtBy: [MANY],
  },
  {
    mistake: 'finds nothing else where one session was replaced',
    open: () => new OneForwardHidesTheRest(),
    caughtBy: [OWN_KEY],
  },
  {
    mistake: 'finds nothing else where one session has expired',
    open: () => new OneExpiredEndsTheRest(),
    caughtBy: [OWN_KEY, OWN_CLOCK],
  },
  {
    mistake: 'fails for all readers where the time of one is over',
    open: () => new EarliestDeadline(),
    caughtBy: [OWN_TIME],
  },
  {
    mistake: 'finds nothing for a reader whose time is over',
    open: () => new TimeOverIsAbsent(),
    caughtBy: [OWN_TIME],
  },
  {
    mistake: 'fails for all readers where the key of one has another shape',
    open: () => new OneMalformedKeyFailsAll(),
    caughtBy: [ODD_KEY],
  },
  {
    mistake: 'fails for all readers where one record is corrupted',
    open: () => new OneCorruptFailsAll(),
    caughtBy: [CORRUPT],
  },
  {
    mistake: 'tells all readers of one corrupted record',
    open: () => new OneCorruptIsToldToAll(),
    caughtBy: [CORRUPT],
  },
  {
    mistake: 'finds nothing while its commands fail',
    open: () => new AwayIsAbsent(),
    caughtBy: [OUTAGE],
  },
  {
    mistake: 'tells the first reader of a failing command, and finds nothing for the others',
    open: () => new AwayIsAbsentForAllButTheFirst(),
    caughtBy: [OUTAGE],
  },
  {
    mistake: 'shows an update of which a part is missing',
    open: () => new UpdatesInTwoParts(),
    caughtBy: [VISITORS],
  },
]
