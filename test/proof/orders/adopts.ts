// Requests that come with the cookie of another library, whose sessions `adopt` takes over, beside all that may happen to
// the same session meanwhile: here, at the old store, on a node that lends and one that moves. What must hold: any number of
// requests find one session, whoever ended it has ended it, and neither a slow request nor an old record begins it again.
import assert from 'node:assert/strict'
import type { SessionImporter } from 'coatcheck/import'
import { connectSid, cookieAt, type OldRecord, SECRET } from '../../support/old-sessions.ts'
import { type AnyVisit, Jar, steps } from '../../support/parallel.ts'
import type { Scene } from './search.ts'
import { BEGIN, type Data, type Manager, type World } from './world.ts'

const MINUTE = 60_000
const SID = 'VGhpcyBpcyBhbiBvbGQgSUQgb2YgMjQgYg'
const OLD = connectSid(SID)
const OLD_NAME = 'connect.sid'
const ada = { id: 42n, name: 'ada' }
const max = { id: 43n, name: 'max' }
/** When the user logged in at the old service. */
const LOGIN = BEGIN - 10 * MINUTE

const VERBS = ['a page view', 'a save', 'a new ID', 'a rotation', 'a login', 'a logout'] as const
const OTHERS = {
  "a thief's page view": null,
  'logout everywhere': ({ nodes }, node) => nodes[node]!.adopting.invalidateUser(ada.id),
  'logout everywhere, version 2': ({ nodes }, node) =>
    nodes[node]!.adopting.invalidateUser(ada.id, { minPasswordVersion: 2 }),
  invalidateAll: ({ nodes }, node) => nodes[node]!.sessions.invalidateAll(),
  'the old store is emptied, then invalidateAll': async ({ nodes, old }, node) => {
    await old.do('is emptied', () => old.records.clear())
    return nodes[node]!.sessions.invalidateAll()
  },
  'a late write of an old node': ({ old }) => old.do('has it again', () => old.put()),
  'a logout at an old node': ({ old }) => old.do('ends it', () => old.records.delete(SID)),
} satisfies Record<string, ((place: Place, node: number) => Promise<unknown>) | null>
export type AdoptRequest = (typeof VERBS)[number] | keyof typeof OTHERS

export interface AdoptScene {
  readonly before:
    | 'an old session'
    | "a visitor's old session"
    /** The response that brought our cookie was lost. */
    | 'a session that was taken over'
    /** The browser has our cookie, and a slow response of the old service brought the old one back. */
    | 'a session that was moved'
  readonly requests: readonly AdoptRequest[]
  /** Which process answers each: 0 or 1. @default all the same */
  readonly processes?: readonly number[]
  /** Which of both processes lend: nodes of the old service run beside them. @default none */
  readonly lending?: readonly number[]
  readonly faults?: number
}

const ENDS: readonly AdoptRequest[] = ['a logout', 'a login', 'logout everywhere', 'logout everywhere, version 2']
const MOVES: readonly AdoptRequest[] = [...VERBS, ...(Object.keys(OTHERS) as AdoptRequest[]).slice(0, -1)]

/** Pairs of which one comes with the old cookie. */
export const ADOPT_PAIRS: readonly AdoptScene[] = [
  ...MOVES.flatMap((second, at) =>
    (at === 0 ? ['a page view' as const] : (['a page view', second] as const)).map(
      (first): AdoptScene => ({ before: 'an old session', requests: [first, second] }),
    ),
  ).filter(({ requests: [first, second] }) => first !== second || VERBS.includes(first as 'a save')),
  ...(['a page view', 'a save', 'a login', 'a logout', 'invalidateAll'] as const).map(
    (second): AdoptScene => ({ before: "a visitor's old session", requests: ['a page view', second] }),
  ),
  ...MOVES.map(
    (second): AdoptScene => ({ before: 'a session that was taken over', requests: ['a page view', second] }),
  ),
  ...MOVES.map((second): AdoptScene => ({ before: 'a session that was moved', requests: ['a page view', second] })),
  ...(['a login', 'a logout', 'a new ID', 'logout everywhere', 'a late write of an old node'] as const).map(
    (second): AdoptScene => ({ before: 'an old session', requests: ['a logout', second] }),
  ),
]

/** While nodes of the old service run: both processes lend, or one does. */
export const LENT_PAIRS: readonly AdoptScene[] = [[0, 1], [1]].flatMap(lending =>
  [...VERBS, 'logout everywhere' as const, 'a logout at an old node' as const, "a thief's page view" as const].map(
    (second): AdoptScene => ({
      before: 'an old session',
      requests: ['a page view', second],
      processes: [1, 0],
      lending,
    }),
  ),
)

