// Requests that come with the cookie of another library, whose sessions are imported, beside all that may happen to the
// same session meanwhile, here and at the old store. What must hold: any number of requests find one session, whoever ended
// it has ended it, and neither a slow request nor an old record begins it again.
import assert from 'node:assert/strict'
import type { SessionImporter } from 'coatcheck/import'
import { connectSid, cookieAt, type OldRecord, SECRET } from '../../support/old-sessions.ts'
import { onlyHost } from '../../support/only-host.ts'
import { type AnyVisit, Jar, steps } from '../../support/parallel.ts'
import { OldStore } from './old-store.ts'
import { titled } from './requests.ts'
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
  'logout everywhere': ({ nodes }, node) => nodes[node]!.importer.invalidateUser(ada.id),
  'logout everywhere, version 2': ({ nodes }, node) =>
    nodes[node]!.importer.invalidateUser(ada.id, { minPasswordVersion: 2 }),
  invalidateAll: ({ nodes }, node) => nodes[node]!.sessions.invalidateAll(),
  'the old store is emptied, then invalidateAll': async ({ nodes, old }, node) => {
    await old.do('is emptied', () => old.records.clear())
    return nodes[node]!.sessions.invalidateAll()
  },
  'a late write of an old node': ({ old }) => old.do('has it again', () => old.put()),
  'a logout at an old node': ({ old }) => old.do('ends it', () => old.records.delete(SID)),
} satisfies Record<string, ((place: Place, node: number) => Promise<unknown>) | null>
export type ImportRequest = (typeof VERBS)[number] | keyof typeof OTHERS

export interface ImportScene {
  readonly before:
    | 'an old session'
    | "a visitor's old session"
    /** The response that brought our cookie was lost. */
    | 'a session that was imported'
    /** The browser has our cookie, and a slow response of the old service brought the old one back. */
    | 'a session that was moved'
  readonly requests: readonly ImportRequest[]
  /** Which process answers each: 0 or 1. @default all the same */
  readonly processes?: readonly number[]
  readonly faults?: number
}

const ENDS: readonly ImportRequest[] = ['a logout', 'a login', 'logout everywhere', 'logout everywhere, version 2']
const MOVES: readonly ImportRequest[] = [...VERBS, ...(Object.keys(OTHERS) as ImportRequest[]).slice(0, -1)]

/** Pairs of which one comes with the old cookie. */
export const IMPORT_PAIRS: readonly ImportScene[] = [
  ...MOVES.flatMap((second, at) =>
    (at === 0 ? ['a page view' as const] : (['a page view', second] as const)).map(
      (first): ImportScene => ({ before: 'an old session', requests: [first, second] }),
    ),
  ).filter(({ requests: [first, second] }) => first !== second || VERBS.includes(first as 'a save')),
  ...(['a page view', 'a save', 'a login', 'a logout', 'invalidateAll'] as const).map(
    (second): ImportScene => ({ before: "a visitor's old session", requests: ['a page view', second] }),
  ),
  ...MOVES.map((second): ImportScene => ({ before: 'a session that was imported', requests: ['a page view', second] })),
  ...MOVES.map((second): ImportScene => ({ before: 'a session that was moved', requests: ['a page view', second] })),
  ...(['a login', 'a logout', 'a new ID', 'logout everywhere', 'a late write of an old node'] as const).map(
    (second): ImportScene => ({ before: 'an old session', requests: ['a logout', second] }),
  ),
]

export const IMPORT_TRIPLES: readonly ImportScene[] = (
  [
    ['a page view', 'a page view', 'a logout'],
    ['a page view', 'a page view', 'invalidateAll'],
    ['a page view', 'a page view', 'logout everywhere'],
    ['a page view', 'a save', 'a login'],
    ['a page view', 'a logout', 'a late write of an old node'],
    ['a page view', 'the old store is emptied, then invalidateAll', 'a late write of an old node'],
  ] as const
).map((requests): ImportScene => ({ before: 'an old session', requests, processes: [0, 1, 0] }))

interface Node {
  readonly sessions: Manager
  readonly importer: SessionImporter<Data>
}

interface Place {
  readonly nodes: readonly Node[]
  readonly old: OldStore
  readonly browser: Jar
  readonly thief: Jar
}

function nodeOf(world: World, store: OldStore): Node {
  const { sessionImporter, fromExpressSession } = world.library
  const sessions = world.manager()
  const importer = sessionImporter(sessions, {
    from: fromExpressSession<OldRecord>({ secret: SECRET, store }),
    toLogin: ({ userId, name, loginAt, cart }) => {
      const data = { cart, tag: 'old' } as Data
      return userId === undefined
        ? { data }
        : { user: { id: BigInt(userId as string), name: name ?? '', passwordVersion: 1 }, createdAt: loginAt, data }
    },
  })
  return { sessions, importer }
}

const visitOf = (world: World, { sessions }: Node, cookie: string): AnyVisit =>
  world.library.openVisit(sessions, { method: 'POST', secure: true, header: onlyHost, cookie })

