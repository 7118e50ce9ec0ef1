// The contract of a store as a pure step function: what a state and a call may lead to. The rules of admission are the
// reference's of the suite; a property test compares the whole with it.
import type { DeleteUserOptions, RecordChange, ReplaceOptions, SessionRecord } from 'coatcheck/custom-store'
import { type KeptForward, type KeptMinPasswordVersion, ReferenceStore } from 'coatcheck/custom-store/testing'

/** A call of the contract with its arguments; `now` is the caller's clock. */
export type Call =
  | {
      readonly verb: 'create'
      readonly record: SessionRecord
      readonly now: number
    }
  | { readonly verb: 'read'; readonly key: string; readonly now: number }
  | {
      readonly verb: 'update'
      readonly key: string
      readonly version: number
      readonly change: RecordChange
      readonly now: number
    }
  | {
      readonly verb: 'touch'
      readonly key: string
      readonly seenAt: number
      readonly expiresAt: number
      readonly now: number
    }
  | {
      readonly verb: 'replace'
      readonly oldKey: string
      readonly oldVersion: number
      readonly record: SessionRecord
      readonly options: ReplaceOptions
      readonly now: number
    }
  | { readonly verb: 'delete'; readonly key: string; readonly now: number }
  | { readonly verb: 'deleteUser'; readonly userId: string; readonly options: DeleteUserOptions; readonly now: number }
  | {
      readonly verb: 'listUser'
      readonly userId: string
      readonly kind: SessionRecord['kind']
      readonly now: number
    }

export type Replace = Extract<Call, { verb: 'replace' }>
export type DeleteUser = Extract<Call, { verb: 'deleteUser' }>

/** A call, or what is left of one that takes several steps. */
export type Stage =
  | Call
  /** A replacement across two slots of a cluster: after it has read the old record, after it has written the new one. */
  | { readonly verb: 'write'; readonly call: Replace; readonly parent: string | null }
  | { readonly verb: 'leave'; readonly call: Replace; readonly answer: Answer }
  /** The same where the new one is taken back. */
  | { readonly verb: 'undo'; readonly call: Replace; readonly answer: Answer }
  /** A deletion after the session has ended: the forwards that led to it are left. */
  | { readonly verb: 'unlink'; readonly forwards: readonly string[]; readonly answer: Answer }
  /** A logout everywhere that ends these next; `ended`: how many sessions it has ended. `left`: as below. */
  | {
      readonly verb: 'endUser'
      readonly call: DeleteUser
      readonly keys: readonly string[]
      readonly ended: number
      readonly left: number
    }
  /** A call that a client has sent again, of which so many deliveries are left. */
  | { readonly verb: 'again'; readonly call: Call; readonly left: number }

/** What is stored, of a few users. */
export interface State {
  readonly records: ReadonlyMap<string, SessionRecord>
  readonly forwards: ReadonlyMap<string, KeptForward>
  readonly minPasswordVersions: ReadonlyMap<string, KeptMinPasswordVersion>
  /** Keys of records that have ended for one on another slot, with its key. */
  readonly tombstones: ReadonlyMap<string, string>
}
export const EMPTY: State = {
  records: new Map(),
  forwards: new Map(),
  minPasswordVersions: new Map(),
  tombstones: new Map(),
}

/** What of the contract an engine keeps in a weaker form, each with the reason in its documentation. */
export interface Rules {
  /** A replacement from one of these keys to the other takes three steps, which other calls may come between. */
  readonly crosses?: (oldKey: string, newKey: string) => boolean
  /**
   * A deletion ends the session first, and then the forwards that led to it: other calls may come between. Where the second
   * step fails, they stay.
   */
  readonly deletesInSteps?: boolean
  /**
   * A logout everywhere ends the records that it was told of, and is told of the others by the same step, until there are
   * none: other calls may come between.
   */
  readonly endsUserInSteps?: boolean
  /** The client sends a command again after a cut connection, so that the server may run it three times at the most. */
  readonly resends?: boolean
}

