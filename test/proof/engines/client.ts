// Runs a schedule against a store and writes down what it did and heard.
import { SessionStoreError, type Store } from 'coatcheck'
import { randomNumbers } from '../../../src/custom-store/random.ts'
import { type Entry, instant } from './history.ts'
import type { Call } from './model.ts'
import { type Cell, Client, cellOf } from './schedule.ts'

/** One round: some cells, each open for a while, one after the other. */
export interface Round {
  readonly seed: number
  /** When it begins, in microseconds of the common clock. */
  readonly begin: number
  readonly cells: number
  /** How long after a cell the next one opens, and how long one is open, in ms. */
  readonly step: number
  readonly open: number
  /** Clients of this process. */
  readonly clients: number
  /** Calls of one client to one cell at most. */
  readonly most: number
  /** The longest a client waits between two calls, in ms. */
  readonly pause: number
  /** How long a call may take, in ms; some take three times as long. */
  readonly timeout: number
}

export const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T

/** Makes one call of the contract. */
export function make(store: Store, call: Call, deadline: number): unknown {
  const at = { now: call.now, deadline }
  switch (call.verb) {
    case 'create':
      return store.create(call.record, at)
    case 'read':
      return store.read(call.key, at)
    case 'update':
      return store.update(call.key, call.version, call.change, at)
    case 'touch':
      return store.touch(call.key, call.seenAt, call.expiresAt, at)
    case 'replace':
      return store.replace(call.oldKey, call.oldVersion, call.record, call.options, at)
    case 'delete':
      return store.delete(call.key, at)
    case 'deleteUser':
      return store.deleteUser(call.userId, call.options, at)
    case 'listUser':
      return store.listUser(call.userId, call.kind, at)
  }
}

type Log = (part: Partial<Entry> & { id: string }) => void

/** Makes a call and logs it, as it begins and as it ends. */
export async function perform(
  store: Store,
  call: Call,
  log: Log,
  about: { id: string; client: string; cell: number },
  timeout: number,
) {
  const invoked = instant()
  log({ ...about, call, invoked, deadline: invoked + timeout * 1000 })
  try {
    const answer = plain(await make(store, call, performance.now() + timeout))
    log({ id: about.id, answer, answered: instant() })
    return { answer }
  } catch (error) {
    const failed = error instanceof SessionStoreError ? error.outcome : 'unknown'
    const { cause } = error as { cause?: unknown }
    const reason = `${(error as Error).message}: ${(cause as Error | undefined)?.message ?? ''}`
    log({ id: about.id, failed, answered: instant(), reason })
    return { failed }
  }
}

/** The part of one process in a round: several clients, each of which makes one call after the other. */
export async function play(store: Store, process: string, round: Round, log: Log): Promise<void> {
  const { seed, begin, cells, step, open, clients, most, pause, timeout } = round
  const worlds: Cell[] = Array.from({ length: cells }, (_, number) => cellOf(seed, number))
  const one = async (name: string) => {
    // The clocks of two nodes may differ by some minutes.
    const skew = Math.floor(skews() * 240_000) - 120_000
    const views = worlds.map(cell => new Client(cell, name, store, () => Date.now() + skew))
    const made = worlds.map(() => 0)
    const wait = random(`${seed} ${name}`)
    for (let number = 0; ; number++) {
      const ms = (instant() - begin) / 1000
      if (ms > (cells - 1) * step + open) return
      const choices = worlds.filter(
        cell => ms >= cell.number * step && ms < cell.number * step + open && made[cell.number]! < most,
      )
      const cell = choices[Math.floor(wait() * choices.length)]
      if (cell !== undefined) {
        made[cell.number]! += 1
        const view = views[cell.number]!
        const call = view.call()
        const about = { id: `${name} ${seed} ${number}`, client: name, cell: cell.number }
        const { answer, failed } = await perform(store, call, log, about, wait() < 0.1 ? timeout * 3 : timeout)
        view.heard(call, answer, failed)
      }
      await new Promise(resolve => setTimeout(resolve, wait() * pause))
    }
  }
  const skews = random(`${seed} ${process}`)
  await Promise.all(Array.from({ length: clients }, (_, i) => one(`${process}${i}`)))
}

function random(text: string): () => number {
  let mix = 0
  for (const letter of text) mix = Math.imul(mix, 31) + letter.charCodeAt(0)
  const next = randomNumbers(mix)
  return () => next() / 2 ** 32
}
