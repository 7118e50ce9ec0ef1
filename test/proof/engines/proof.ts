// Runs histories against an engine under the nemesis, and checks each.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomNumbers } from '../../../src/custom-store/random.ts'
import { recordAt } from '../../support/records.ts'
import { check, type Verdict } from './checker.ts'
import type { Round } from './client.ts'
import type { Engine, Running } from './engines/engine.ts'
import { memory } from './engines/memory.ts'
import { redis } from './engines/redis.ts'
import { redisCluster } from './engines/redis-cluster.ts'
import { mariadb, postgresql, sqlite } from './engines/sql.ts'
import { type Entry, entriesOf, type Hold, instant } from './history.ts'
import type { Call } from './model.ts'
import { between, type Faults, ofWorkers, one, wait } from './nemesis.ts'
import { cellOf, keyOf } from './schedule.ts'
import { startWorker, type Worker } from './workers.ts'

export const ENGINES: readonly Engine[] = [memory, redis, redisCluster, postgresql, mariadb, sqlite]

/** What a search found. */
export interface Report {
  readonly engine: string
  readonly seed: number
  /** Rounds; cells, which are small worlds of two users, of which none touches another; and calls. */
  readonly counts: Record<'rounds' | 'histories' | 'calls', number> &
    /** Of calls: given up, of which nothing is known; or refused, so that nothing was written. */
    Record<'unknown' | 'refused', number> &
    /** Histories of which no order was found in the end, nor that there is none; and orders that were looked at. */
    Record<'undecided' | 'looked', number>
  readonly faults: Record<string, number>
  readonly violations: { readonly seed: number; readonly cell: number; readonly text: string }[]
}

export interface ProofOptions {
  readonly seed: number
  /** How long the rounds go on. Without it there is one, in which a busy machine has four times as long for each call. */
  readonly seconds?: number | undefined
  /** The compiled worker. */
  readonly worker: string
  /** Told after each round. */
  readonly onRound?: (report: Report) => void
}

const CELLS = 24
const STEP = 110
const OPEN = 700
const TIMEOUT = 500

