// The soak: people at two nodes of the example service, while the database and one of the nodes are restarted, and what
// must hold all the time and at the end.
import { setTimeout as pause } from 'node:timers/promises'
import { randomNumbers } from '../../../src/custom-store/random.ts'
import { until } from '../../support/services/process.ts'
import { countLive, DATABASES, type DatabaseName } from './databases.ts'
import { growthIn, type Sample } from './growth.ts'
import { ServiceNode } from './nodes.ts'
import { Person, type Scene } from './people.ts'
import { Users } from './users.ts'

const PEOPLE = 30

/** What must not be, and figures for people. `seconds`: how long the load lasts. */
export async function soak(name: DatabaseName, seconds: number) {
  const database = await DATABASES[name]()
  const idle = Math.min(30, Math.max(8, seconds / 10)) * 1000
  const lives = { idle, absolute: 6 * idle }
  const users = new Users()
  const node = () => new ServiceNode({ storeUrl: database.url, users, ...lives })
  const nodes = [node(), node()] as const
  try {
    await Promise.all(nodes.map(each => each.start()))
    return await run()
  } finally {
    await Promise.all(nodes.map(each => each.end()))
    await database.stop()
  }

  async function run() {
    const [steady, restarted] = nodes
    const seed = Date.now() % 2 ** 31
    console.log(`${name}, seed ${seed}`)
    const numbers = randomNumbers(seed)
    const violations: string[] = []
    const counts: Record<string, number> = {}
    const scene: Scene = {
      ...{ nodes, users, ...lives, violations },
      random: () => numbers() / 2 ** 32,
      count(what, times = 1) {
        counts[what] = (counts[what] ?? 0) + times
      },
    }
    let isOver = false
    const people = Array.from({ length: PEOPLE }, (_, index) => new Person(scene, index))
    const load = people.map(async person => {
      while (!isOver) {
        await pause(50 + scene.random() * 150)
        await person.act()
      }
    })
    const answers = ({ url }: ServiceNode) =>
      until('a node answering again', async () => {
        const { status } = await fetch(`${url}/count`, { headers: { Cookie: `session_id=${'A'.repeat(43)}` } })
        if (status !== 200) throw new Error(`${status}`)
      })
    const outage = async (crash: boolean, meanwhile: () => Promise<unknown> = async () => {}) => {
      await database.end(crash)
      await meanwhile()
      await pause(500)
      await database.restart()
      await Promise.all(nodes.filter(each => !each.isStopping).map(answers))
    }
    const EVENTS: Record<string, () => Promise<unknown>> = {
      'the database restarts': () => outage(false),
      'a node restarts': () => restarted.stop().then(() => restarted.start()),
      'the database is killed and restarts': () => outage(true),
      // It cannot reach its database when it stops.
      'a node stops while the database is away': () =>
        outage(true, () => restarted.stop()).then(() => restarted.start()),
    }
    const samples: Sample[] = []
    const begun = Date.now()
    const end = begun + seconds * 1000
    const eventEvery = Math.min(60, seconds / 5) * 1000
    const sampleEvery = Math.min(10_000, (seconds * 1000) / 24)
    let nextEvent = begun + eventEvery
    let nextSample = begun
    const events = Object.entries(EVENTS)
    let event = 0
    // Each kind of restart happens at least once, however slow the machine is.
    for (; Date.now() < end || event < events.length; await pause(100)) {
      if (Date.now() >= nextSample) {
        nextSample = Date.now() + sampleEvery
        samples.push({ ...(await steady.figures()), connections: await database.connections() })
      }
      if (Date.now() >= nextEvent) {
        nextEvent = Date.now() + eventEvery
        const [what, happen] = events[event++ % events.length]!
        console.log(`${Math.round((Date.now() - begun) / 1000)} s: ${what}`)
        await happen()
      }
    }
    isOver = true
    // Each at its own end: others may be away for a while.
    await Promise.all(load.map((acting, index) => acting.then(() => people[index]!.finish())))

    // Everything expires: then no live session may be left.
    await pause(idle + 1000)
    const [sessions, overdue] = [await countLive(database.url), await database.overdue()]
    if (sessions > 0) violations.push(`${sessions} sessions live after all have expired`)
    if (overdue > 0) violations.push(`${overdue} rows or keys should have been removed`)
    violations.push(...growthIn(samples))
    await Promise.all(nodes.map(each => each.stop()))
    const connections = await database.connections()
    if (connections > 0) violations.push(`${connections} connections are left after both nodes have stopped`)
    for (const each of nodes) violations.push(...each.faults)
    const ends = (['heapUsed', 'handles', 'connections'] as const).map(
      what => [what, `${samples[0]?.[what]}, ${samples.at(-1)?.[what]}`] as const,
    )
    return { violations, figures: { ...counts, restarts: event, ...Object.fromEntries(ends) } }
  }
}
