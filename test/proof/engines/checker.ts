// Is there an order of these calls, each at one moment of its own time, that the model can take? Wing and Gong's search
// with a memory of what was tried, as in Knossos and Porcupine; histories of unrelated users are searched one by one.

import { isDeepStrictEqual } from 'node:util'
import type { Entry, Hold } from './history.ts'
import { type Call, EMPTY, fingerprint, keyOf, livingOf, type Rules, type Stage, type State, ways } from './model.ts'

/** What is known of the engine, and of the time. */
export interface CheckOptions {
  readonly rules?: Rules
  /** How long after the deadline of a call whose outcome is unknown its effect may still begin, in ms. @default 250 */
  readonly grace?: number
  /** Times in which the engine, a client or the network stood still: what had begun may end after them. */
  readonly holds?: readonly Hold[]
  /** A logout everywhere that waits in the network may end sessions when it arrives. @default false */
  readonly lateEndings?: boolean
  /** Configurations that are looked at before the search is given up. @default 300000 */
  readonly most?: number
}

export type Verdict =
  | { readonly ok: true; readonly looked: number }
  | {
      readonly ok: false
      readonly looked: number
      /** The shortest part of the history that no order explains, in the order of the calls. */
      readonly entries: readonly Entry[]
      /** Whether the search came to its end. */
      readonly decided: boolean
    }

/** An entry as the search sees it. */
interface Op {
  readonly entry: Entry
  readonly invoked: number
  /** The last moment at which it may have taken effect. */
  readonly until: number
  /** It was answered, so that it has to have a place in the order. */
  readonly must: boolean
  readonly answer: unknown
}

/** Splits a history by its cells and, in each, into users and keys that no call connects. */
export function parts(history: readonly Entry[]): Entry[][] {
  const above = new Map<string, string>()
  const root = (name: string): string => {
    const next = above.get(name) ?? name
    if (next === name) return name
    const top = root(next)
    above.set(name, top)
    return top
  }
  const join = (a: string, b: string | null | undefined) => {
    if (b !== null && b !== undefined) above.set(root(a), root(b))
  }
  const place = ({ cell, call }: Entry): string => `${cell} ${namesOf(call)[0]}`
  for (const entry of history) {
    const [first, ...rest] = namesOf(entry.call)
    for (const name of rest) join(`${entry.cell} ${first}`, `${entry.cell} ${name}`)
  }
  const groups = new Map<string, Entry[]>()
  for (const entry of history) {
    const group = root(place(entry))
    groups.set(group, [...(groups.get(group) ?? []), entry])
  }
  return [...groups.values()]
}

/** The keys and users that a call is about. */
function namesOf(call: Call): string[] {
  const user = (userId: string | null) => (userId === null ? [] : [`user ${userId}`])
  switch (call.verb) {
    case 'create':
    case 'replace': {
      const { record } = call
      const old = call.verb === 'replace' ? [call.oldKey] : []
      return [record.key, ...old, ...(record.parent === null ? [] : [record.parent]), ...user(record.userId)]
    }
    case 'deleteUser':
      return [...user(call.userId), ...(call.options.exceptKey === undefined ? [] : [call.options.exceptKey])]
    case 'listUser':
      return user(call.userId)
    default:
      return [call.key]
  }
}

/** Checks a whole history; answers the first part that no order explains. */
export function check(history: readonly Entry[], options: CheckOptions = {}): Verdict {
  let looked = 0
  for (const part of parts(history)) {
    // First by the contract as it is, which explains most histories, then by what this engine keeps in a weaker form, then
    // with what the faults may have held up: each allows more orders than the one before, and takes longer to search.
    const attempts = [{ most: 1000 }, { ...options, holds: [], most: 20_000 }, options]
    let verdict = explain(opsOf(part, attempts[0]!), attempts[0]!)
    for (const attempt of attempts.slice(1)) if (!verdict.ok) verdict = explain(opsOf(part, attempt), attempt)
    looked += verdict.looked
    if (verdict.ok) continue
    if (!verdict.decided) return { ok: false, looked, decided: false, entries: part }
    return { ok: false, looked, decided: true, entries: shortest(part, options) }
  }
  return { ok: true, looked }
}

function opsOf(history: readonly Entry[], options: CheckOptions): Op[] {
  const { grace = 250, holds = [], lateEndings = false } = options
  const ops: Op[] = []
  for (const entry of history) {
    const { call, invoked, deadline, answered, failed, answer } = entry
    const isRead = call.verb === 'read' || call.verb === 'listUser'
    const must = failed === undefined && answered !== undefined
    // Nothing was written, and nothing was learnt.
    if (!must && (isRead || failed === 'not-applied')) continue
    let until = must ? answered : deadline
    if (!must) {
      const delays = (hold: Hold) =>
        hold.from <= until &&
        hold.to >= invoked &&
        (hold.what !== 'network' || (lateEndings && call.verb === 'deleteUser'))
      for (const hold of [...holds].sort((a, b) => a.from - b.from)) if (delays(hold)) until = Math.max(until, hold.to)
      until += grace * 1000
    }
    ops.push({ entry, invoked, until, must, answer: must ? answer : undefined })
  }
  return ops.sort((a, b) => a.invoked - b.invoked)
}

