import { type ChildProcess, fork } from 'node:child_process'
import type { Store } from 'coatcheck'
import type { Contestant } from './contestant.ts'
import type { Part } from './race-worker.ts'
import { NOW, newKey, record } from './records.ts'

export interface Race {
  readonly contestant: Contestant
  readonly contestants: Contestants
  readonly rounds: number
  /** The password version that the logout everywhere demands; without it, only what existed before has to be dead. */
  readonly passwordVersion?: number
  /** A store of this process, for preparations. */
  readonly store: Store
  /** How many live sessions the user has that must not be; `data` narrows them. */
  survivors(user: string, data: string | null): Promise<number>
  /** Ends the race early: for variants that are known to be wrong. */
  readonly stopAtFirst?: boolean
}

const PROCESSES = 3
const LINEAGES = 21
const LOGINS = 42

export interface Contestants {
  /** Asks each process; the function gets its number. */
  ask(message: (process: number) => object): Promise<unknown[]>
  stop(): void
}

/** The processes of a race, which may run one after another. */
export function startContestants(worker: string): Contestants {
  const children = Array.from({ length: PROCESSES }, () => fork(worker, { stdio: 'inherit' }))
  return {
    ask: message => Promise.all(children.map((child, number) => ask(child, message(number)))),
    stop() {
      for (const child of children) child.disconnect()
    },
  }
}

/** Rounds of 64 calls in parallel on several processes: renewals and logins against one logout everywhere. */
export async function race(options: Race): Promise<{ survivors: number; errors: string[]; rounds: number }> {
  const { contestant, contestants, rounds, passwordVersion, store } = options
  let survivors = 0
  let round = 0
  const errors: string[] = []
  await contestants.ask(() => ({ open: contestant }))
  for (; round < rounds && !(options.stopAtFirst && survivors > 0); round++) {
    const user = String(1_000_000 + Math.floor(Math.random() * 1e12))
    const lineages = await Promise.all(
      Array.from({ length: LINEAGES }, async () => {
        const key = newKey()
        await store.create(record({ key, userId: user, passwordVersion: 1, data: '"old"' }), { now: NOW })
        return key
      }),
    )
    const answers = await contestants.ask(number => {
      const play: Part = {
        user,
        lineages: lineages.filter((_, place) => place % PROCESSES === number),
        logins: LOGINS / PROCESSES,
        ...(number === round % PROCESSES ? { logOutAfter: Math.random() * 12 } : {}),
        ...(passwordVersion === undefined ? {} : { passwordVersion }),
      }
      return { play }
    })
    for (const answer of answers as { errors: string[] }[]) errors.push(...answer.errors)
    survivors += await options.survivors(user, passwordVersion === undefined ? '"old"' : null)
  }
  return { survivors, errors, rounds: round }
}

function ask(child: ChildProcess, message: object): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null) => reject(new Error(`a process of the race ended with code ${code}`))
    child.once('exit', ended)
    child.once('message', answer => {
      child.removeListener('exit', ended)
      resolve(answer)
    })
    child.send(message)
  })
}
