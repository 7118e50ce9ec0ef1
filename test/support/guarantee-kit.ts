// What the files of test/guarantees share: managers over a store that can be stopped, and every interleaving of two calls.
import assert from 'node:assert/strict'
import { SessionError, type SessionManager, type SessionOptions, type Store, type Visit } from 'coatcheck'
import { openVisit } from 'coatcheck/custom-server'
import { barrierManagers } from './barrier-managers.ts'
import { onlyHost } from './only-host.ts'

export type Data = Record<string, unknown>
export type Options = Partial<SessionOptions<Data, 'bigint', Data>>

// A store may outlive a test file: no two tests share a user.
let lastUser = BigInt(Date.now()) * 1_000_000n + BigInt(Math.floor(Math.random() * 1000)) * 1000n
export const newUser = () => {
  lastUser += 1n
  return lastUser
}

export const BOUNDARY_IDS = [
  0n,
  1n,
  2n ** 53n - 1n,
  2n ** 53n + 1n,
  2n ** 63n - 1n,
  2n ** 63n,
  2n ** 64n - 2n,
  2n ** 64n - 1n,
] as const

export const times = (count: number) => Array.from({ length: count }, (_, index) => index)
export const isCode = (code: string) => (error: unknown) => error instanceof SessionError && error.code === code

export const isKey = (value: unknown): value is string => typeof value === 'string' && /^[A-Za-z0-9_-]{46}$/.test(value)

const VISITS: Record<string, (visit: Visit<Data, 'bigint', Data>) => Promise<unknown>> = {
  get: visit => visit.get(),
  requireUser: visit => visit.requireUser(),
  take: visit => visit.take('flash'),
  regenerate: visit => visit.regenerate(),
  rotate: visit => visit.regenerate({ grace: '1m' }),
  csrfToken: visit => visit.csrfToken(),
  checkCsrf: visit => visit.checkCsrf('x'),
  logOut: visit => visit.logOut(),
}

/** One visit for each thing that a request may do, all with this Cookie header. */
export const visitsOf = (cookie: string | undefined, but: readonly string[] = []) =>
  Object.entries(VISITS)
    .filter(([name]) => !but.includes(name))
    .map(([, run]) => async (sessions: SessionManager<Data>) => {
      const visit = openVisit(sessions, { method: 'GET', cookie, secure: true, header: onlyHost })
      const result = await run(visit).catch((error: unknown) => error)
      return { result, headers: visit.finish().headers }
    })

/** What is asked of the database itself. */
export interface Backend {
  /** All that it holds, as text. */
  dump?(): Promise<string>
  /** Lets each command that reads fail; answers what undoes it. */
  outage?(): Promise<() => Promise<unknown>>
  /** How many commands have read sessions so far, as the server counts; `null` where nothing counts. */
  commands?(): Promise<number | null>
}

/** What each guarantee is tested with. `open` is called once for each test and may answer the same store. */
export function guaranteeKit(open: () => Store | Promise<Store>, backend: Backend = {}) {
  async function setUp(options: Options = {}) {
    // A test machine may stand still for a second.
    return {
      ...barrierManagers(await open(), { storeTimeout: '30s', ...options }),
      user: { id: newUser(), name: 'ada' },
    }
  }
  type SetUp = Awaited<ReturnType<typeof setUp>>

  /**
   * Stops `begin` before and after each of its store calls in turn, runs `between` to its end, lets `begin` go on, and
   * hands its outcome to `check`: every interleaving of one call with all of another.
   */
  async function atEveryPoint<C, R>(
    options: Options,
    prepare: (at: SetUp) => Promise<C>,
    begin: (at: SetUp, context: C) => Promise<R>,
    between: (at: SetUp, context: C) => Promise<unknown>,
    check: (at: SetUp, context: C, outcome: PromiseSettledResult<R>, where: string) => Promise<void>,
  ): Promise<void> {
    const probe = await setUp(options)
    const probed = await prepare(probe)
    probe.store.reset()
    await begin(probe, probed)
    const verbs = probe.store.calls.map(({ verb }) => verb)
    assert.notEqual(verbs.length, 0)
    for (const [index, verb] of verbs.entries()) {
      for (const when of ['before', 'after'] as const) {
        const at = await setUp(options)
        const context = await prepare(at)
        for (const _ of verbs.slice(0, index)) at.store.next('any', proceed => proceed())
        const pause = at.store.pause('any', when)
        const running = begin(at, context)
        running.catch(() => {})
        await pause.reached
        await between(at, context)
        pause.resume()
        const [outcome] = await Promise.allSettled([running])
        await check(at, context, outcome!, `${when} ${verb} (call ${index + 1} of ${verbs.length})`)
      }
    }
  }

  return { setUp, atEveryPoint, backend }
}

export type GuaranteeKit = ReturnType<typeof guaranteeKit>
export type SetUp = Awaited<ReturnType<GuaranteeKit['setUp']>>
