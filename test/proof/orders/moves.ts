// Sessions of the store that a service had before, which move here at their first load (`oldStore` of connect), beside all
// that may happen to them at three nodes. What must hold: the move logs nobody out, no change of a new node is lost, and what
// was logged out stays so, also where an old node saves it late.
import assert from 'node:assert/strict'
import type { ConnectStore } from 'coatcheck/connect'
import { OldStore } from './old-store.ts'
import { titled } from './requests.ts'
import type { Scene } from './search.ts'
import type { Manager, World } from './world.ts'

const SID = 'an-ID-of-the-old-middleware-0123'
const nextOf = (index: number) => `the-ID-that-is-drawn-for-login-${index}`
const OLD = { cookie: { originalMaxAge: null }, user: '42', a: 0, b: 0 }

const NEW = ['a page view', 'a save of a', 'a save of b', 'a touch', 'a logout', 'a new ID'] as const
export type MoveRequest = (typeof NEW)[number] | 'a late save of an old node' | 'a logout at an old node'
const ENDS: readonly MoveRequest[] = ['a logout', 'a new ID']

export interface MoveScene {
  readonly requests: readonly MoveRequest[]
  readonly faults?: number
  /** Its sessions lead to their loads by its context, those of the others by a key. */
  readonly isKoa?: boolean
}

/** Each two at two new nodes, or one of them and an old node. */
export const MOVE_PAIRS: readonly MoveScene[] = [
  ...NEW.flatMap((first, at) => NEW.slice(at).map((second): MoveScene => ({ requests: [first, second] }))),
  ...NEW.flatMap(first =>
    (['a late save of an old node', 'a logout at an old node'] as const).map(
      (second): MoveScene => ({ requests: [first, second] }),
    ),
  ),
]
export const MOVE_TRIPLES: readonly MoveScene[] = (
  [
    ['a page view', 'a page view', 'a page view'],
    ['a page view', 'a logout', 'a page view'],
    ['a page view', 'a new ID', 'a page view'],
    ['a save of a', 'a save of b', 'a page view'],
    ['a save of a', 'a logout', 'a touch'],
    ['a page view', 'a logout', 'a logout'],
    ['a page view', 'a logout', 'a late save of an old node'],
    ['a logout', 'a logout', 'a late save of an old node'],
    ['a page view', 'a page view', 'a logout at an old node'],
  ] as const
).map((requests): MoveScene => ({ requests }))

class Session {
  constructor(values: object) {
    Object.assign(this, values)
  }
}

