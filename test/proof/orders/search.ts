// Walks through all orders of a scene, or through some by lot. Each run begins anew and repeats the choices of an earlier
// one up to the place where it differs: nothing of a run has to be copied or undone.
import assert from 'node:assert/strict'
import { randomNumbers } from '../../../src/custom-store/random.ts'
import { type Choose, type Option, type Subject, World, type WorldOptions } from './world.ts'

/** What is run in each order: prepared, let go, and judged. */
export interface Scene {
  readonly name: string
  readonly options: WorldOptions
  /** Brings the world to where the actors begin, and names them. */
  prepare(world: World): Promise<void>
  /** Throws where what was done and what is left breaks a promise. */
  judge(world: World): Promise<void>
}

export interface Report {
  readonly scene: string
  /** Orders that were seen: run to their ends, or known to go on as one that was. */
  readonly orders: number
  readonly states: number
  readonly runs: number
  /** Places of the walk at which a choice was never tried, since the time or the number of runs was over; 0: all was seen. */
  readonly left: number
}

export interface Bounds {
  /** At most so many runs, @default no bound */
  readonly runs?: number
  /** Until when, by `Date.now()`. */
  readonly until?: number
  /** Whether runs that come to a state which was seen are cut there. @default true */
  readonly cut?: boolean
}

interface Step {
  readonly labels: readonly string[]
  readonly state: string
  taken: number
  orders: number
}

/** All orders of a scene. @throws Error that names the choices of one that breaks a promise, as few as were found */
export async function searchAll(subject: Subject, scene: Scene, bounds: Bounds = {}): Promise<Report> {
  const { runs: most = Number.POSITIVE_INFINITY, until = Number.POSITIVE_INFINITY, cut = true } = bounds
  /** How many orders follow from a state. */
  const seen = new Map<string, number>()
  const path: Step[] = []
  let runs = 0
  let states = 0
  let orders = 0
  for (;;) {
    let at = 0
    const choose: Choose = (options, world) => {
      const labels = options.map(({ label }) => label)
      const known = path[at]
      at += 1
      if (known !== undefined) {
        assert.deepEqual(labels, known.labels, `${scene.name}: the same choices did not lead to the same place`)
        return known.taken
      }
      const state = cut ? world.state() : ''
      const before = cut ? seen.get(state) : undefined
      if (before !== undefined) {
        credit(path, before)
        return null
      }
      states += 1
      path.push({ labels, state, taken: 0, orders: 0 })
      return 0
    }
    runs += 1
    try {
      if (await runOnce(subject, scene, choose, () => path.map(({ taken }) => taken))) credit(path, 1)
    } catch (error) {
      if (error instanceof Broken) error.runs = runs
      throw error
    }
    for (let last = path.at(-1); last !== undefined && last.taken + 1 >= last.labels.length; last = path.at(-1)) {
      path.pop()
      if (cut) seen.set(last.state, last.orders)
      if (path.length > 0) credit(path, last.orders)
      else orders += last.orders
    }
    const last = path.at(-1)
    if (last === undefined) return { scene: scene.name, orders: Math.max(orders, 1), states, runs, left: 0 }
    last.taken += 1
    if (runs < most && Date.now() < until) continue
    const left = path.reduce((sum, { labels, taken }) => sum + labels.length - taken - 1, 1)
    const done = path.reduce((sum, step) => sum + step.orders, 0)
    return { scene: scene.name, orders: done, states, runs, left }
  }
}

const credit = (path: readonly Step[], orders: number) => {
  const last = path.at(-1)
  if (last !== undefined) last.orders += orders
}

/** Some orders of a scene, drawn by lot. @throws Error that names the seed, and the fewest choices that show it */
export async function searchSome(
  subject: Subject,
  scene: Scene,
  { runs, seed, until = Number.POSITIVE_INFINITY }: { runs: number; seed: number; until?: number },
): Promise<Report> {
  let run = 0
  for (; run < runs && Date.now() < until; run += 1) {
    const next = randomNumbers(seed + run)
    const taken: number[] = []
    const choose: Choose = options => {
      // Half of all choices let what goes wrong alone: else it would go wrong at the beginning.
      const calm = next() % 2 === 0 ? options.filter(({ isFault }) => !isFault) : options
      const chosen = options.indexOf(calm[next() % calm.length] as Option)
      taken.push(chosen)
      return chosen
    }
    await runOnce(subject, scene, choose, () => taken, `seed ${seed + run}`)
  }
  return { scene: scene.name, orders: run, states: 0, runs: run, left: runs - run }
}

function replay(choices: readonly number[]): Choose {
  let next = 0
  return options => {
    const chosen = choices[next] ?? 0
    next += 1
    return Math.min(chosen, options.length - 1)
  }
}

/** Runs a scene in one order: what is not said is the first of its choices. */
export async function runChoices(subject: Subject, scene: Scene, choices: readonly number[]): Promise<World> {
  const world = new World(subject, scene.options)
  await scene.prepare(world)
  await world.run(replay(choices))
  await scene.judge(world)
  return world
}

async function runOnce(
  subject: Subject,
  scene: Scene,
  choose: Choose,
  choices: () => readonly number[],
  told = '',
): Promise<boolean> {
  const world = new World(subject, scene.options)
  await scene.prepare(world)
  try {
    if (!(await world.run(choose))) return false
    await scene.judge(world)
    return true
  } catch (error) {
    if (error instanceof assert.AssertionError && /the same choices/.test(error.message)) throw error
    throw await shortest(subject, scene, [...choices()], error, told)
  }
}

/** An order that breaks a promise. */
export class Broken extends Error {
  readonly choices: readonly number[]
  /** In which run it was met. */
  runs = 0
  constructor(message: string, choices: readonly number[], cause: unknown) {
    super(message, { cause })
    this.choices = choices
  }
}

/** The same with as few choices as possible that are not the first of theirs. */
async function shortest(
  subject: Subject,
  scene: Scene,
  found: number[],
  cause: unknown,
  told: string,
): Promise<Broken> {
  let best = found
  let error = cause
  const fails = async (choices: number[]) => {
    try {
      await runChoices(subject, scene, choices)
      return false
    } catch (failure) {
      error = failure
      return true
    }
  }
  for (let isShorter = true; isShorter; ) {
    isShorter = false
    for (let end = best.length - 1; end >= 0; end -= 1) {
      if (end >= best.length || best[end] === 0) continue
      const fewer = best.with(end, 0)
      while (fewer.at(-1) === 0) fewer.pop()
      if (!(await fails(fewer))) continue
      best = fewer
      isShorter = true
    }
  }
  const world = new World(subject, scene.options)
  await scene.prepare(world)
  await world.run(replay(best)).catch(() => {})
  const message = error instanceof Error ? error.message : String(error)
  const steps = world.trace.map(each => `  ${each}`).join('\n')
  return new Broken(`${scene.name}: ${message}\n${told} choices [${best.join()}]:\n${steps}`, best, error)
}