/** A list under way: what it must name, and what it may. */
interface Listing {
  readonly must: ReadonlyMap<string, string>
  readonly may: ReadonlySet<string>
}

interface Configuration {
  readonly state: State
  readonly done: Uint8Array
  /** What is left of calls that have begun. */
  readonly stages: ReadonlyMap<number, Stage>
  readonly lists: ReadonlyMap<number, Listing>
  /** The latest invocation of all that has a place: nothing that was over before may follow. */
  readonly latest: number
}

type ListCall = Extract<Call, { verb: 'listUser' }>
const isList = (op: Op) => op.entry.call.verb === 'listUser'
/** What writes nothing in any state: a read, and a write that was refused. */
function onlyLooks({ entry, answer }: Op): boolean {
  if (entry.call.verb === 'read' || answer === 'gone' || answer === 'conflict') return true
  const { outcome } = (answer ?? {}) as { outcome?: unknown }
  return outcome !== undefined && outcome !== 'created'
}
const printsOf = (state: State, { userId, kind, now }: ListCall) =>
  new Map(livingOf(state, userId, kind, now).map(record => [record.key, fingerprint(record)]))

function seen(listing: Listing | undefined, state: State, call: ListCall): Listing {
  const living = printsOf(state, call)
  if (listing === undefined) return { must: living, may: new Set(living.values()) }
  const must = new Map([...listing.must].filter(([key]) => living.has(key)))
  return { must, may: new Set([...listing.may, ...living.values()]) }
}

function listAgrees({ must, may }: Listing, answer: unknown): boolean {
  const records = answer as Parameters<typeof fingerprint>[0][]
  const keys = new Set(records.map(({ key }) => key))
  return (
    keys.size === records.length &&
    [...must.keys()].every(key => keys.has(key)) &&
    records.every(record => may.has(fingerprint(record)))
  )
}