/** A request as the middleware makes it of the store. */
class Request {
  readonly #store: ConnectStore
  readonly #more: readonly unknown[]
  constructor(store: ConnectStore, isKoa: boolean) {
    this.#store = store
    this.#more = isKoa ? [{ ctx: {} }] : []
  }
  #ask(verb: 'get' | 'set' | 'touch' | 'destroy', ...args: unknown[]): Promise<any> {
    const method = (...given: unknown[]) => (this.#store[verb] as (...given: unknown[]) => any)(...given)
    if (this.#more.length > 0) return method(...args, ...this.#more)
    return new Promise((resolve, reject) => {
      method(...args, (error: unknown, value: unknown) => (error ? reject(error) : resolve(value)))
    })
  }
  async load(): Promise<any> {
    const values = await this.#ask('get', SID)
    if (values === null || this.#more.length > 0) return values
    return new Session(values)
  }
  save = (session: object, sid = SID): Promise<void> => this.#ask('set', sid, session)
  touch = (session: object): Promise<void> => this.#ask('touch', SID, session)
  destroy = (): Promise<void> => this.#ask('destroy', SID)
}

interface Node {
  readonly sessions: Manager
  readonly store: ConnectStore
}
interface Place {
  readonly nodes: readonly Node[]
  readonly old: OldStore
}

function nodeOf(world: World, oldStore: OldStore): Node {
  const sessions = world.manager()
  const userOf = ({ user }: { user?: string }) => (user === undefined ? null : { id: user })
  return { sessions, store: world.library.connectStore(sessions, { userOf, oldStore }) }
}

/** The user that the request sees. */
async function run(
  name: MoveRequest,
  { store }: Node,
  old: OldStore,
  isKoa: boolean,
  index: number,
): Promise<string | null> {
  if (name === 'a logout at an old node') {
    const seen = await old.do('is read', () => old.records.has(SID))
    await old.do('ends it', () => old.records.delete(SID))
    return seen ? '42' : null
  }
  if (name === 'a late save of an old node') {
    const seen = await old.do('is read', () => old.records.get(SID))
    if (seen !== undefined) await old.do('has it again', () => old.records.set(SID, seen))
    return null
  }
  const request = new Request(store, isKoa)
  const session = await request.load()
  if (session === null) return null
  const { user } = session
  if (name === 'a touch') await request.touch(Object.assign(session, { cookie: { originalMaxAge: null, path: '/' } }))
  if (name === 'a save of a') await request.save(Object.assign(session, { a: 1 }))
  if (name === 'a save of b') await request.save(Object.assign(session, { b: 1 }))
  if (ENDS.includes(name)) await request.destroy()
  if (name === 'a new ID') await new Request(store, false).save(new Session({ cookie: {}, user: '43' }), nextOf(index))
  return user
}

export function moveOf({ requests, faults = 0, isKoa = false }: MoveScene): Scene {
  let place: Place
  return {
    name: titled(
      `a session of the old store: ${requests.join(' | ')}`,
      isKoa && 'in Koa',
      faults > 0 && `${faults} faults`,
    ),
    options: { faults },
    async prepare(world) {
      const old = new OldStore(world, SID, OLD)
      place = { old, nodes: requests.map(() => nodeOf(world, old)) }
      world.notes = {
        get kept() {
          return [...old.records]
        },
      }
      world.canonical([SID, ...requests.map((_, index) => nextOf(index))].join(' '))
      for (const [index, name] of requests.entries())
        world.act(name, () => run(name, place.nodes[index]!, old, isKoa, index))
    },
    judge: world => judge(world, place, requests, faults),
  }
}

async function judge(world: World, { nodes, old }: Place, requests: readonly MoveRequest[], faults: number) {
  const { actors, events, trace } = world
  const isCalm = world.faults === 0
  for (const { name, error } of actors) {
    const { code, stack } = (error ?? {}) as { code?: string; stack?: string }
    const isOutage = faults > 0 && (code === 'ERR_SESSION_STORE' || /ECONN/.test(stack ?? ''))
    assert.ok(error === undefined || isOutage, `${name}: ${code} ${stack}`)
  }
  const isDone = (index: number) => actors[index]!.error === undefined && actors[index]!.value !== null
  const ends = requests.flatMap((name, index) => (ENDS.includes(name) && isDone(index) ? [index] : []))
  const isTried = requests.some(name => ENDS.includes(name))
  const atOld = requests.indexOf('a logout at an old node')
  const fresh = nodeOf(world, old)
  const sees = async ({ store }: Node) => (await store.get(SID)) as Record<string, unknown> | null

  // Whoever begins after an acknowledged logout sees nobody, at any moment.
  for (const [index, { after, name, value, error }] of actors.entries())
    if (
      NEW.includes(name as 'a logout') &&
      error === undefined &&
      ends.some(end => after.split(',').includes(`${end}`))
    )
      assert.equal(value, null, `${name} (${index}) finds what was logged out before it began`)
  if (ends.length > 0) {
    // An event has told of a note that was refused.
    const isNoted = !events.some(event => event.type === 'store-error' && event.error.operation === 'create')
    if (isNoted) old.put()
    for (const node of [...nodes, fresh]) assert.equal(await sees(node), null, 'a logout is undone')
    assert.deepEqual(await fresh.sessions.list(42n), [], 'a session lives that was logged out')
    return
  }
  if (isTried) return
  // Only the first of those that create it inserts it.
  const at = (pattern: RegExp) => trace.findIndex(label => pattern.test(label))
  if (atOld >= 0) {
    const isFirst = at(new RegExp(`^${atOld}: the old store ends it runs`)) < at(/: create .* runs/)
    if (isCalm && isDone(atOld) && isFirst) assert.equal(await sees(fresh), null, 'a logout at an old node is undone')
    return
  }
  for (const { name, value, error } of actors)
    if (NEW.includes(name as 'a logout') && error === undefined) assert.equal(value, '42', `${name} is logged out`)
  for (const node of [fresh, ...nodes]) {
    const found = await sees(node)
    assert.equal(found?.user, '42', 'the move has logged the user out')
    for (const key of ['a', 'b'] as const) {
      const index = requests.indexOf(`a save of ${key}`)
      if (index >= 0 && isDone(index)) assert.equal(found?.[key], 1, `the change of ${key} is lost`)
    }
  }
  assert.equal((await fresh.sessions.list(42n)).length, 1, 'it has moved once')
  if (isCalm && !requests.includes('a late save of an old node'))
    assert.equal(old.records.size, 0, 'the old record stays')
}
