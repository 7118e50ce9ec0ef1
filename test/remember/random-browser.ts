// A browser with a remember token at two nodes whose clocks are four minutes apart: requests in parallel at either node, a
// quarter of the answers lost, the others in any order. A thief may have copied what it had at one moment. Each history follows
// from its seed.
import { SessionManager } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { MemoryStore } from 'coatcheck/stores/memory'
import { randomNumbers } from '../../src/custom-store/random.ts'
import { onlyHost } from '../support/only-host.ts'
import { MINUTE, SECOND, testClock } from '../support/test-clock.ts'

const WAITS = [SECOND, MINUTE, 6 * MINUTE, 11 * MINUTE, 13 * MINUTE, 30 * MINUTE - SECOND, 31 * MINUTE, 180 * MINUTE]

type Jar = Map<string, string>
const take = (jar: Jar, cookies: readonly { name: string; value: string }[]) => {
  for (const { name, value } of cookies)
    if (value === '') jar.delete(name)
    else jar.set(name, value)
}

/** What became of one browser: how often it was nobody though it has a token, alarms, and the most sessions at once. */
export interface History {
  readonly nobody: number
  readonly thefts: number
  readonly most: number
  readonly requests: number
  /** Whether browser and thief both still have what works at the end. */
  readonly isShared: boolean
}

/** Runs one history: an honest browser, or one beside a thief. */
export async function browse(seed: number, hasThief: boolean): Promise<History> {
  const numbers = randomNumbers(seed)
  const chance = () => numbers() / 2 ** 32
  const pick = <T>(items: readonly T[]): T => items[Math.floor(chance() * items.length)]!
  const clock = testClock()
  const store = new MemoryStore()
  const idleTimeout = pick(['12m', '30m'] as const)
  let thefts = 0
  const nodes = [clock, clock.skewed(pick([-4, 4]) * MINUTE)].map(
    now =>
      new SessionManager({
        ...{ store, now, idleTimeout, rememberFor: '30d', userIds: 'string', sweepInterval: false },
        onEvent: ({ type }) => {
          if (type === 'remember-theft') thefts += 1
        },
      }),
  )
  const send = async (jar: Jar, isLogin = false) => {
    const cookie = [...jar].map(pair => pair.join('=')).join('; ')
    const visit = openVisit(pick(nodes), { method: 'POST', secure: true, header: onlyHost, cookie })
    if (chance() < 0.3) await new Promise(resolve => setImmediate(resolve))
    if (isLogin) await visit.logIn({ user: { id: 'ada', name: 'ada' }, remember: true })
    const session = await visit.get()
    return { session, cookies: visit.finish().cookies }
  }
  const browser: Jar = new Map()
  const thief: Jar = new Map()
  take(browser, (await send(browser, true)).cookies)
  let [nobody, most, requests] = [0, 0, 0]
  const stolenAt = hasThief ? Math.floor(chance() * 10) : -1
  for (let step = 0; step < 25 && thefts === 0; step += 1) {
    clock.advance(pick(WAITS))
    if (step === stolenAt) for (const [name, value] of browser) thief.set(name, value)
    const jar = thief.size > 0 && chance() < 0.5 ? thief : browser
    const sent = new Map(jar)
    const answers = await Promise.all(Array.from({ length: 1 + Math.floor(chance() * 3) }, () => send(sent)))
    while (answers.length > 0) {
      const { session, cookies } = answers.splice(Math.floor(chance() * answers.length), 1)[0]!
      requests += 1
      if (session === null) nobody += 1
      if (chance() < 0.75) take(jar, cookies)
    }
    most = Math.max(most, (await nodes[0]!.list('ada')).length)
    if (chance() < 0.2) await nodes[0]!.sweep()
  }
  // Each comes back twice much later, with what it has: the token alone.
  for (let round = 0; hasThief && thefts === 0 && round < 3; round += 1)
    for (const jar of [browser, thief]) {
      clock.advance(180 * MINUTE)
      for (let again = 0; again < 2; again += 1) take(jar, (await send(jar)).cookies)
    }
  const works = async (jar: Jar) => (await send(jar)).session !== null
  return { nobody, thefts, most, requests, isShared: hasThief && (await works(browser)) && (await works(thief)) }
}