function explain(ops: readonly Op[], { rules = {}, most = 300_000 }: CheckOptions) {
  const tried = new Set<string>()
  let looked = 0
  const nameOf = ({ state, done, stages, lists, latest }: Configuration) => {
    const late = ops.flatMap((op, i) => (done[i] === 0 && op.until < latest ? [i] : []))
    const left = [...stages].map(([i, stage]) => `${i}${JSON.stringify({ ...stage, call: undefined })}`).sort()
    const open = [...lists].map(([i, { must, may }]) => `${i}:${[...must.keys()]}:${[...may].sort()}`).sort()
    return `${done.join('')}/${left}/${open}/${late}/${keyOf(state)}`
  }

  const search = (start: Configuration): boolean => {
    const stack: Configuration[] = [start]
    for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
      if (looked >= most) return false
      const settled = settle(at)
      if (settled === null) continue
      if (ops.every((op, i) => !op.must || settled.done[i] === 1)) return true
      const name = nameOf(settled)
      if (tried.has(name)) continue
      tried.add(name)
      looked++
      const next: Configuration[] = []
      for (const i of candidates(settled)) next.push(...stepsOf(settled, i))
      // The last is tried first: what was answered earliest.
      stack.push(...next.reverse())
    }
    return false
  }

  /** The earliest end of what was answered and has no place yet. */
  const firstEnd = ({ done }: Configuration) => {
    let end = Number.POSITIVE_INFINITY
    for (const [i, op] of ops.entries()) if (done[i] === 0 && op.must && op.until < end) end = op.until
    return end
  }

  const candidates = (at: Configuration): number[] => {
    const end = firstEnd(at)
    const found: number[] = []
    for (const [i, op] of ops.entries()) {
      if (op.invoked > end) break
      if (at.done[i] === 0 && op.until >= at.latest && !isList(op)) found.push(i)
    }
    // What has to come first, first; what need not come at all, last.
    return found.sort((a, b) => Number(ops[b]!.must) - Number(ops[a]!.must) || ops[a]!.until - ops[b]!.until)
  }

  const stepsOf = (at: Configuration, i: number): Configuration[] => {
    const op = ops[i]!
    const next: Configuration[] = []
    for (const way of ways(at.state, at.stages.get(i) ?? op.entry.call, rules)) {
      if ('answer' in way && op.must && !isDeepStrictEqual(op.answer, way.answer)) continue
      // A call of unknown outcome that writes nothing needs no place.
      if ('answer' in way && !op.must && way.state === at.state) continue
      const stages = new Map(at.stages)
      const done = at.done.slice()
      if ('answer' in way) {
        done[i] = 1
        stages.delete(i)
      } else stages.set(i, way.next)
      const latest = Math.max(at.latest, op.invoked)
      next.push({ state: way.state, done, stages, lists: listsAt(at, way.state), latest })
    }
    return next
  }

  const listsAt = (at: Configuration, state: State): ReadonlyMap<number, Listing> => {
    if (at.lists.size === 0 || state === at.state) return at.lists
    return new Map([...at.lists].map(([i, listing]) => [i, seen(listing, state, ops[i]!.entry.call as ListCall)]))
  }

  /**
   * Gives a place to all that only looks and was told what stands here: no other order would gain by waiting. Another call
   * that changes nothing here may change something elsewhere: a repeated write, a logout that finds no session.
   */
  const settle = (from: Configuration): Configuration | null => {
    let at = from
    for (;;) {
      const end = firstEnd(at)
      let moved = false
      for (const [i, op] of ops.entries()) {
        if (op.invoked > end) break
        if (at.done[i] === 1 || !op.must) continue
        if (isList(op)) {
          const call = op.entry.call as ListCall
          const listing = at.lists.get(i) ?? seen(undefined, at.state, call)
          const lists = new Map(at.lists)
          if (listAgrees(listing, op.answer)) {
            const done = at.done.slice()
            done[i] = 1
            lists.delete(i)
            at = { ...at, done, lists }
          } else if (!at.lists.has(i)) {
            lists.set(i, listing)
            at = { ...at, lists }
            continue
          } else continue
          moved = true
          break
        }
        if (op.until < at.latest) return null
        if (at.stages.has(i) || !onlyLooks(op)) continue
        const found = ways(at.state, op.entry.call, rules)
        const only = found.length === 1 ? found[0]! : null
        if (
          only === null ||
          !('answer' in only) ||
          only.state !== at.state ||
          !isDeepStrictEqual(op.answer, only.answer)
        )
          continue
        // It would close the time of a call whose outcome is unknown: that choice is for the search.
        const closes = ops.some(
          (other, k) => at.done[k] === 0 && !other.must && other.until >= at.latest && other.until < op.invoked,
        )
        if (closes) continue
        const done = at.done.slice()
        done[i] = 1
        at = { ...at, done, latest: Math.max(at.latest, op.invoked) }
        moved = true
        break
      }
      if (!moved) return at
    }
  }

  const none = { done: new Uint8Array(ops.length), stages: new Map(), lists: new Map(), latest: 0 }
  const ok = search({ state: EMPTY, ...none })
  return { ok, looked, decided: ok || looked < most }
}

/**
 * The shortest beginning that no order explains, without the answers that do not matter. Leaving an answer out only
 * allows more, so that what is left is wrong by itself.
 */
function shortest(history: readonly Entry[], options: CheckOptions): Entry[] {
  const wrong = (entries: readonly Entry[]) => {
    // With answers left out there are many more orders: where the search takes long, the answer stays.
    const { ok, decided } = explain(opsOf(entries, options), { ...options, most: 2000 })
    return !ok && decided
  }
  const answers = [...new Set(history.flatMap(({ answered }) => (answered === undefined ? [] : [answered])))].sort(
    (a, b) => a - b,
  )
  let [low, high] = [0, answers.length - 1]
  const until = (end: number) => history.filter(({ invoked }) => invoked <= end).map(entry => unanswered(entry, end))
  while (low < high) {
    const middle = (low + high) >> 1
    if (wrong(until(answers[middle]!))) high = middle
    else low = middle + 1
  }
  let entries = until(answers[low] ?? Number.POSITIVE_INFINITY)
  const needed = [...entries].reverse()
  for (const entry of needed) {
    if (entry.answered === undefined || entry.failed !== undefined) continue
    const isRead = entry.call.verb === 'read' || entry.call.verb === 'listUser'
    const without = entries.flatMap(other => (other !== entry ? [other] : isRead ? [] : [open(other)]))
    if (wrong(without)) entries = without
  }
  const isOpen = (entry: Entry) => entry.answered === undefined || entry.failed !== undefined
  // A call whose answer does not matter may be needed all the same: it could have written. Without an effect it is noise.
  for (const entry of [...entries].filter(isOpen)) {
    const without = entries.filter(other => other !== entry)
    if (entry.failed === 'not-applied') entries = without
  }
  return entries.sort((a, b) => a.invoked - b.invoked)
}

/** As if the client had not been told yet. */
function unanswered(entry: Entry, end: number): Entry {
  return entry.answered !== undefined && entry.answered > end && entry.failed !== 'not-applied' ? open(entry) : entry
}

const open = (entry: Entry): Entry => {
  const { answer: _, answered, ...rest } = entry
  return { ...rest, deadline: Math.max(entry.deadline, answered ?? 0) }
}
