// Remember-me against a small reference: random schedules of a browser, a thief, lost responses, logouts and the clock,
// on two nodes whose clocks are up to five minutes apart, the store calls of parallel requests interleaved at random.
// What the requests of one moment answer must be what the reference answers to the same requests in some order. The
// reference knows the true time alone: where a clock that is wrong by five minutes could decide otherwise, it allows both.
import assert from 'node:assert/strict'
import { type SessionId, SessionManager, type Store } from 'coatcheck'
import { CLOCK_TOLERANCE } from 'coatcheck/custom-store'
import fc from 'fast-check'
import { BarrierStore } from './barrier-store.ts'
import { MINUTE, SECOND, testClock } from './test-clock.ts'

const GRACE = 60 * SECOND

/** The reference knows tokens and sessions by number, in the order in which they began. */
interface Model {
  alive: boolean
  current: number
  previous: number | null
  rotatedAt: number
  touchedAt: number | null
  /** The session of the last rotation. */
  started: number | null
  tokens: number
  sessions: number
  live: ReadonlySet<number>
  alarms: number
}
type Answer = { token: number; session: number } | 'null' | 'live' | 'done'
type Request =
  | { type: 'recall'; token: number }
  | { type: 'visit'; session: number }
  | { type: 'destroy'; session: number }
  | { type: 'forget'; token: number }
  | { type: 'invalidate' }

/** A request with the token or the session ID that it brings. */
type Sent = { type: Request['type']; secret: string }
/** What may be the case, and which secrets the numbers stand for. */
interface State {
  readonly model: Model
  readonly tokens: readonly string[]
  readonly ids: readonly string[]
}

/** What may follow, by clocks that are at most CLOCK_TOLERANCE apart. */
function answers(model: Model, request: Request, now: number): [Model, Answer][] {
  const dead = (more: Partial<Model> = {}): Model => ({ ...model, alive: false, live: new Set(), ...more })
  switch (request.type) {
    case 'invalidate':
      return [[dead(), 'done']]
    case 'forget':
      return [[model.alive ? dead() : model, 'done']]
    case 'destroy':
      return [[model.live.has(request.session) ? dead() : model, 'done']]
    case 'visit': {
      if (!model.live.has(request.session)) return [[model, 'null']]
      const touchedAt = model.touchedAt ?? (request.session === model.started ? now : null)
      return [[{ ...model, touchedAt }, 'live']]
    }
    case 'recall': {
      if (!model.alive) return [[model, 'null']]
      const isSpent = request.token === model.previous
      const theft: [Model, Answer] = [dead({ alarms: model.alarms + 1 }), 'null']
      if (!isSpent && request.token !== model.current) return [theft]
      const allowed: [Model, Answer][] = []
      // The window of parallel requests: a minute, and the tolerance of clocks. Two clocks may differ by as much.
      const age = now - (model.touchedAt ?? model.rotatedAt)
      if (isSpent && age <= GRACE + 2 * CLOCK_TOLERANCE)
        allowed.push([model, { token: model.current, session: model.started! }])
      if (isSpent && model.touchedAt !== null) {
        if (age > GRACE) allowed.push(theft)
        return allowed
      }
      if (isSpent && age <= GRACE) return allowed
      // Another session begins: of a spent token in place of the last one, else beside it alone.
      const live = new Set([...model.live].filter(session => isSpent !== (session === model.started)))
      live.add(model.sessions)
      const next: Model = {
        ...model,
        rotatedAt: now,
        touchedAt: null,
        started: model.sessions,
        sessions: model.sessions + 1,
        live,
      }
      const rotated = { ...next, previous: request.token, current: model.tokens, tokens: model.tokens + 1 }
      const then = isSpent ? next : rotated
      return [...allowed, [then, { token: then.current, session: model.sessions }]]
    }
  }
}

function* orders<T>(items: readonly T[]): Generator<T[]> {
  if (items.length === 0) yield []
  for (const [index, item] of items.entries())
    for (const rest of orders(items.filter((_, other) => other !== index))) yield [item, ...rest]
}