export const ADOPT_TRIPLES: readonly AdoptScene[] = (
  [
    ['a page view', 'a page view', 'a logout'],
    ['a page view', 'a page view', 'invalidateAll'],
    ['a page view', 'a page view', 'logout everywhere'],
    ['a page view', 'a save', 'a login'],
    ['a page view', 'a logout', 'a late write of an old node'],
    ['a page view', 'the old store is emptied, then invalidateAll', 'a late write of an old node'],
  ] as const
).map((requests): AdoptScene => ({ before: 'an old session', requests, processes: [0, 1, 0] }))

/** The store of the old service: each call waits, and what was given up here may still be done there. */
class OldStore {
  readonly records = new Map<string, string>()
  readonly #world: World
  readonly #isVisitor: boolean

  constructor(world: World, isVisitor: boolean) {
    this.#world = world
    this.#isVisitor = isVisitor
    this.put()
  }

  put(): void {
    const user = this.#isVisitor ? {} : { userId: '42', name: 'ada', loginAt: LOGIN }
    this.records.set(SID, JSON.stringify({ cookie: cookieAt(BEGIN), cart: ['tea'], ...user }))
  }

  async do<T>(what: string, run: () => T): Promise<T> {
    return this.#world.callback(`the old store ${what}`, run, Number.POSITIVE_INFINITY)
  }

  get(sid: string, callback: (error: unknown, session?: unknown) => void): void {
    const read = () => this.records.get(sid)
    this.do('is read', read).then(text => callback(null, text === undefined ? undefined : JSON.parse(text)), callback)
  }

  destroy(sid: string, callback: (error?: unknown) => void): void {
    this.do('ends it', () => void this.records.delete(sid)).then(() => callback(null), callback)
  }
}

interface Node {
  readonly sessions: Manager
  readonly adopting: SessionImporter
}

interface Place {
  readonly nodes: readonly Node[]
  readonly old: OldStore
  readonly browser: Jar
  readonly thief: Jar
}

function nodeOf(world: World, store: OldStore, keepOld: boolean): Node {
  const { sessionImporter, fromExpressSession } = world.library
  const sessions = world.manager()
  const adopting = sessionImporter(sessions, {
    from: fromExpressSession<OldRecord>({ secret: SECRET, store }),
    toLogin: ({ userId, name, loginAt, cart }) => {
      const data = { cart, tag: 'old' } as Data
      return userId === undefined
        ? { data }
        : { user: { id: BigInt(userId as string), name: name ?? '', passwordVersion: 1 }, createdAt: loginAt, data }
    },
    keepOld,
    onError: () => {},
  })
  return { sessions, adopting }
}

const visitOf = (world: World, { sessions }: Node, cookie: string): AnyVisit =>
  world.library.openVisit(sessions, { method: 'POST', secure: true, header: () => null, cookie })

/** A whole request, at once: whom it sees. */
async function sees(world: World, node: Node, jar: Jar): Promise<bigint | 'a visitor' | 'another visitor' | null> {
  const visit = visitOf(world, node, jar.header)
  await node.adopting(visit)
  const session = await visit.get()
  jar.apply(visit.headers.getSetCookie())
  if (session === null) return null
  return session.user?.id ?? (session.data.tag === 'old' ? 'a visitor' : 'another visitor')
}

const jarWith = (...cookies: readonly (readonly [string, string | undefined])[]): Jar => {
  const jar = new Jar()
  for (const [name, value] of cookies) if (value !== undefined) jar.cookies.set(name, value)
  return jar
}
const oldCookie = [OLD_NAME, OLD.slice(OLD_NAME.length + 1)] as const

export function adoptOf(scene: AdoptScene): Scene {
  const { before, requests, processes = requests.map(() => 0), lending = [], faults = 0 } = scene
  const details = [
    processes.includes(1) ? 'in two processes' : '',
    lending.length === 0 ? '' : lending.length === 1 ? 'of which one lends' : 'which lend',
    faults > 0 ? `${faults} faults` : '',
  ]
  let place: Place
  return {
    name: [`${before}: ${requests.join(' | ')}`, ...details.filter(Boolean)].join(', '),
    options: { faults, arrivesAtOnce: true },
    async prepare(world) {
      const old = new OldStore(world, before === "a visitor's old session")
      const nodes = [0, 1].map(node => nodeOf(world, old, lending.includes(node)))
      place = { nodes, old, browser: jarWith(oldCookie), thief: jarWith(oldCookie) }
      const { browser, thief } = place
      if (before === 'a session that was taken over') await sees(world, nodes[0]!, jarWith(oldCookie))
      if (before === 'a session that was moved') {
        for (let views = 0; views < 2; views += 1) await sees(world, nodes[0]!, browser)
        browser.cookies.set(...oldCookie)
        // By then no node takes the old cookie for one of a slow request.
        world.advance(8 * MINUTE)
      }
      world.notes = {
        get kept() {
          return [browser.header, thief.header, ...old.records.values()]
        },
      }
      world.canonical(`${browser.header} ${OLD} ${SID}`)
      for (const [index, name] of requests.entries()) act(world, place, name, processes[index]!)
    },
    judge: world => judge(world, place, { before, requests, processes, lending, faults }),
  }
}

