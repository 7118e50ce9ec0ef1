// One run of some requests, in which nothing happens by itself: each call of a store, each timer, each callback of the
// application, each head and each response waits until it is chosen. The clocks stand until a timer is chosen.
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { createHash } from 'node:crypto'
import type { SessionEvent, SessionManager, SessionOptions, Store } from 'coatcheck'
import type { ScanPage, SessionRecord } from 'coatcheck/custom-store'
import { ReferenceStore } from '../../../src/custom-store/reference.ts'
import { type Library, type Seams, useSeams } from './library.ts'

export type Data = Record<string, unknown>
export type Manager = SessionManager<Data>

/** What may happen next. */
export interface Option {
  readonly label: string
  /** Something goes wrong, of which a run has only so much. */
  readonly isFault: boolean
  run(): void
}

/** Chooses one of the options by its index; `null` leaves the run. */
export type Choose = (options: readonly Option[], world: World) => number | null

const VERBS = ['create', 'read', 'update', 'touch', 'replace', 'delete', 'deleteUser', 'listUser', 'scan'] as const
type Verb = (typeof VERBS)[number]
export const BEGIN = 1_800_000_000_000
/** Longer than the wait after a conflict, shorter than any deadline. */
const SHORT = 200
/** From here on a timer only watches over cookies that are never sent. */
const LONG = 10_000

/** Goes on from run to run: a generator that repeats itself is noticed. */
let drawn = 1
const whose = new AsyncLocalStorage<number>()
const turn = () => new Promise<void>(resolve => setImmediate(resolve))

interface Point {
  readonly actor: number
  readonly label: string
  /** Of a call of a store: `asked` until it takes effect, `applied` until its answer comes. */
  state: 'asked' | 'applied'
  value: unknown
  failure: unknown
  readonly deadline: number
  readonly verb: Verb | 'callback'
  apply(): unknown
  resolve(value: unknown): void
  reject(error: unknown): void
}

interface Timer {
  readonly due: number
  readonly ms: number
  readonly actor: number
  readonly callback: () => void
}

interface Place {
  readonly actor: number
  readonly line: Place[]
  turn: { latest: unknown } | null
}

/** One of those who act at the same time. */
export interface Actor {
  readonly name: string
  state: 'waiting' | 'running' | 'answered' | 'sent' | 'done'
  /** What it has learnt so far: what it does next depends on nothing else. */
  log: string
  /** Who had finished when it began. */
  after: string
  value: unknown
  error: unknown
  /** Calls that it made, by verb. */
  readonly calls: Partial<Record<Verb, number>>
  readonly begin: () => Promise<unknown>
  /** Writes the head of its response, and answers what takes it to the browser; `null` where it has none. */
  readonly head: (() => () => void) | null
  deliver: (() => void) | null
  /** Its response never arrived. */
  isLost: boolean
}

export interface WorldOptions {
  /** How many things may go wrong. */
  readonly faults: number
  /** Whether a response arrives as soon as its head is written. */
  readonly arrivesAtOnce?: boolean
}

/** What is tried: the library as it is, or with a mistake in a source or in its store. */
export interface Subject {
  readonly library: Library
  readonly store?: new () => ReferenceStore
}

const NAMED = /[A-Za-z0-9_-]{16,}/g

export class World implements Seams {
  readonly library: Library
  readonly store: ReferenceStore
  /** The store as the managers see it. */
  readonly waiting: Store
  readonly actors: Actor[] = []
  readonly events: SessionEvent[] = []
  readonly trace: string[] = []
  readonly #options: WorldOptions
  readonly #names = new Map<string, string>()
  readonly #counts = new Map<number, number>()
  readonly #points: Point[] = []
  #timers: Timer[] = []
  readonly #memories: Map<string, unknown>[] = []
  readonly #lines = new Map<object, Map<string, Place[]>>()
  #immediates = 0
  #invalidations = 0
  #isLooking = false
  /** How many things went wrong. */
  faults = 0
  /** Outside of the run, calls take effect and are answered at once. */
  isRunning = false
  now = BEGIN
  /** The latest that the clock on the wall has shown, and how far that of a process is ahead of it. */
  latest = BEGIN
  skew = 0
  ticks = 1_000_000
  /** What a scene keeps for itself, such as the cookies of a browser: it is part of the state. */
  notes: object = {}

