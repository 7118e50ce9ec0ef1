// Random histories of one browser at two nodes whose clocks are 4 minutes apart: requests that overlap, answers that come late or
// never, a store that fails, tabs, a double click on "log in", new IDs, and a thief with copies of the jar. COATCHECK_ROUNDS=1000
// looks longer, COATCHECK_SEED at one.
import { SessionManager } from 'coatcheck'
import { deviceState } from 'coatcheck/device-bound'
import { MemoryStore } from 'coatcheck/stores/memory'
import { expect, it } from 'vitest'
import { BarrierStore } from '../support/barrier-store.ts'
import { ADA, BOUND_COOKIE, boundEdge, challengeIn, DeviceClient, REFRESH, REGISTER } from '../support/device-client.ts'
import { type DevicePair, newDevice, refreshProof, registrationProof } from '../support/device-key.ts'
import { MINUTE, SECOND } from '../support/test-clock.ts'

const ROUNDS = Number(process.env.COATCHECK_ROUNDS ?? 16)
const SKEW = 4 * MINUTE
/** `lifetime`, the tolerance of clocks, and what the clocks differ by. */
const LIMIT = 5 * MINUTE + 5 * MINUTE + SKEW
const DEVICES = Array.from({ length: 8 }, newDevice)
const turn = () => new Promise(resolve => setImmediate(resolve))

/** Mulberry32: the same numbers for a seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

/** What a page says: who is logged in, by which login, and the state of the device. */
type Seen = [name: string | null, login: number, state: string]

class World {
  now = Date.UTC(2026, 0, 1)
  readonly store = BarrierStore.over(new MemoryStore())
  readonly events: string[] = []
  readonly history: string[] = []
  readonly random: (below: number) => number
  readonly nodes
  /** When each login was first seen bound. */
  readonly heldAt = new Map<number, number>()
  logins = 0
  failures = 0
  /** Whether the store may fail. */
  isShaky = true

  constructor(seed: number) {
    this.random = randomOf(seed)
    for (const verb of ['create', 'read', 'update', 'replace', 'delete'] as const)
      this.store.every(verb, async proceed => {
        for (let turns = this.random(4); turns > 0; turns -= 1) await turn()
        const fate = this.isShaky ? this.random(80) : 2
        if (fate > 1) return proceed()
        this.failures += 1
        if (fate === 1) await proceed()
        throw new Error('ECONNRESET')
      })
    const node = (ahead: number) =>
      new SessionManager({
        store: this.store,
        now: () => this.now + ahead,
        idleTimeout: '12h',
        sweepInterval: false,
        onEvent: event => this.events.push('reason' in event ? `${event.type} ${event.reason}` : event.type),
      })
    this.nodes = [node(0), node(SKEW)].map(sessions => boundEdge(sessions, { lifetime: '5m' }))
  }

  /** What a request that is looked at now, at either node, is answered. */
  async serve(request: Request): Promise<Response> {
    const node = this.nodes[this.random(2)]!
    const { pathname } = new URL(request.url)
    const { failures } = this
    const answer = await node.handled(request)
    if (answer !== null) return answer
    const page = node.handle(request, async visit => {
      if (pathname === '/login') await visit.logIn({ user: ADA, data: { login: ++this.logins } })
      if (pathname === '/logout') await visit.logOut()
      if (pathname === '/new-id') await visit.regenerate()
      if (pathname === '/save') await visit.update((data: any) => void Object.assign(data, { saved: this.now }))
      const session = await visit.get()
      const login = session?.data.login ?? 0
      const state = await deviceState(visit)
      // What failed meanwhile may have been the note of it.
      if (state === 'bound' && failures === this.failures && !this.heldAt.has(login)) this.heldAt.set(login, this.now)
      return Response.json([session?.user?.name ?? null, login, state] satisfies Seen)
    })
    return page.catch(({ status }) => Response.json([null, 0, 'failed'] satisfies Seen, { status: status ?? 500 }))
  }
}

