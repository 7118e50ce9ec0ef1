// The soak: browsers on two nodes of the example service, while the database and one of the nodes are restarted, and what
// must hold all the time and at the end.
import { until } from '../../support/services/process.ts'
import { Browser, type Scene } from './browser.ts'
import { DATABASES, type Database, type DatabaseName } from './databases.ts'
import { growthIn, percentile, type Sample } from './growth.ts'
import { type NodeOptions, ServiceNode, send } from './nodes.ts'
import { Users } from './users.ts'

export interface SoakOptions {
  readonly database: DatabaseName
  /** How long the load lasts, in seconds. */
  readonly seconds: number
  readonly browsers?: number
  /** Modules that the nodes load first: a leak, for the test of this soak. */
  readonly preload?: readonly string[]
  /** Called in the middle of the load, where a test breaks something on purpose. */
  readonly sabotage?: (database: Database) => Promise<unknown>
  /** The load goes on until each of these was told, but no longer than ten times as long. */
  readonly expected?: readonly RegExp[]
  /** Told what happens. */
  readonly log?: (line: string) => void
}

export interface SoakReport {
  /** What must not be; empty where all is well. */
  readonly violations: readonly string[]
  /** For people. */
  readonly figures: Readonly<Record<string, string | number>>
}

/** Records planted as long expired: a sweep has to find them. */
const PLANTED = 200