/** A request that comes with these cookies: its visit, and what its response does to them. */
async function opened(world: World, node: Node, header: string): Promise<{ visit: AnyVisit; lines: () => string[] }> {
  const { visit, setCookie } = await node.importer.import(header, cookie => visitOf(world, node, cookie))
  return { visit, lines: () => [...visit.finish().headers.getSetCookie(), ...setCookie] }
}

/** A whole request, at once: whom it sees. */
async function sees(world: World, node: Node, jar: Jar): Promise<bigint | 'a visitor' | 'another visitor' | null> {
  const { visit, lines } = await opened(world, node, jar.header)
  const session = await visit.get()
  jar.apply(lines())
  if (session === null) return null
  return session.user?.id ?? (session.data.tag === 'old' ? 'a visitor' : 'another visitor')
}

const jarWith = (...cookies: readonly (readonly [string, string | undefined])[]): Jar => {
  const jar = new Jar()
  for (const [name, value] of cookies) if (value !== undefined) jar.cookies.set(name, value)
  return jar
}
const oldCookie = [OLD_NAME, OLD.slice(OLD_NAME.length + 1)] as const

export function importOf(scene: ImportScene): Scene {
  const { before, requests, processes = requests.map(() => 0), faults = 0 } = scene
  let place: Place
  return {
    name: titled(
      `${before}: ${requests.join(' | ')}`,
      processes.includes(1) && 'in two processes',
      faults > 0 && `${faults} faults`,
    ),
    options: { faults, arrivesAtOnce: true },
    async prepare(world) {
      const user = before === "a visitor's old session" ? {} : { userId: '42', name: 'ada', loginAt: LOGIN }
      const old = new OldStore(world, SID, { cookie: cookieAt(BEGIN), cart: ['tea'], ...user })
      const nodes = [nodeOf(world, old), nodeOf(world, old)]
      place = { nodes, old, browser: jarWith(oldCookie), thief: jarWith(oldCookie) }
      const { browser, thief } = place
      if (before === 'a session that was imported') await sees(world, nodes[0]!, jarWith(oldCookie))
      if (before === 'a session that was moved') {
        for (let views = 0; views < 2; views += 1) await sees(world, nodes[0]!, browser)
        browser.cookies.set(...oldCookie)
        // Long after each request that came with the old cookie alone.
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
    judge: world => judge(world, place, { before, requests, processes, faults }),
  }
}

function act(world: World, place: Place, name: ImportRequest, at: number): void {
  const node = place.nodes[at]!
  const other = name in OTHERS ? OTHERS[name as keyof typeof OTHERS] : null
  if (other !== null) {
    world.act(name, async () => other(place, at))
    return
  }
  const isThief = name === "a thief's page view"
  const jar = isThief ? place.thief : place.browser
  const { header } = jar
  let linesOf = (): string[] => []
  world.act(
    name,
    async () => {
      const { visit, lines } = await opened(world, node, header)
      linesOf = lines
      return steps[isThief ? 'a page view' : name]!(visit, { ada, max } as never)
    },
    () => {
      const lines = linesOf()
      world.canonical(lines.join())
      return () => jar.apply(lines)
    },
  )
}

async function judge(world: World, place: Place, scene: Required<ImportScene>): Promise<void> {
  const { before, requests, processes, faults } = scene
  const { nodes, old, browser, thief } = place
  const { actors, store } = world
  const did = (...names: readonly ImportRequest[]) => requests.some(name => names.includes(name))
  const acknowledged = (...names: readonly ImportRequest[]) =>
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
      const { visit, lines } = await opened(world, node, browser.header)
      await steps[name]!(visit, { ada, max } as never)
      browser.apply(lines())
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
        'a session that was imported passes for a fresh login',
      )

  // Once, for all who came. A write whose answer was lost may leave one that no cookie leads to.
  assert.ok(ours.length <= 1 + world.faults, `the session was imported ${ours.length} times`)
  const isOver = did(
    ...ENDS,
    'invalidateAll',
    'the old store is emptied, then invalidateAll',
    'a logout at an old node',
  )
  if (!isOver) {
    // A new ID leaves the old one to none.
    if (!did('a new ID'))
      for (const { name, value } of acknowledged(...VERBS, "a thief's page view"))
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
  if (isCalm && !processes.includes(1) && !did("a thief's page view")) {
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
  const wasOurs = before === 'a session that was imported' || before === 'a session that was moved'
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
    for (const node of [...nodes, nodeOf(world, old)])
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
  // The old record goes when the browser comes with our cookie, or with an old one that is worth nothing.
  if (isCalm && requests.some(name => VERBS.includes(name as 'a save'))) {
    for (let views = 0; views < 2; views += 1) await sees(world, nodes[0]!, browser)
    if (!browser.cookies.has(OLD_NAME) && !isEnded && !isAllEnded && !did('a late write of an old node'))
      assert.equal(old.records.size, 0, 'the old record stays')
  }
  assert.ok(!world.events.some(({ type }) => type === 'corrupt-record' || type === 'data-reset'), 'a record is torn')
}