/** What a call answers: any JSON value. */
export type Answer = unknown

/** One way a stage may go: it is over with an answer, or goes on later. */
export type Way = { readonly state: State } & ({ readonly answer: Answer } | { readonly next: Stage })

/** The reference, begun from a state and turned into one again. */
class Draft extends ReferenceStore {
  readonly tombstones: Map<string, string>

  constructor(state: State) {
    super()
    for (const [key, record] of state.records) this.records.set(key, record)
    for (const [key, left] of state.forwards) this.forwards.set(key, left)
    for (const [userId, floor] of state.minPasswordVersions) this.minPasswordVersions.set(userId, floor)
    this.tombstones = new Map(state.tombstones)
  }

  get state(): State {
    const { records, forwards, minPasswordVersions, tombstones } = this
    return { records, forwards, minPasswordVersions, tombstones }
  }

  /** Makes the record of a replacement live beside the old one, whose parent was this one. */
  admitBeside({ record, options, now }: Replace, parent: string | null) {
    const admitted = { ...record, parent: parent === record.parent ? null : record.parent }
    const found = this.admit(admitted, options, undefined, now)
    if (found === 'created') this.records.set(record.key, { ...record })
    return found
  }

  /** Ends what stands under the key, and what forwards from there lead to. */
  end(key: string): boolean {
    const left = this.forwards.get(key)
    this.forwards.delete(key)
    return left === undefined ? this.records.delete(key) : this.end(left.forward.movedTo)
  }

  /** A user's records but one. */
  ofUser({ userId, options }: DeleteUser): SessionRecord[] {
    const spared = this.successor(options.exceptKey)
    return [...this.records.values()].filter(record => record.userId === userId && record.key !== spared)
  }

  /** Ends these records; answers how many sessions were live at `now`. */
  endEach(records: readonly SessionRecord[], now: number): number {
    for (const { key } of records) this.records.delete(key)
    return records.filter(({ kind, expiresAt }) => kind === 'session' && expiresAt > now).length
  }

  raiseMinimum({ userId, options }: DeleteUser) {
    const { minPasswordVersion: passwordVersion, minPasswordVersionUntil } = options
    if (passwordVersion === undefined) return
    const floor = this.minPasswordVersions.get(userId) ?? { passwordVersion: 0, until: 0 }
    this.minPasswordVersions.set(userId, {
      passwordVersion: Math.max(floor.passwordVersion, passwordVersion),
      until: Math.max(floor.until, minPasswordVersionUntil),
    })
  }
}

/** Of a call that rejects: no answer is this one. */
const FAILED = 'failed'
/** How often a call is delivered after the first time: by its client, and by the network of what the client sent first. */
const AGAIN = 2

/** Each way that a stage may go from a state. `listUser` is not a step: it is no snapshot, see the checker. */
export function ways(state: State, stage: Stage, rules: Rules = {}): Way[] {
  if (stage.verb === 'write' || stage.verb === 'leave' || stage.verb === 'undo' || stage.verb === 'unlink')
    return once(state, stage, rules)
  if (stage.verb === 'endUser') {
    const found = once(state, stage, rules)
    if (rules.resends !== true || stage.left === 0) return found
    // What the first delivery has ended is not counted by the second.
    const wrote = found.filter(way => way.state !== state)
    return [...found, ...wrote.map(way => ({ state: way.state, next: { ...stage, left: stage.left - 1 } }))]
  }
  const { call, left } = stage.verb === 'again' ? stage : { call: stage, left: AGAIN }
  const found = once(state, call, rules)
  if (rules.resends !== true || call.verb === 'read' || call.verb === 'listUser' || left === 0) return found
  // Only where a delivery wrote something is a further one more than that.
  const wrote = found.filter(way => 'answer' in way && way.state !== state)
  return [...found, ...wrote.map(way => ({ state: way.state, next: { verb: 'again', call, left: left - 1 } as const }))]
}