/** As Chromium does it: it proves itself before a request whose bound cookie is gone, as often as it is told to. */
class Browser extends DeviceClient {
  readonly world: World
  /** When its cookies end. */
  readonly ends = new Map<string, number>()
  readonly kept = new Map<string, { device: DevicePair; challenge: string | null }>()
  /** Steps that are under way: a request to be looked at, or an answer to be taken. */
  readonly pending: (() => Promise<unknown>)[] = []

  constructor(world: World) {
    super(world.nodes[0]!, DEVICES[0])
    this.world = world
  }

  override request(...request: Parameters<DeviceClient['request']>): Request {
    for (const [name, end] of this.ends) if (end <= this.world.now) this.jar.delete(name)
    return super.request(...request)
  }

  override take(response: Response): Response {
    for (const line of response.headers.getSetCookie()) {
      const [, name, maxAge] = /^([^=]+)=.*; Max-Age=(\d+)/.exec(line)!
      this.ends.set(name!, this.world.now + Number(maxAge) * SECOND)
    }
    const [, id] = /;id="([^"]+)"/.exec(response.headers.get('secure-session-challenge') ?? '') ?? []
    const session = this.kept.get(id ?? '')
    if (session !== undefined) session.challenge = challengeIn(response)
    if (response.headers.has('secure-session-registration')) this.answerOffer(challengeIn(response)!)
    return super.take(response)
  }

  /** Sends a request whose answer comes at once, late, or never; or which is looked at late. */
  async send(request: Request, take = async (response: Response): Promise<unknown> => this.take(response)) {
    const fate = this.world.random(10)
    this.world.history.push(`${new URL(request.url).pathname} ${['lost', 'late', 'looked at late'][fate] ?? ''}`)
    const look = () => this.world.serve(request)
    if (fate === 2) return void this.pending.push(async () => take(await look()))
    const response = await look()
    if (fate === 1) this.pending.push(() => take(response))
    else if (fate > 1) await take(response)
  }

  answerOffer(challenge: string): void {
    const device = DEVICES[this.world.random(DEVICES.length)]!
    const headers = { 'secure-session-response': registrationProof(device, challenge) }
    this.pending.push(() =>
      this.send(this.request(REGISTER, 'POST', headers), async response => {
        if (response.status !== 200) return
        this.kept.set(((await response.json()) as any).session_identifier, { device, challenge: null })
        this.take(response)
      }),
    )
  }

  refreshing(id: string): Request {
    const { device, challenge } = this.kept.get(id)!
    const proof = challenge === null ? {} : { 'secure-session-response': refreshProof(device, challenge) }
    return this.request(REFRESH, 'POST', { 'sec-secure-session-id': id, ...proof })
  }

  /** Proves each session that it keeps, before a request that waits for it. */
  async prove(): Promise<void> {
    if ((this.ends.get(BOUND_COOKIE) ?? 0) > this.world.now) return
    for (const id of [...this.kept.keys()])
      for (let tries = 0; tries < 4 && this.kept.has(id); tries += 1) {
        const response = await this.world.serve(this.refreshing(id))
        this.take(response)
        if (response.status === 400 || (response.status === 200 && (await response.clone().text()).includes('false}')))
          this.kept.delete(id)
        if (response.status === 200) break
      }
  }

  async get(path: string): Promise<void> {
    await this.prove()
    await this.send(this.request(path))
  }
}

const STEPS: Record<
  string,
  (world: World, browser: Browser, copies: { jar: Map<string, string>; at: number }[]) => unknown