/** Functions that pick one of so many, until all picks in a row have been made in every way. */
function* choices(): Generator<(of: number) => number> {
  let made: { pick: number; of: number }[] = []
  do {
    let at = 0
    yield of => {
      made[at] ??= { pick: 0, of }
      at += 1
      return made[at - 1]!.pick
    }
    while (made.length > 0 && made.at(-1)!.pick + 1 >= made.at(-1)!.of) made.pop()
    made = made.map((choice, index) => (index === made.length - 1 ? { ...choice, pick: choice.pick + 1 } : choice))
  } while (made.length > 0)
}

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ type: fc.constant('recall' as const), back: fc.nat(2) }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('visit' as const), back: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('destroy' as const), back: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('forget' as const), back: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('invalidate' as const), back: fc.constant(0) }) },
)
const schedule = fc.record({
  skew: fc.oneof(
    fc.constantFrom(0, CLOCK_TOLERANCE, -CLOCK_TOLERANCE),
    fc.integer({ min: -CLOCK_TOLERANCE, max: CLOCK_TOLERANCE }),
  ),
  moments: fc.array(
    fc.record({
      // Never 0: the next token is known a round trip later.
      wait: fc.constantFrom(1, SECOND, 59 * SECOND, 62 * SECOND, 200 * SECOND, 5 * MINUTE, 11 * MINUTE, 17 * MINUTE),
      requests: fc.array(step, { minLength: 1, maxLength: 4 }),
    }),
    { minLength: 1, maxLength: 8 },
  ),
  seed: fc.integer(),
})