function act(world: World, place: Place, name: AdoptRequest, at: number): void {
  const node = place.nodes[at]!
  const other = name in OTHERS ? OTHERS[name as keyof typeof OTHERS] : null
  if (other !== null) {
    world.act(name, async () => other(place, at))
    return
  }
  const isThief = name === "a thief's page view"
  const jar = isThief ? place.thief : place.browser
  const visit = visitOf(world, node, jar.header)
  world.act(
    name,
    async () => {
      await node.adopting(visit)
      return steps[isThief ? 'a page view' : name]!(visit, { ada, max } as never)
    },
    () => {
      const lines = visit.headers.getSetCookie()
      world.canonical(lines.join())
      return () => jar.apply(lines)
    },
  )
}

async function judge(world: World, place: Place, scene: Required<AdoptScene>): Promise<void> {
  const { before, requests, processes, lending, faults } = scene
  const { nodes, old, browser, thief } = place
  const { actors, store } = world
  const did = (...names: readonly AdoptRequest[]) => requests.some(name => names.includes(name))
  const acknowledged = (...names: readonly AdoptRequest[]) =>
    actors.filter(({ error }, index) => names.includes(requests[index]!) && error === undefined)
  const isCalm = world.faults === 0
  const isVisitor = before === "a visitor's old session"
  const owner = isVisitor ? 'a visitor' : ada.id

  for (const { name, error } of actors) {
    const { code, stack } = (error ?? {}) as { code?: string; stack?: string }
    const isOfOld = /old (?:node|store)/.test(name) && /ECONN/.test(stack ?? '')
    const isOutage = faults > 0 && (code === 'ERR_SESSION_STORE' || isOfOld)
    assert.ok(error === undefined || isOutage, `${name}: ${code ?? stack}`)
  }

  // What failed is repeated until it is acknowledged, as its caller is told to.
  for (const [index, actor] of actors.entries()) {
    const name = requests[index]!
    if (actor.error === undefined || !(ENDS.includes(name) || /invalidateAll/.test(name))) continue
    const node = nodes[processes[index]!]!
    if (name === 'a logout' || name === 'a login') {
      const visit = visitOf(world, node, browser.header)
      await node.adopting(visit)
      await steps[name]!(visit, { ada, max } as never)
      browser.apply(visit.headers.getSetCookie())
    } else await OTHERS[name as 'invalidateAll'](place, processes[index]!)
    actor.error = undefined
  }

  // G5, G6: what is stored leads to no cookie, and the session is as old as it was; no password was verified for it.
  const records = [...store.records.values()].filter(({ expiresAt }) => expiresAt > world.now)
  const ours = records.filter(({ kind, data }) => kind === 'session' && data.includes('"tag":"old"'))
  const atRest = records.map(({ key, data, parent }) => `${key} ${data} ${parent}`).join()
  for (const secret of [SID, oldCookie[1], browser.cookies.get('session_id')])
    if (secret !== undefined) assert.ok(!atRest.includes(secret), 'a secret is stored')
  for (const { createdAt, absoluteExpiresAt, userId } of ours)
    if (userId === '42') assert.deepEqual([createdAt, absoluteExpiresAt - createdAt], [LOGIN, 12 * 60 * MINUTE])
  for (const { value } of acknowledged('a page view', "a thief's page view"))
    if (value !== null)
      assert.ok(
        !nodes[0]!.sessions.isFresh(value as never, '1h'),
        'a session that was taken over passes for a fresh login',
      )

  // Once, for all who came. A write whose answer was lost may leave one that no cookie leads to.
  assert.ok(ours.length <= 1 + world.faults, `the session was taken over ${ours.length} times`)
  const isOver = did(
    ...ENDS,
    'invalidateAll',
    'the old store is emptied, then invalidateAll',
    'a logout at an old node',
  )
  const isMoved = before !== 'a session that was moved'
  if (!isOver) {
    // A new ID leaves the old one to none.
    if (!did('a new ID'))
      for (const { name, value } of acknowledged(...VERBS, ...(isMoved ? ["a thief's page view" as const] : [])))
        assert.notEqual(value, null, `${name} finds no session, and nothing ended it`)
    if (isCalm && !did('a new ID', 'a rotation')) {
      const keys = new Set(acknowledged('a page view', 'a save').map(({ value }) => (value as { key: string }).key))
      assert.ok(keys.size <= 1, 'two requests found two sessions')
    }
    // G7: whatever failed, the browser is logged in; what was saved is there. A new ID that another process gave, or whose
    // answer was lost, may be overwritten by a late response: for that there is `rotate`.
    if (!did('a new ID') || (isCalm && !processes.includes(1)))
      assert.equal(
        await sees(world, nodes[0]!, browser),
        owner,
        'the browser is logged out, and nothing ended its session',
      )
    const saved = acknowledged('a save').length
    const [data] = records.filter(({ kind, data }) => kind === 'session' && data.includes('"saved"'))
    if (saved > 0) assert.ok(data?.data.includes(`"saved":${saved}`) || !isCalm, 'a save is lost')
  }
  if (
    isCalm &&
    lending.length === 0 &&
    !did('a late write of an old node') &&
    requests.some(name => VERBS.includes(name as 'a save'))
  )
    assert.equal(old.records.size, 0, 'the old record stays')
  if (!isMoved)
    for (const { value } of acknowledged("a thief's page view"))
      assert.equal(value, null, 'a spent cookie leads somewhere')

  if (isCalm && !processes.includes(1) && lending.length === 0 && !did("a thief's page view")) {
    const visit = visitOf(world, nodes[0]!, browser.header)
    const held = (await visit.get({ touch: false }))?.key
    for (const { key } of await nodes[0]!.sessions.list(ada.id))
      assert.equal(key, held, 'a session of the user lives that the browser does not hold')
  }

  // G1, G3, G4: what has ended stays so, for whoever still has the old cookie, on a new node too, and where the old record
  // comes back.
  const [loggedOut, loggedIn] = [acknowledged('a logout').length > 0, acknowledged('a login').length > 0]
  const everywhere = acknowledged('logout everywhere', 'logout everywhere, version 2').length > 0
  const isEmptied = acknowledged('the old store is emptied, then invalidateAll').length > 0
  const wasOurs = before === 'a session that was taken over' || before === 'a session that was moved'
  const isEnded = loggedOut || loggedIn || (everywhere && !isVisitor)
  const isAllEnded =
    (isEmptied && !did('a late write of an old node')) || (wasOurs && acknowledged('invalidateAll').length > 0)
  if (isEnded || isAllEnded) {
    if (isCalm && !(isAllEnded && did('a login')))
      assert.deepEqual(
        (await nodes[0]!.sessions.list(ada.id)).map(({ key }) => key),
        [],
        'the session lives after its end',
      )
    // Where nothing of it was ours yet, an old node that writes it back after `invalidateAll` is none of what that has ended.
    if (isEnded || wasOurs) old.put()
    for (const node of [...nodes, nodeOf(world, old, false)])
      for (const [who, jar] of [
        ['the old cookie leads', jarWith(oldCookie)],
        ['the thief comes', thief],
        ['the browser comes', jarWith(...browser.cookies)],
      ] as const) {
        const seen = await sees(world, node, jar)
        // Another process, which knows of no end here, may have begun a session for what was saved meanwhile.
        assert.ok(seen !== owner, `${who} to the session that has ended`)
        if (who !== 'the browser comes') assert.equal(seen, null, `${who} to the login after it`)
      }
    const isOne = !processes.includes(1) && isCalm
    if (loggedIn && !loggedOut && isOne && !did('invalidateAll'))
      assert.equal(await sees(world, nodes[0]!, browser), max.id, 'the browser is not logged in')
    if (loggedOut && !did('a login')) assert.equal(await sees(world, nodes[0]!, browser), null, 'the logout was undone')
  }
  if (acknowledged('a logout at an old node').length > 0 && lending.length === 2 && !did('a new ID', 'a login')) {
    assert.equal(await sees(world, nodes[0]!, browser), null, 'a logout at the old service is not one here')
    if (isCalm) assert.deepEqual(await nodes[0]!.sessions.list(ada.id), [])
  }
  assert.ok(!world.events.some(({ type }) => type === 'corrupt-record' || type === 'data-reset'), 'a record is torn')
}