  constructor({ library, store: Kept = ReferenceStore }: Subject, options: WorldOptions) {
    this.library = library
    this.store = new Kept()
    this.#options = options
    useSeams(this)
    const waiting: Record<string, unknown> = {}
    for (const verb of VERBS)
      waiting[verb] = (...args: unknown[]) => {
        const run = () => (this.store[verb] as (...args: unknown[]) => Promise<unknown>).apply(this.store, args)
        const apply = verb === 'scan' ? () => (run() as Promise<ScanPage>).then(page => this.#inOrder(page)) : run
        return this.isRunning ? this.#ask(verb, args, apply) : apply()
      }
    this.waiting = waiting as unknown as Store
  }

  /** `skew`: how far its clock is ahead, in ms. */
  manager(options: Partial<SessionOptions<Data, 'bigint', Data>> = {}, skew = 0): Manager {
    this.skew = Math.max(this.skew, skew)
    return new this.library.SessionManager<Data>({
      store: this.waiting,
      now: () => {
        this.#learn(`now ${this.now - BEGIN}`)
        return this.now + skew
      },
      sweepInterval: false,
      rememberFor: '30d',
      storeTimeout: '2s',
      onEvent: event => {
        if (this.isRunning) this.events.push(event)
      },
      ...options,
    })
  }

  /** A callback of the application, which answers when it is chosen: what `answer` says then. */
  callback<T>(name: string, answer: () => T): T | Promise<T> {
    if (!this.isRunning) return answer()
    return this.#wait('callback', name, this.ticks + 2000, answer) as Promise<T>
  }

  /** The clock on the wall is set, or time passes at which nothing else happens. */
  advance(ms: number): void {
    this.now += ms
    this.latest = Math.max(this.latest, this.now)
    if (!this.isRunning) this.ticks += Math.max(0, ms)
  }

  act(name: string, begin: () => Promise<unknown>, head: Actor['head'] = null): void {
    this.actors.push({
      name,
      state: 'waiting',
      log: '',
      after: '',
      value: undefined,
      error: undefined,
      calls: {},
      begin,
      head,
      deliver: null,
      isLost: false,
    })
  }

  /** Runs all actors to their ends, as `choose` says; `false` where it left the run. */
  async run(choose: Choose): Promise<boolean> {
    this.isRunning = true
    // All that is there is named before anything happens.
    for (const each of [...this.store.records.keys(), ...this.store.records.values(), ...this.store.forwards])
      this.canonical(JSON.stringify(each, bigints))
    for (;;) {
      await this.#settle()
      let options = this.#next()
      if (options.length === 0) {
        if (this.actors.every(({ state }) => state === 'done')) break
        // What waits for nobody's answer waits for its deadline.
        assert.ok(this.#pass(false), `nothing goes on any more: ${this.trace.join(', ')}`)
        this.trace.push('time passes')
        continue
      }
      if (options.every(({ isFault }) => isFault)) options = [...options, this.#timeOption(false)]
      const chosen = options.length === 1 ? 0 : choose(options, this)
      if (chosen === null) return false
      const option = options[chosen]!
      this.trace.push(option.label)
      if (option.isFault) this.faults += 1
      option.run()
    }
    this.isRunning = false
    return true
  }

  /** Everything on which it depends what may still happen, and what will be found of it: equal text, equal futures. */
  state(): string {
    const { records, forwards, minPasswordVersions } = this.store
    // A look at the state gives no names: those would depend on when it was looked at.
    this.#isLooking = true
    const notes = this.canonical(JSON.stringify(this.notes))
    const parts: unknown[] = [this.now, this.ticks, this.faults, notes, this.#invalidations]
    const byName = (lines: string[]) => lines.sort()
    parts.push(byName([...records.values()].map(record => this.#recordText(record))))
    parts.push(byName([...forwards].map(([key, kept]) => this.canonical(JSON.stringify([key, kept])))))
    parts.push([...minPasswordVersions])
    for (const memory of this.#memories)
      parts.push(byName([...memory].map(([key, value]) => this.canonical(`${key} ${valueText(value)}`))))
    for (const lines of this.#lines.values())
      for (const [key, line] of lines)
        if (line.length > 0)
          parts.push(
            this.canonical(key),
            line.map(({ actor, turn }) => [actor, this.#latestText(turn)]),
          )
    for (const { state, log, after, isLost } of this.actors) parts.push([state, log, after, isLost])
    for (const { label, state, value, failure } of this.#points)
      parts.push([label, state, this.canonical(valueText(value)), failure !== undefined])
    parts.push(this.#timers.filter(({ ms }) => ms < LONG).map(({ due, actor }) => [due, actor]))
    parts.push(this.events.map(({ type }) => type).sort())
    this.#isLooking = false
    return createHash('md5').update(JSON.stringify(parts, bigints)).digest('base64')
  }

  /** The text with short names in place of what is drawn at random, the same in each run of the same choices. */
  canonical(text: string): string {
    return text.replace(NAMED, drawn => this.#nameOf(drawn))
  }

  // What the built sources ask.

  steady(): number {
    return this.ticks
  }
  wall(): number {
    return this.now
  }
  random(): number {
    return 0.5
  }
  setTimeout(callback: () => void, ms: number): object {
    const timer = { due: this.ticks + ms, ms, actor: whose.getStore() ?? -1, callback, ref() {}, unref() {} }
    this.#timers.push(timer)
    return timer
  }
  clearTimeout(timer: object): void {
    this.#timers = this.#timers.filter(each => each !== timer)
  }
  setImmediate(callback: () => void): void {
    this.#immediates += 1
    setImmediate(() => {
      this.#immediates -= 1
      callback()
    })
  }
  fill(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += 1) {
      drawn = (Math.imul(drawn, 1_664_525) + 1_013_904_223) >>> 0
      bytes[at] = drawn >>> 24
    }
  }
  memory(entries: Map<string, unknown>): void {
    this.#memories.push(entries)
  }
  asked(key: string, value: unknown): void {
    if (this.isRunning) this.#learn(`${key} ${valueText(value)}`)
  }
  told(_: string, value: unknown): void {
    if (typeof value === 'object' && value !== null && 'at' in value) this.#invalidations += 1
  }
  queued(queue: object, key: string): object {
    const lines = this.#lines.get(queue) ?? new Map<string, Place[]>()
    this.#lines.set(queue, lines)
    const line = lines.get(key) ?? []
    lines.set(key, line)
    const place: Place = { actor: whose.getStore() ?? -1, line, turn: null }
    line.push(place)
    return place
  }
  turn(place: object, turn: { latest: unknown }): void {
    const own = place as Place
    own.turn = turn
    if (this.isRunning) this.#learn(`turn ${this.#latestText(turn)}`)
  }
  left(place: object): void {
    const { line } = place as Place
    line.splice(line.indexOf(place as Place), 1)
  }

  // How a run goes on.

  async #settle(): Promise<void> {
    // Nothing of the sources waits for anything but promises, this turn, and what is owned here.
    do await turn()
    while (this.#immediates > 0)
  }

  #next(): Option[] {
    const options: Option[] = []
    const mayFail = this.faults < this.#options.faults
    for (const [index, actor] of this.actors.entries()) {
      if (actor.state === 'waiting')
        options.push({ label: `${index}: ${actor.name}`, isFault: false, run: () => this.#begin(index) })
      if (actor.state === 'answered')
        options.push({ label: `${index}: head`, isFault: false, run: () => this.#writeHead(index) })
      if (actor.state === 'sent') {
        options.push({ label: `${index}: response arrives`, isFault: false, run: () => this.#deliver(actor) })
        if (mayFail) options.push({ label: `${index}: response is lost`, isFault: true, run: () => this.#lose(actor) })
      }
    }
    for (const point of this.#points) {
      const option = (what: string, isFault: boolean, run: () => void) =>
        options.push({ label: `${point.label} ${what}`, isFault, run })
      if (point.state === 'asked') option('runs', false, () => this.#apply(point))
      else option('answers', false, () => this.#answer(point))
      if (!mayFail) continue
      if (point.state === 'applied') option('loses its answer', true, () => this.#fail(point, new Error('ECONNRESET')))
      else {
        option('fails', true, () => this.#fail(point, new Error('ECONNREFUSED')))
        if (point.verb !== 'callback')
          option('is refused', true, () => {
            const { SessionStoreError } = this.library
            this.#fail(point, new SessionStoreError(point.verb as 'read', 'not-applied', 'refused'))
          })
        // The manager watches its deadline.
        else option('never comes', true, () => this.#remove(point))
      }
    }
    const short = this.#earliest(timer => timer.ms < SHORT)
    if (short !== null)
      options.push({ label: `${short.actor}: goes on after a wait`, isFault: false, run: () => this.#ring(short) })
    if (mayFail && this.#points.length > 0 && this.#earliest(isDeadline) !== null) options.push(this.#timeOption(true))
    return options
  }

  #timeOption(isFault: boolean): Option {
    return { label: 'time passes', isFault, run: () => void this.#pass(true) }
  }

  #earliest(test: (timer: Timer) => boolean): Timer | null {
    let first: Timer | null = null
    for (const timer of this.#timers) if (test(timer) && (first === null || timer.due < first.due)) first = timer
    return first
  }

  /** Until the next deadline: what a store was asked for and has not done by then, it does not do (`StoreCall.deadline`). */
  #pass(isChosen: boolean): boolean {
    const timer = this.#earliest(isChosen ? isDeadline : each => each.ms < LONG)
    if (timer === null) return false
    this.#ring(timer)
    for (const point of [...this.#points]) if (point.deadline <= this.ticks) this.#remove(point)
    return true
  }

  #ring(timer: Timer): void {
    const passed = Math.max(0, timer.due - this.ticks)
    this.ticks += passed
    this.now += passed
    this.latest = Math.max(this.latest, this.now)
    const due = this.#timers.filter(each => each === timer || (each.due <= this.ticks && each.ms < LONG))
    this.#timers = this.#timers.filter(each => !due.includes(each))
    for (const { callback } of due) callback()
  }

  #begin(index: number): void {
    const actor = this.actors[index]!
    actor.state = 'running'
    actor.after = this.actors.flatMap(({ state }, other) => (state === 'done' ? [other] : [])).join()
    const end = () => {
      actor.state = actor.head === null ? 'done' : 'answered'
    }
    whose.run(index, () => {
      actor.begin().then(
        value => {
          actor.value = value
          end()
        },
        error => {
          actor.error = error
          end()
        },
      )
    })
  }

  #writeHead(index: number): void {
    const actor = this.actors[index]!
    actor.deliver = whose.run(index, () => actor.head!())
    actor.state = 'sent'
    if (this.#options.arrivesAtOnce) this.#deliver(actor)
  }

  #deliver(actor: Actor): void {
    actor.deliver!()
    actor.state = 'done'
  }

  #lose(actor: Actor): void {
    actor.isLost = true
    actor.state = 'done'
  }

  #ask(verb: Verb, args: readonly unknown[], apply: () => unknown): Promise<unknown> {
    const { deadline } = args.at(-1) as { deadline: number }
    assert.ok(deadline > this.ticks, `${verb} begins after its deadline: ${this.trace.join(', ')}`)
    const actor = this.actors[whose.getStore() ?? -1]
    if (actor !== undefined) actor.calls[verb] = (actor.calls[verb] ?? 0) + 1
    const named = args.flatMap(each => (typeof each === 'string' ? each : keyIn(each)))
    // All of it is named here, by who asks: what others draw does not change the names.
    this.canonical(JSON.stringify(args, bigints))
    return this.#wait(verb, `${verb} ${this.canonical(named.join(' '))}`, deadline, apply)
  }

  #wait(verb: Point['verb'], what: string, deadline: number, apply: () => unknown): Promise<unknown> {
    const actor = whose.getStore() ?? -1
    return new Promise((resolve, reject) => {
      const label = `${actor}: ${what}`
      const point: Point = {
        actor,
        label,
        state: 'asked',
        value: undefined,
        failure: undefined,
        deadline,
        verb,
        apply,
        resolve,
        reject,
      }
      this.#points.push(point)
    })
  }

  #apply(point: Point): void {
    point.state = 'applied'
    Promise.resolve(point.apply()).then(
      value => {
        point.value = value
      },
      error => {
        point.failure = error
      },
    )
  }

  #answer(point: Point): void {
    this.#remove(point)
    this.#learn(`${point.label} ${valueText(point.value)}`, point.actor)
    if (point.failure === undefined) point.resolve(point.value)
    else point.reject(point.failure)
  }

  #fail(point: Point, error: Error): void {
    this.#remove(point)
    this.#learn(`${point.label} ${error.message}`, point.actor)
    point.reject(error)
  }

  #remove(point: Point): void {
    this.#points.splice(this.#points.indexOf(point), 1)
  }

  #learn(text: string, actor = whose.getStore()): void {
    const own = actor === undefined ? undefined : this.actors[actor]
    if (own !== undefined && this.isRunning) own.log += `${this.canonical(text)};`
  }

  #nameOf(drawn: string): string {
    let name = this.#names.get(drawn)
    if (name === undefined) {
      if (this.#isLooking) return '<?>'
      const actor = whose.getStore() ?? -1
      const count = (this.#counts.get(actor) ?? 0) + 1
      this.#counts.set(actor, count)
      name = `<${actor}.${count}>`
      this.#names.set(drawn, name)
    }
    return name
  }

  /** Keys are drawn at random, and so is their order: here it is that of their names. */
  #inOrder({ records, forwards, next }: ScanPage): ScanPage {
    const byName = (one: string, other: string) => (this.canonical(one) < this.canonical(other) ? -1 : 1)
    return {
      records: [...records].sort((one, other) => byName(one.key, other.key)),
      forwards: [...forwards].sort(byName),
      next,
    }
  }

  #recordText(record: SessionRecord): string {
    return this.canonical(JSON.stringify(record, bigints))
  }

  #latestText(turn: Place['turn']): string {
    const latest = turn?.latest as SessionRecord | null | undefined
    return latest === null || latest === undefined ? '' : this.#recordText(latest)
  }
}

const isDeadline = ({ ms }: Timer) => ms >= SHORT && ms < LONG
const keyIn = (value: unknown) =>
  typeof value === 'object' && value !== null && 'key' in value ? String(value.key) : []
/** For text that is compared: a write ID is new in each write, and says nothing else. */
const bigints = (name: string, value: unknown) =>
  name === 'writeId' ? '' : typeof value === 'bigint' ? `${value}` : value

/** A value of a memory, or an answer, as text; what is told of a login is what others may do with it. */
function valueText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value)
  if ('at' in value) return JSON.stringify({ ...value, order: 0 }, bigints)
  if ('holders' in value) {
    const { session, token, before, holders, isSent } = value as unknown as Record<string, unknown>
    return JSON.stringify([(session as { key: string }).key, token, before, holders, isSent], bigints)
  }
  return JSON.stringify(value, bigints)
}