function once(state: State, stage: Exclude<Stage, { verb: 'again' }>, rules: Rules): Way[] {
  const same = (answer: Answer): Way[] => [{ state, answer }]
  switch (stage.verb) {
    case 'read': {
      const record = new Draft(state).live(stage.key, stage.now)
      if (record !== undefined) return same(record)
      const left = state.forwards.get(stage.key)
      return same(left !== undefined && left.keptUntil > stage.now ? left.forward : null)
    }
    case 'update': {
      const { key, version, change, now } = stage
      const draft = new Draft(state)
      const live = draft.live(key, now)
      if (live === undefined) return same('gone')
      if (live.version === version + 1 && live.writeId === change.writeId) return same('updated')
      if (live.version !== version) return same('conflict')
      const { data, writeId } = change
      const written = { ...draft.raised(live, change.seenAt, change.expiresAt), data, writeId, version: version + 1 }
      return [{ state: withRecord(state, written), answer: 'updated' }]
    }
    case 'touch': {
      const draft = new Draft(state)
      const live = draft.live(stage.key, stage.now)
      if (live === undefined) return same('gone')
      const written = draft.raised(live, stage.seenAt, stage.expiresAt)
      if (written.seenAt === live.seenAt && written.expiresAt === live.expiresAt) return same('touched')
      return [{ state: withRecord(state, written), answer: 'touched' }]
    }
    case 'create': {
      const draft = new Draft(state)
      if (draft.isRepetition(stage.record)) return same('created')
      const outcome = draft.admit(stage.record, {}, undefined, stage.now)
      return outcome === 'created' ? [{ state: draft.state, answer: outcome }] : same(outcome)
    }
    case 'replace': {
      const { oldKey, oldVersion, record, options, now } = stage
      const draft = new Draft(state)
      const old = draft.live(oldKey, now)
      const isAcross = rules.crosses?.(oldKey, record.key) === true
      if (isAcross && state.tombstones.get(oldKey) === record.key)
        return same(draft.isRepetition(record) ? 'created' : 'gone')
      if (!isAcross && draft.isRepetition(record)) return same('created')
      if (old === undefined) return same('gone')
      if (old.version !== oldVersion) return same('conflict')
      if (isAcross) return [{ state, next: { verb: 'write', call: stage, parent: old.parent } }]
      const outcome = draft.admit(record, options, old, now)
      return outcome === 'created' ? [{ state: draft.state, answer: outcome }] : same(outcome)
    }
    case 'write': {
      const { call, parent } = stage
      const draft = new Draft(state)
      if (draft.isRepetition(call.record)) return [{ state, next: { verb: 'leave', call, answer: 'created' } }]
      const outcome = draft.admitBeside(call, parent)
      if (outcome !== 'created') return same(outcome)
      return [{ state: draft.state, next: { verb: 'leave', call, answer: outcome } }]
    }
    case 'leave': {
      const { call } = stage
      const { oldKey, oldVersion, record, now } = call
      const draft = new Draft(state)
      const old = draft.live(oldKey, now)
      // The step failed: the new one is taken back.
      const failed = { verb: 'undo', call, answer: FAILED } as const
      const found: Way[] = [{ state, next: failed }]
      if (rules.resends === true && !draft.isRepetition(record) && draft.admitBeside(call, null) === 'created')
        found.push({ state: draft.state, next: stage })
      if (old !== undefined && old.version === oldVersion) {
        const ended = new Draft(state)
        ended.records.delete(oldKey)
        ended.tombstones.set(oldKey, record.key)
        found.push({ state: ended.state, answer: stage.answer }, { state: ended.state, next: failed })
      } else if (state.tombstones.get(oldKey) === record.key) found.push({ state, answer: stage.answer })
      else {
        const answer = old === undefined ? 'gone' : 'conflict'
        found.push({ state, next: { verb: 'undo', call, answer } })
      }
      return found
    }
    case 'undo': {
      const draft = new Draft(state)
      if (draft.isRepetition(stage.call.record)) draft.records.delete(stage.call.record.key)
      return [{ state: draft.state, answer: stage.answer }]
    }
    case 'delete': {
      const draft = new Draft(state)
      const stored = state.records.get(draft.successor(stage.key) as string)
      const ended = draft.end(stage.key)
      const changed = ended || state.forwards.has(stage.key)
      const after = changed ? draft.state : state
      // Of an expired record a store may have kept nothing.
      const open = stored !== undefined && stored.expiresAt <= stage.now
      const answers = open ? [true, false] : [ended]
      const atOnce = answers.map(answer => ({ state: after, answer }))
      const forwards = [...state.forwards.keys()].filter(key => !draft.forwards.has(key))
      if (rules.deletesInSteps !== true || forwards.length === 0) return atOnce
      const left = { ...after, forwards: state.forwards }
      return [
        ...atOnce,
        ...answers.map(answer => ({ state: left, next: { verb: 'unlink', forwards, answer } as const })),
        // The second step failed: what the call was for is done.
        ...answers.filter(answer => answer).map(answer => ({ state: left, answer })),
      ]
    }
    case 'unlink': {
      const draft = new Draft(state)
      const [first = '', ...forwards] = stage.forwards
      draft.forwards.delete(first)
      const over = { state: draft.state, answer: stage.answer }
      // Where the next one fails, the others stay.
      return forwards.length === 0 ? [over] : [over, { state: draft.state, next: { ...stage, forwards } }]
    }
    case 'deleteUser': {
      if (rules.endsUserInSteps === true)
        return once(state, { verb: 'endUser', call: stage, keys: [], ended: 0, left: AGAIN }, rules)
      const draft = new Draft(state)
      draft.raiseMinimum(stage)
      const ended = draft.endEach(draft.ofUser(stage), stage.now)
      return [{ state: draft.state, answer: ended }]
    }
    case 'endUser': {
      const { call, keys } = stage
      const draft = new Draft(state)
      const told = draft.ofUser(call).filter(({ key }) => keys.includes(key))
      const ended = stage.ended + draft.endEach(told, call.now)
      const others = draft.ofUser(call).map(({ key }) => key)
      const after = told.length > 0 ? draft.state : state
      const further: Way = { state: after, next: { verb: 'endUser', call, keys: others, ended, left: AGAIN } }
      if (others.length > 0) return [further]
      draft.raiseMinimum(call)
      // An index may still name what has ended: then it looks once more.
      return [{ state: draft.state, answer: ended }, ...(keys.length > 0 ? [further] : [])]
    }
    case 'listUser':
      throw new Error('listUser is compared over the time that it took')
  }
}

const withRecord = (state: State, record: SessionRecord): State => ({
  ...state,
  records: new Map(state.records).set(record.key, record),
})

/** The live records of one user and kind, by key. */
export const livingOf = (state: State, userId: string, kind: SessionRecord['kind'], now: number) =>
  new Draft(state).liveOf(userId, kind, now)

/** What tells two versions of one record apart. */
export const fingerprint = ({ key, version, writeId, seenAt, expiresAt, createdAt, data }: SessionRecord): string =>
  `${key} ${version} ${writeId} ${seenAt} ${expiresAt} ${createdAt} ${data}`

const isForward = (left: KeptForward) => `${left.forward.movedTo} ${left.forward.until} ${left.keptUntil}`

/** Equal for equal states. */
export function keyOf(state: State): string {
  const records = [...state.records.values()].map(fingerprint).sort()
  const forwards = [...state.forwards].map(([key, left]) => `${key} ${isForward(left)}`).sort()
  const floors = [...state.minPasswordVersions].map(
    ([user, { passwordVersion, until }]) => `${user} ${passwordVersion} ${until}`,
  )
  const steps = [...state.tombstones].map(String).sort()
  return [records, forwards, floors.sort(), steps].map(part => part.join(',')).join('|')
}