/** Runs rounds until the time is over, at least one; ends at the first violation. */
export async function prove(engine: Engine, options: ProofOptions): Promise<Report> {
  const { seed, seconds = 0, worker: file, onRound } = options
  const patience = options.seconds === undefined ? 4 : 1
  const started = await engine.start()
  const running = { ...started, grace: (started.grace ?? 250) * patience }
  const folder = mkdtempSync(join(tmpdir(), 'coatcheck-proof-'))
  const counts = { rounds: 0, histories: 0, calls: 0, unknown: 0, refused: 0, undecided: 0, looked: 0 }
  const report: Report = { engine: engine.name, seed, counts, faults: {}, violations: [] }
  const places: Worker[] = []
  let names = 0
  const openAt = async (place: number) => {
    places[place] = await startWorker(file, `p${names++}`, running.openings[place]!)
  }
  try {
    await Promise.all(running.openings.map((_, place) => openAt(place)))
    const end = performance.now() + seconds * 1000
    for (let number = 0; number === 0 || (performance.now() < end && report.violations.length === 0); number++) {
      for (const [place, worker] of places.entries()) if (!worker.isAlive()) await openAt(place)
      await runRound(engine, running, { seed: seed + number, patience, folder, report, places, openAt })
      onRound?.(report)
    }
  } finally {
    await Promise.all(places.map(worker => worker.kill()))
    await running.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  return report
}

interface RoundContext {
  readonly seed: number
  readonly patience: number
  readonly folder: string
  readonly report: Report
  readonly places: Worker[]
  openAt(place: number): Promise<void>
}

async function runRound(engine: Engine, running: Running & { grace: number }, context: RoundContext): Promise<void> {
  const { seed, patience, folder, report, places, openAt } = context
  const { counts } = report
  const numbers = randomNumbers(seed)
  const chance = () => numbers() / 2 ** 32
  const round: Round = {
    ...{ seed, begin: instant() + 50_000, cells: CELLS, step: STEP, open: OPEN },
    ...{ clients: engine.clients, most: 10, pause: 12, timeout: TIMEOUT * patience },
  }
  let logs = 0
  const newLog = () => join(folder, `${seed}-${logs++}`)
  const tasks = places.map(worker => worker.tell({ log: newLog(), round }))
  const replace = async (worker: Worker) => {
    const place = places.indexOf(worker)
    await openAt(place)
    tasks.push(places[place]!.tell({ log: newLog(), round }))
  }
  const holds: Hold[] = []
  const faults: Faults = {
    ...running.faults,
    ...(engine.hasProcesses ? ofWorkers(() => places, replace) : {}),
  }
  const traffic = round.begin + ((CELLS - 1) * STEP + OPEN) * 1000
  const names = Object.keys(faults)
  while (instant() < traffic && names.length > 0) {
    await wait(between(chance, 20, 250))
    const name = one(chance, names)
    report.faults[name] = (report.faults[name] ?? 0) + 1
    await faults[name]!(chance, holds)
  }
  await Promise.all(tasks)
  let history = entriesIn(folder, seed)
  const isOpen = ({ failed, answered }: Entry) => failed === 'unknown' || answered === undefined
  const late = Math.max(0, ...history.filter(isOpen).map(({ deadline }) => deadline)) + running.grace * 1000
  await wait(Math.max(0, (late - instant()) / 1000))
  const [witness] = places
  await witness!.tell({ log: newLog(), calls: lastCalls(history, seed) })
  history = entriesIn(folder, seed)
  if (!history.some(({ client, answered, failed }) => client.endsWith(' last') && answered && failed === undefined))
    throw new Error(`${engine.name} answered nothing after the faults of seed ${seed}`)
  counts.rounds++
  counts.calls += history.length
  counts.unknown += history.filter(isOpen).length
  counts.refused += history.filter(({ failed }) => failed === 'not-applied').length
  const cells = grouped(history)
  for (const [cell, entries] of cells) {
    counts.histories++
    const { rules, grace, lateEndings = false } = running
    const verdict = check(entries, { rules, grace, lateEndings, holds })
    counts.looked += verdict.looked
    // What could not be decided says nothing: a busy machine lets many calls run at once.
    if (!verdict.ok && !verdict.decided) counts.undecided++
    if (!verdict.ok && (verdict.decided || patience === 1))
      report.violations.push({ seed, cell, text: told(verdict, holds) })
  }
  for (const file of readdirSync(folder)) rmSync(join(folder, file))
}

function grouped(history: readonly Entry[]): Map<number, Entry[]> {
  const groups = new Map<number, Entry[]>()
  for (const entry of history) groups.set(entry.cell, [...(groups.get(entry.cell) ?? []), entry])
  return groups
}

function entriesIn(folder: string, seed: number): Entry[] {
  const files = readdirSync(folder).filter(file => file.startsWith(`${seed}-`))
  return files.flatMap(file => entriesOf(readFileSync(join(folder, file), 'utf8').split('\n')))
}

/** What is asked when all is quiet: every key, every list, and for each user a login that verified no password. */
function lastCalls(history: readonly Entry[], seed: number): { cell: number; call: Call }[] {
  const now = Date.now()
  const keys = new Map<string, { cell: number; call: Call }>()
  for (const { cell, call } of history)
    if (call.verb === 'create' || call.verb === 'replace')
      for (const key of call.verb === 'replace' ? [call.oldKey, call.record.key] : [call.record.key])
        keys.set(key, { cell, call: { verb: 'read', key, now } })
  const users = [...new Set(history.map(({ cell }) => cell))].flatMap(number => {
    const cell = cellOf(seed, number)
    const shard = new Map<string, string>()
    for (const { call } of history)
      if (call.verb === 'create' && call.record.userId !== null)
        shard.set(call.record.userId, call.record.key.slice(0, 3))
    return cell.users.flatMap((userId, i): { cell: number; call: Call }[] => {
      const lists = (['session', 'remember'] as const).map(
        kind => ({ verb: 'listUser', userId, kind, now }) satisfies Call,
      )
      const start = shard.get(userId)
      if (start === undefined) return lists.map(call => ({ cell: number, call }))
      const key = start + keyOf(cell, 'last', userId, {}).slice(3)
      const record = recordAt(now, { key, userId, writeId: `last_${number}_user${i}` })
      const logIn: Call = { verb: 'create', record, now }
      return [...lists, logIn].map(call => ({ cell: number, call }))
    })
  })
  return [...keys.values(), ...users]
}

/** The shortest wrong history, for people. */
export function told(verdict: Verdict & { ok: false }, holds: readonly Hold[] = []): string {
  const { entries, decided } = verdict
  const first = Math.min(...entries.map(({ invoked }) => invoked))
  const ms = (at: number | undefined) => (at === undefined ? '     …' : ((at - first) / 1000).toFixed(1).padStart(6))
  const short = (value: unknown) =>
    JSON.stringify(value)?.replaceAll(/"([A-Za-z0-9_-]{46})"/g, (_, key) => `"${key.slice(3, 9)}"`)
  const lines = entries.map(({ client, call, invoked, answered, answer, failed, reason }) => {
    const { verb, now: _, ...rest } = call
    const outcome = failed ?? (answer === undefined ? 'unknown' : short(answer))
    return `${ms(invoked)} to ${ms(answered)}  ${client.padEnd(4)} ${verb} ${short(rest)} -> ${outcome}${reason === undefined ? '' : ` (${reason})`}`
  })
  const stood = holds
    .filter(({ from, to }) => to >= first && from <= Math.max(...entries.map(({ deadline }) => deadline)))
    .map(({ from, to, what }) => `${ms(from)} to ${ms(to)}  the ${what} stood still`)
  const title = decided ? 'no order of these calls explains their answers:' : 'the search was given up; these calls:'
  return [title, ...lines, ...stood].join('\n')
}