> = {
  'time passes': world => {
    world.now += [SECOND, MINUTE, 4 * MINUTE, 7 * MINUTE, 12 * MINUTE][world.random(5)]!
  },
  'something late': (world, { pending }) => pending.splice(world.random(pending.length || 1), 1)[0]?.(),
  'a page': (_, browser) => browser.get('/'),
  'a save': (_, browser) => browser.get('/save'),
  'a page that does not wait for the proof': (_, browser) => browser.send(browser.request('/')),
  'a refresh in another tab': async (_, browser) => {
    for (const id of [...browser.kept.keys()].slice(-1)) await browser.send(browser.refreshing(id))
  },
  'a new ID': async (world, browser) => {
    await browser.prove()
    browser.take(await world.serve(browser.request('/new-id', 'POST')))
  },
  'a login': (_, browser) => browser.send(browser.request('/login', 'POST')),
  'a double click on log in': (_, browser) => {
    const clicks = [browser.request('/login', 'POST'), browser.request('/login', 'POST')]
    return Promise.all(clicks.map(click => browser.send(click)))
  },
  'a logout': (_, browser) => browser.send(browser.request('/logout', 'POST')),
  'a thief copies': (world, browser, copies) => copies.push({ jar: new Map(browser.jar), at: world.now }),
  'the thief comes': async (world, _, copies) => {
    const copy = copies[Math.max(0, copies.length - 1 - world.random(3))]
    if (copy === undefined) return
    const thief = new DeviceClient(world.nodes[0]!, DEVICES[0])
    // Whatever his jar does with cookies that have ended, and with those that would betray him.
    thief.jar = new Map([...copy.jar].filter(([name]) => name !== BOUND_COOKIE || world.random(3) > 0))
    const proof = registrationProof(DEVICES[0]!, 'a guess')
    for (const path of [REGISTER, REFRESH])
      await world.serve(
        thief.request(path, 'POST', { 'sec-secure-session-id': 'a guess', 'secure-session-response': proof }),
      )
    const response = await world.serve(thief.request('/'))
    const [name, login] = (await response.json()) as Seen
    expect(response.headers.has('secure-session-registration')).toBe(false)
    const heldAt = world.heldAt.get(login)
    if (name === null || heldAt === undefined) return
    expect(world.now - Math.max(copy.at, heldAt), 'the thief is in').toBeLessThan(LIMIT)
  },
}

async function round(seed: number): Promise<void> {
  const world = new World(seed)
  const browser = new Browser(world)
  const copies: Parameters<(typeof STEPS)[string]>[2] = []
  const take = (name: string) => {
    world.history.push(name)
    return STEPS[name]!(world, browser, copies)
  }
  /** Who the owner is to a page, after a reload or two. */
  const check = async () => {
    world.isShaky = false
    const cookie = browser.jar.get('session_id') as never
    const own = await world.nodes[0]!.sessions.get(cookie, { touch: false })
    let name: string | null = null
    for (let tries = 0; tries < 3 && name === null; tries += 1) {
      await browser.prove()
      ;[name] = (await browser.take(await world.serve(browser.request('/'))).json()) as Seen
    }
    expect(name, 'the owner').toBe(own?.user?.name ?? null)
    world.isShaky = true
  }
  const draw = () => {
    const names = Object.keys(STEPS)
    const name = names[world.random(names.length)]!
    // Rarely: a copy is to grow old beside a session that goes on.
    return /log|new ID/.test(name) && world.random(8) > 0 ? 'a page' : name
  }
  try {
    await take('a login')
    for (let step = 0; step < 50; step += 1) {
      // Some at the same time.
      const names = Array.from({ length: world.random(3) + 1 }, draw)
      await Promise.all(names.map(take))
      if (world.random(6) === 0) await check()
    }
    while (browser.pending.length > 0) await take('something late')
    await check()
    expect(world.events.filter(event => /theft|revoked/.test(event))).toEqual([])
  } catch (error) {
    throw new Error(`COATCHECK_SEED=${seed}: ${world.history.join(' | ')}`, { cause: error })
  }
}

it(
  'whatever happens in which order, the owner is never out, the thief is, and no theft is told',
  async () => {
    const only = process.env.COATCHECK_SEED
    const seeds = only === undefined ? Array.from({ length: ROUNDS }, (_, at) => at + 1) : [Number(only)]
    for (const seed of seeds) await round(seed)
  },
  ROUNDS * 20_000,
)
