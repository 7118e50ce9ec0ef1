import { type ChildProcess, fork } from 'node:child_process'
import type { Store } from 'coatcheck'
import type { Contestant } from './contestant.ts'
import type { Part } from './race-worker.ts'
import { NOW, newKey, record } from './records.ts'

export interface Race {
  readonly contestant: Contestant
  readonly worker: string
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

/** Rounds of 64 calls in parallel on several processes: renewals and logins against one logout everywhere. */
export async function race(options: Race): Promise<{ survivors: number; errors: string[]; rounds: number }> {
  const { contestant, worker, rounds, passwordVersion, store } = options
  const children = Array.from({ length: PROCESSES }, () => fork(worker, { stdio: 'inherit' }))
  let survivors = 0
  let round = 0
  const errors: string[] = []
  try {
    await Promise.all(children.map(child => ask(child, { open: contestant })))
    for (; round < rounds && !(options.stopAtFirst && survivors > 0); round++) {
      const user = String(1_000_000 + Math.floor(Math.random() * 1e12))
      const lineages = await Promise.all(
        Array.from({ length: LINEAGES }, async () => {
          const key = newKey()
          await store.create(record({ key, userId: user, passwordVersion: 1, data: '"old"' }), {}, { now: NOW })
          return key
        }),
      )
      const answers = await Promise.all(
        children.map((child, i) => {
          const part: Part = {
            user,
            lineages: lineages.filter((_, place) => place % PROCESSES === i),
            logins: LOGINS / PROCESSES,
            ...(i === round % PROCESSES ? { logOutAfter: Math.random() * 12 } : {}),
            ...(passwordVersion === undefined ? {} : { passwordVersion }),
          }
          return ask(child, { play: part }) as Promise<{ errors: string[] }>
        }),
      )
      for (const answer of answers) errors.push(...answer.errors)
      survivors += await options.survivors(user, passwordVersion === undefined ? '"old"' : null)
    }
  } finally {
    for (const child of children) child.disconnect()
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