/** The same numbers for the same seed, by mulberry32. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`

export async function soak(options: SoakOptions): Promise<SoakReport> {
  const { seconds, browsers: count = 60, preload = [], log = () => {} } = options
  const violations: string[] = []
  const idle = Math.min(30, Math.max(4, Math.floor(seconds / 10)))
  const absolute = 6 * idle
  const users = new Users(Math.ceil(count / 3))
  const database = await DATABASES[options.database]()
  const nodeOptions: NodeOptions = { url: database.url, users, idle, absolute, preload }
  const nodes = [new ServiceNode(nodeOptions), new ServiceNode(nodeOptions)] as const
  try {
    await Promise.all(nodes.map(node => node.start()))
    return await run()
  } finally {
    await Promise.all(nodes.map(node => node.end()))
    await database.stop()
  }

  async function run(): Promise<SoakReport> {
    const [steady, restarted] = nodes
    const seed = Date.now() % 2 ** 31
    const random = randomFrom(seed)
    log(
      `seed ${seed}, ${count} browsers of ${users.accounts.length} users, sessions live ${idle} s idle, ${absolute} s in all`,
    )
    const outages: { from: number; until: number }[] = []
    const scene: Scene = {
      nodes,
      users,
      lives: { idle: idle * 1000, absolute: absolute * 1000 },
      outages,
      random,
      statuses: new Map(),
      durations: [],
      counts: {
        requests: 0,
        judged: 0,
        refused: 0,
        cut: 0,
        aborted: 0,
        retried: 0,
        writes: 0,
        unknown: 0,
        logIns: 0,
        logOuts: 0,
        everywhere: 0,
        unavailable: 0,
        unexplained: 0,
      },
      violations,
    }
    await database.plantExpired(PLANTED)

    let isOver = false
    const browsers = Array.from({ length: count }, (_, index) => new Browser(scene, index))
    const load = browsers.map(async browser => {
      while (!isOver) {
        await pause(50 + random() * 150)
        await browser.act()
      }
    })
    // People who never log in: they get no cookie, and nothing is written for them.
    const visitors = (async () => {
      while (!isOver) {
        await pause(100)
        const node = nodes[random() < 0.5 ? 0 : 1]
        const reply = await send(node, { method: 'GET', path: random() < 0.5 ? '/' : '/profile' })
        if (typeof reply !== 'object') continue
        if (reply.cookies.length > 0) violations.push(`a visitor who is not logged in got ${reply.cookies}`)
        if (reply.status === 200 && reply.body !== null && typeof reply.body !== 'string')
          violations.push(`a visitor is logged in: ${JSON.stringify(reply.body)}`)
      }
    })()

    const answers = (node: ServiceNode) =>
      until('a node answering again', async () => {
        const reply = await send(node, { method: 'GET', path: '/count', cookie: `session_id=${'A'.repeat(43)}` })
        if (typeof reply !== 'object' || reply.status !== 200) throw new Error(JSON.stringify(reply))
      })
    const outage = async (crash: boolean, meanwhile: () => Promise<unknown> = async () => {}) => {
      const one = { from: Date.now(), until: Number.POSITIVE_INFINITY }
      outages.push(one)
      await database.end(crash)
      await meanwhile()
      await pause(500)
      await database.restart()
      await Promise.all(nodes.filter(node => !node.isStopping).map(answers))
      one.until = Date.now() + 1000
    }
    const restart = async () => {
      await restarted.stop()
      await pause(200)
      await restarted.start()
    }
    const EVENTS: readonly { readonly what: string; happen(): Promise<unknown> }[] = [
      { what: 'the database restarts', happen: () => outage(false) },
      { what: 'a node restarts', happen: restart },
      { what: 'the database is killed and restarts', happen: () => outage(true) },
      // It cannot reach its database when it stops.
      {
        what: 'a node stops while the database is away',
        happen: () => outage(true, () => restarted.stop()).then(() => restarted.start()),
      },
    ]
    const happened = new Map<string, number>()
    const samples: Sample[] = []
    const begun = Date.now()
    const end = begun + seconds * 1000
    const eventEvery = Math.min(60, seconds / 5) * 1000
    const sampleEvery = Math.max(500, Math.min(10_000, (seconds * 1000) / 24))
    let nextEvent = begun + eventEvery
    let nextSample = begun
    let isBroken = options.sabotage === undefined
    // Each kind of restart happens at least once, however slow the machine is.
    let event = 0
    const isExpectedToGoOn = () =>
      Date.now() < begun + 10_000 * seconds &&
      (options.expected ?? []).some(pattern => !violations.some(violation => pattern.test(violation)))
    for (; Date.now() < end || event < EVENTS.length || isExpectedToGoOn(); await pause(100)) {
      if (Date.now() >= nextSample) {
        nextSample = Date.now() + sampleEvery
        const { heapUsed, handles, rss } = await steady.figures()
        const connections = await database.connections()
        samples.push({ at: Date.now() - begun, heapUsed, handles, rss, connections })
      }
      if (!isBroken && Date.now() > begun + seconds * 500) {
        isBroken = true
        await options.sabotage!(database)
      }
      if (Date.now() >= nextEvent && (Date.now() < end - eventEvery / 2 || event < EVENTS.length)) {
        nextEvent = Date.now() + eventEvery
        const { what, happen } = EVENTS[event++ % EVENTS.length]!
        log(`${Math.round((Date.now() - begun) / 1000)} s: ${what}`)
        happened.set(what, (happened.get(what) ?? 0) + 1)
        await happen()
      }
    }
    isOver = true
    await Promise.all([...load, visitors])
    const elapsed = (Date.now() - begun) / 1000
    for (const browser of browsers) await browser.finish()

    // Everything expires: then no live session may be left, and series only of browsers that have their token, or of
    // logins whose answer was lost.
    await pause(idle * 1000 + 1000)
    const contents = await database.contents()
    const lost = scene.counts.unavailable + scene.counts.cut + scene.counts.unknown
    const remembered = browsers.filter(browser => browser.isRemembered).length
    if (contents.sessions > 0) violations.push(`${contents.sessions} sessions live after all have expired`)
    if (contents.series > remembered + lost)
      violations.push(`${contents.series} remember-me series live, and ${remembered} browsers have a token`)
    if (contents.overdue > 0) violations.push(`${contents.overdue} rows or keys should have been removed`)

    const last = await steady.figures()
    violations.push(...growthIn(samples))
    await Promise.all(nodes.map(node => node.stop()))
    const left = await database.connections()
    if (left > 0) violations.push(`${left} connections are left at the database after both nodes have stopped`)
    for (const node of nodes) violations.push(...node.faults)
    const { counts, statuses, durations } = scene
    const thefts = steady.sums.thefts + restarted.sums.thefts
    if (thefts > 0) violations.push(`a remember token was called stolen ${thefts} times`)
    if (counts.judged === 0) violations.push('no answer could be judged')

    const statusOf = (range: string) =>
      [...statuses].filter(([name]) => name.includes(` ${range}`)).reduce((sum, [, n]) => sum + n, 0)
    const of = (what: keyof Sample) => samples.map(sample => sample[what])
    return {
      violations,
      figures: {
        'load, seconds': Math.round(elapsed),
        requests: counts.requests,
        'statuses 200': statusOf('200'),
        'statuses 401': statusOf('401'),
        'statuses 404': statusOf('404'),
        'statuses 503': statusOf('503'),
        'of them while the database was there': counts.unexplained,
        'other statuses':
          [...statuses]
            .filter(([name]) => !/ (?:200|401|404|503)$/.test(name))
            .map(([name, n]) => `${name}: ${n}`)
            .join(', ') || 'none',
        'answers judged by the model': counts.judged,
        'writes acknowledged': counts.writes,
        'writes with an unknown outcome': counts.unknown,
        logins: counts.logIns,
        logouts: counts.logOuts,
        'logouts everywhere': counts.everywhere,
        'refused, retried at the other node': counts.refused,
        'connections that ended with a node': counts.cut,
        'tabs closed before the answer': counts.aborted,
        restarts: [...happened].map(([what, n]) => `${what}: ${n}`).join(', '),
        'received and answered by the nodes': `${steady.sums.received + restarted.sums.received} and ${steady.sums.answered + restarted.sums.answered}`,
        'p50 and p99, ms': `${percentile(durations, 0.5).toFixed(1)} and ${percentile(durations, 0.99).toFixed(1)}`,
        'heap of the node that stays: first, largest, last': `${megabytes(samples[0]?.heapUsed ?? 0)}, ${megabytes(Math.max(...of('heapUsed')))}, ${megabytes(last.heapUsed)}`,
        'handles: first, largest, last': `${samples[0]?.handles}, ${Math.max(...of('handles'))}, ${last.handles}`,
        'connections at the database: largest, after the end': `${Math.max(...of('connections'))}, ${left}`,
        'live sessions at the end, and expected': `${contents.sessions}, 0`,
        'live series at the end, and tokens in browsers': `${contents.series}, ${remembered}`,
        'rows or keys at the end': Object.entries(contents.kinds)
          .map(([kind, n]) => `${kind} ${n}`)
          .join(', '),
        'of them overdue': contents.overdue,
      },
    }
  }
}
