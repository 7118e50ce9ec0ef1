// One of several processes of a race: opens its own pool and does its part of each round when told to.
import { type Contestant, type Opened, openContestant } from './contestant.ts'
import { NOW, newKey, newWriteId, record } from './records.ts'

export interface Part {
  readonly user: string
  /** Live sessions of the user that are renewed again and again. */
  readonly lineages: readonly string[]
  /** Logins that verified password version 1. */
  readonly logins: number
  /** Logs the user out everywhere after so many ms. */
  readonly logOutAfter?: number
  readonly passwordVersion?: number
}

const RENEWALS = 5
const LOGINS_IN_TURN = 4

let opened: Opened | undefined
let store: Opened['store']

async function renew(user: string, key: string): Promise<void> {
  for (let [old, turn] = [key, 0]; turn < RENEWALS; turn++) {
    const next = record({ key: newKey(), userId: user, passwordVersion: 1, data: '"old"', writeId: newWriteId() })
    const options = { forward: { salt: 'c2FsdA', until: NOW } }
    const outcome = await store.replace(old, 1, next, options, {
      now: NOW,
      deadline: performance.now() + 20_000,
    })
    if (outcome !== 'created') return
    old = next.key
  }
}

async function play({ user, lineages, logins, logOutAfter, passwordVersion }: Part): Promise<string[]> {
  const login = async () => {
    for (let turn = 0; turn < LOGINS_IN_TURN; turn++) await logIn()
  }
  const logIn = () =>
    store.create(record({ userId: user, passwordVersion: 1, data: '"login"' }), {
      now: NOW,
      deadline: performance.now() + 20_000,
    })
  const tasks: Promise<unknown>[] = [
    ...lineages.map(key => renew(user, key)),
    ...Array.from({ length: logins }, () => new Promise(resolve => setTimeout(resolve, Math.random() * 5)).then(login)),
  ]
  if (logOutAfter !== undefined)
    tasks.push(
      new Promise(resolve => setTimeout(resolve, logOutAfter)).then(() =>
        store.deleteUser(
          user,
          {
            minPasswordVersionUntil: NOW + 1e9,
            ...(passwordVersion === undefined ? {} : { minPasswordVersion: passwordVersion }),
          },
          { now: NOW, deadline: performance.now() + 20_000 },
        ),
      ),
    )
  const settled = await Promise.allSettled(tasks)
  return settled
    .filter(({ status }) => status === 'rejected')
    .map(result => String((result as PromiseRejectedResult).reason))
}

process.on('message', async (message: { open: Contestant } | { play: Part }) => {
  if ('open' in message) {
    await opened?.close()
    opened = openContestant(message.open)
    store = opened.store
    process.send?.({ ready: true })
  } else process.send?.({ errors: await play(message.play) })
})
process.on('disconnect', () => process.exit())