function random(seed: number): (below: number) => number {
  let state = seed | 0
  return below => {
    // Mulberry32: the interleaving follows from the seed that fast-check prints.
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

/** Lets one waiting store call go on at a time, in an order that `pick` decides. */
async function interleaved(store: BarrierStore, pick: (below: number) => number, run: () => Promise<unknown>[]) {
  const waiting: (() => void)[] = []
  const gate = (proceed: () => Promise<any>) => new Promise<void>(resolve => waiting.push(resolve)).then(proceed)
  for (const verb of ['create', 'read', 'update', 'touch', 'replace', 'delete', 'deleteUser', 'listUser'] as const)
    store.every(verb, gate)
  let open = true
  const all = Promise.all(run()).finally(() => {
    open = false
  })
  while (open) {
    await new Promise(resolve => setImmediate(resolve))
    if (waiting.length > 0) waiting.splice(pick(waiting.length), 1)[0]!()
  }
  for (const verb of ['create', 'read', 'update', 'touch', 'replace', 'delete', 'deleteUser', 'listUser'] as const)
    store.every(verb, null)
  return all
}

let lastUser = BigInt(Date.now()) * 1_000_000n

/** Runs that many random schedules; throws with fast-check's seed and the smallest schedule that went wrong. */
export async function checkRemember(open: () => Store | Promise<Store>, runs: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(schedule, async ({ skew, moments, seed }) => {
      const store = BarrierStore.over(await open())
      const clock = testClock()
      const pick = random(seed)
      let alarms = 0
      const nodes = [clock, clock.skewed(skew)].map(
        now =>
          new SessionManager({
            store,
            now,
            idleTimeout: '24h',
            absoluteTimeout: '24h',
            sweepInterval: false,
            rememberFor: '30d',
            storeTimeout: '20s',
            touchInterval: '1s',
            onEvent: event => {
              if (event.type === 'remember-theft') alarms += 1
            },
          }),
      )
      lastUser += 1n
      const user = lastUser
      const login = await nodes[0]!.create({ user: { id: user, name: 'ada' } })
      const tokens = [await nodes[0]!.issueRememberToken(login)]
      await nodes[0]!.destroy(login)

      const start: Model = {
        alive: true,
        current: 0,
        previous: null,
        rotatedAt: 0,
        touchedAt: null,
        started: null,
        tokens: 1,
        sessions: 0,
        live: new Set(),
        alarms: 0,
      }
      // All that may be the case: two explanations of one answer may differ in what no answer has told yet.
      let states: State[] = [{ model: start, tokens, ids: [] }]
      for (const { wait, requests } of moments) {
        clock.advance(wait)
        const known = requests.flatMap(({ type, back }): Sent[] => {
          const token = states[0]!.tokens.at(-1 - back)
          const id = states[0]!.ids.at(-1 - back)
          if (type === 'invalidate') return [{ type, secret: '' }]
          if (type === 'recall' || type === 'forget') return token === undefined ? [] : [{ type, secret: token }]
          return id === undefined ? [] : [{ type, secret: id }]
        })
        const run = ({ type, secret }: Sent, index: number): Promise<unknown> => {
          const node = nodes[index % 2]!
          switch (type) {
            case 'recall':
              return node.redeemRememberToken(secret)
            case 'forget':
              return node.revokeRememberToken(secret)
            case 'visit':
              return node.get(secret as SessionId)
            case 'destroy':
              return node.destroy(secret as SessionId)
            case 'invalidate':
              return node.invalidateUser(user)
          }
        }
        const results = (await interleaved(store, pick, () => known.map(run))) as any[]
        const alive = (await store.inner.listUser(`${user}`, 'remember', { now: clock() })).length > 0
        const live = new Set((await nodes[0]!.list(user)).map(({ key }) => key as string))

        /** `choose` picks one of what the clocks allow. */
        const explains = (
          state: State,
          order: readonly number[],
          early: number,
          choose: (of: number) => number,
        ): State | null => {
          let after = state.model
          const ended: number[] = []
          const given: number[] = []
          let seriesEnded = false
          const names = { tokens: [...state.tokens], ids: [...state.ids] }
          /** What is new to the reference is new on every node. */
          const name = (list: string[], number: number, secret: string) => {
            if (list[number] === undefined && list.includes(secret)) return false
            list[number] ??= secret
            return list[number] === secret
          }
          for (const index of order) {
            const { type, secret } = known[index]!
            const request: Request =
              type === 'invalidate'
                ? { type }
                : type === 'recall' || type === 'forget'
                  ? { type, token: state.tokens.indexOf(secret) }
                  : { type, session: state.ids.indexOf(secret) }
            const result = results[index]
            const before = after
            const allowed = answers(before, request, clock())
            let expected: Answer
            ;[after, expected] = allowed[choose(allowed.length)]!
            if (request.type === 'destroy' && early & (1 << index)) {
              // Found the session, and so its series, before a parallel rotation ended it.
              if (!state.model.live.has(request.session)) return null
              after = { ...after, alive: false, live: new Set() }
            }
            if (request.type === 'visit' && early & (1 << index)) {
              // Answered before the session ended, noted too late: only where a rotation ended it at this moment.
              after = before
              ended.push(request.session)
            }
            if (request.type === 'visit') {
              if (result !== null && expected === 'null') return null
              // A visit is two steps: it is noted, then written down; in between the session may end.
              if (result === null && expected !== 'null') ended.push(request.session)
            }
            if (request.type !== 'recall') continue
            if (expected === 'null' || typeof expected === 'string') {
              if (result !== null) return null
              continue
            }
            if (result === null) {
              // Rotated, but the series ended before the session began: no browser got it.
              const unborn = expected.session
              after = { ...after, live: new Set([...after.live].filter(session => session !== unborn)) }
              seriesEnded = true
              names.tokens[expected.token] ??= `${'-'.repeat(43)}.${'-'.repeat(43)}`
              names.ids[expected.session] ??= '-'.repeat(43)
              continue
            }
            if (!name(names.tokens, expected.token, result.token)) return null
            if (!name(names.ids, expected.session, result.session.secret)) {
              // A logout of this moment had ended that session already. Another began, and ends with the series.
              if (alive || known.every(({ type }) => type === 'recall' || type === 'visit')) return null
              continue
            }
            given.push(expected.session)
          }
          if (ended.some(session => after.live.has(session))) return null
          for (const session of new Set(given)) {
            // It read the series before a parallel request ended this session, did not find the session afterwards, and began it
            // once more: the next rotation ends it.
            if (after.alive && !after.live.has(session) && choose(2) === 1)
              after = { ...after, live: new Set([...after.live, session]) }
          }
          if ((seriesEnded && after.alive) || after.alive !== alive) return null
          // A series that a logout ended at the same moment gives no alarm any more.
          if (after.alarms > alarms && known.some(({ type }) => type !== 'recall' && type !== 'visit'))
            after = { ...after, alarms }
          if (after.alarms !== alarms || after.live.size !== live.size) return null
          return { model: after, ...names }
        }
        const looks = (type: Request['type']) => type === 'visit' || type === 'destroy'
        const visits = known.reduce((mask, { type }, index) => (looks(type) ? mask | (1 << index) : mask), 0)
        const explained = new Map<string, State>()
        for (const state of states)
          for (const order of orders(known.map((_, index) => index)))
            for (let early = 0; early <= visits; early += 1) {
              if ((early & ~visits) !== 0) continue
              for (const choose of choices()) {
                const next = explains(state, order, early, choose)
                if (next) explained.set(JSON.stringify([next, [...next.model.live].sort()]), next)
              }
            }
        const told = results.map(result => (result === null ? 'null' : typeof result === 'object' ? 'found' : 'done'))
        const before = JSON.stringify(states.map(({ model }) => ({ ...model, live: [...model.live] })))
        assert.ok(
          explained.size > 0,
          `no order of ${JSON.stringify(known)} explains ${told}, ${alarms} alarms, ${live.size} live; before: ${before}`,
        )
        const found = new Map<string, boolean>()
        for (const { ids } of explained.values())
          for (const id of ids)
            if (!found.has(id)) found.set(id, (await nodes[1]!.get(id as SessionId, { touch: false })) !== null)
        states = [...explained.values()].filter(({ model, ids }) =>
          ids.every((id, session) => found.get(id) === model.live.has(session)),
        )
        assert.ok(states.length > 0, `what is live fits no explanation; before: ${before}`)
      }
    }),
    { numRuns: runs },
  )
}
