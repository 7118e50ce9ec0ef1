// A browser that binds its session to its device, or proves it, beside all that may happen to that session meanwhile. What
// must hold: an end and another login win, no other key is bound, and the browser is not locked out of a session that lives.
import assert from 'node:assert/strict'
import { type DevicePair, newDevice, refreshProof, registrationProof } from '../../support/device-key.ts'
import { type AnyVisit, Jar, steps } from '../../support/parallel.ts'
import type { Scene } from './search.ts'
import type { Manager, World } from './world.ts'

const MINUTE = 60_000
const ORIGIN = 'https://shop.example'
const ada = { id: 42n, name: 'ada' }
const max = { id: 43n, name: 'max' }
/** Made once: what is drawn in a run has to be the same in each. */
const DEVICES: readonly DevicePair[] = [newDevice(), newDevice()]

const VERBS = ['a page view', 'a save', 'a rotation', 'a new ID', 'a login', 'a logout'] as const
const OTHERS = ['logout everywhere', "a thief's page view"] as const
const PROOFS = ['a registration', 'a registration of another key', 'a refresh'] as const
export type DeviceRequest = (typeof VERBS)[number] | (typeof OTHERS)[number] | (typeof PROOFS)[number]

export interface DeviceScene {
  /** Whether the session is bound already, or may still be. */
  readonly before: 'a bound session' | 'a session that may be bound'
  readonly requests: readonly DeviceRequest[]
  /** Which process answers each: 0 or 1. @default all the same */
  readonly processes?: readonly number[]
  readonly faults?: number
}

/** Pairs of which one is about the device. */
export const DEVICE_PAIRS: readonly Pick<DeviceScene, 'before' | 'requests'>[] = (() => {
  const before = 'a session that may be bound'
  const registering: readonly DeviceRequest[] = [...VERBS, 'logout everywhere', 'a registration of another key']
  const bound: readonly DeviceRequest[] = [...VERBS, ...OTHERS, 'a refresh']
  return [
    ...registering.map(each => ({ before, requests: ['a registration', each] }) as const),
    ...bound.map(each => ({ before: 'a bound session', requests: ['a refresh', each] }) as const),
    ...VERBS.map(each => ({ before: 'a bound session', requests: ["a thief's page view", each] }) as const),
  ]
})()

/** The browser: its cookies, what it calls its session, and the challenge that it was given last. */
class Browser {
  readonly jar = new Jar()
  name: string | null = null
  challenge = ''
  /** Of each process. */
  readonly #visits

  constructor(world: World, managers: readonly Manager[]) {
    const { deviceBound, fetchVisits } = world.library
    this.#visits = managers.map(manager => deviceBound(fetchVisits(manager), { lifetime: '5m' }))
  }

  visit(cookie = this.jar.header, node = 0): AnyVisit {
    return this.#visits[node]!.of(new Request(ORIGIN, { method: 'POST', headers: { cookie } }))
  }

  /** What `step` does on a page; the cookies and the challenge of the response are the browser's. */
  async page(step: (visit: AnyVisit) => Promise<unknown>): Promise<unknown> {
    const visit = this.visit()
    const value = await step(visit)
    this.takes(visit.finish().headers)
    return value
  }

  register(device: DevicePair, challenge: string, node = 0): Promise<Response> {
    return this.#post('register', { 'secure-session-response': registrationProof(device, challenge) }, node)
  }

  refresh(node = 0): Promise<Response> {
    const proof = refreshProof(DEVICES[0]!, this.challenge)
    return this.#post('refresh', { 'sec-secure-session-id': this.name!, 'secure-session-response': proof }, node)
  }

  takes(headers: Headers): void {
    this.jar.apply(headers.getSetCookie())
    const offer = /challenge="([^"]+)"/.exec(headers.get('secure-session-registration') ?? '')
    const next = /^"([^"]+)";id="([^"]+)"/.exec(headers.get('secure-session-challenge') ?? '')
    this.challenge = (next ?? offer)?.[1] ?? this.challenge
    this.name = next?.[2] ?? this.name
  }

  /** Whom a page sees, after the browser has proved itself as often as it tries. */
  async sees(): Promise<bigint | null> {
    for (let tries = 0; ; tries += 1) {
      const session = (await this.page(visit => visit.get())) as { user: { id: bigint } | null } | null
      if (session !== null || this.name === null || tries === 4) return session?.user?.id ?? null
      this.takes((await this.refresh()).headers)
    }
  }

  async #post(step: string, headers: Record<string, string>, node: number): Promise<Response> {
    const request = new Request(`${ORIGIN}/device-session/${step}`, {
      method: 'POST',
      headers: { cookie: this.jar.header, ...headers },
    })
    return (await this.#visits[node]!.handled(request))!
  }
}

export function devicesOf({ before, requests, processes, faults = 0 }: DeviceScene): Scene {
  let browser: Browser
  let sessions: Manager
  const details = [processes?.includes(1) ? 'in two processes' : '', faults > 0 ? `${faults} faults` : '']
  return {
    name: [`${before}: ${requests.join(' | ')}`, ...details.filter(Boolean)].join(', '),
    options: { faults, arrivesAtOnce: true },
    async prepare(world) {
      sessions = world.manager()
      browser = new Browser(world, [sessions, world.manager()])
      await browser.page(visit => visit.logIn({ user: ada }))
      if (before === 'a bound session') {
        browser.takes((await browser.register(DEVICES[0]!, browser.challenge)).headers)
        // The first value that comes is written down. Late in its life the browser asks for the next one.
        await browser.page(visit => visit.get())
        world.advance(4 * MINUTE)
      }
      const { jar, challenge } = browser
      world.notes = {
        get jar() {
          return jar.header
        },
      }
      world.canonical(`${jar.header} ${challenge} ${browser.name}`)
      for (const [index, name] of requests.entries()) act(world, browser, sessions, name, processes?.[index] ?? 0)
    },
    judge: world => judge(world, browser, sessions, { before, requests, faults }),
  }
}

function act(world: World, browser: Browser, sessions: Manager, name: DeviceRequest, node: number): void {
  if (name === 'logout everywhere') {
    world.act(name, () => sessions.invalidateUser(ada.id))
  } else if (name === 'a refresh' || name === 'a registration' || name === 'a registration of another key') {
    let response: Response | null = null
    // What it signs is the offer of this session, also where it has the cookie of another one by then.
    const { challenge } = browser
    world.act(
      name,
      async () => {
        const device = DEVICES[name === 'a registration of another key' ? 1 : 0]!
        response = name === 'a refresh' ? await browser.refresh(node) : await browser.register(device, challenge, node)
        return response
      },
      () => {
        const headers = response?.headers ?? new Headers()
        world.canonical([...headers].join())
        // The browser does not keep what came for the other key.
        return () => name === 'a registration of another key' || browser.takes(headers)
      },
    )
  } else {
    const isThief = name === "a thief's page view"
    const cookie = isThief ? `session_id=${browser.jar.cookies.get('session_id')}` : browser.jar.header
    const visit = browser.visit(cookie, node)
    world.act(
      name,
      () => steps[isThief ? 'a page view' : name]!(visit, { ada, max } as never),
      () => {
        const { headers } = visit
        world.canonical([...headers].join())
        return () => isThief || browser.takes(headers)
      },
    )
  }
}

async function judge(
  world: World,
  browser: Browser,
  sessions: Manager,
  { before, requests, faults }: Required<Omit<DeviceScene, 'processes'>>,
): Promise<void> {
  const { actors } = world
  const did = (...names: readonly DeviceRequest[]) => requests.some(name => names.includes(name))
  const acknowledged = (...names: readonly DeviceRequest[]) =>
    actors.filter(({ error }, index) => names.includes(requests[index]!) && error === undefined)
  for (const { name, error } of actors) {
    const { code } = (error ?? {}) as { code?: string }
    assert.ok(error === undefined || (faults > 0 && code === 'ERR_SESSION_STORE'), `${name}: ${code ?? String(error)}`)
  }
  assert.ok(!world.events.some(({ type }) => type === 'device-theft'), 'an alarm, and no wrong proof')

  // What browsers are told: at 400, and at 403 without a challenge, they would forget the session for good.
  const answered = (...names: readonly DeviceRequest[]) => acknowledged(...names).map(({ value }) => value as Response)
  const isOver = did('a logout', 'logout everywhere', 'a login')
  for (const response of answered('a refresh')) {
    const { status, headers } = response
    const isChallenge = status === 403 && headers.has('secure-session-challenge')
    const isLater = status === 503 && (faults > 0 || did('a new ID'))
    assert.ok(status === 200 || isChallenge || isLater, `a refresh is answered ${status}`)
    const body = (await response.clone().json()) as { continue?: boolean }
    if (body.continue === false) assert.ok(isOver, 'the browser is told to forget a session that lives')
  }
  const registered = answered('a registration', 'a registration of another key').filter(({ status }) => status === 200)
  assert.ok(registered.length <= 1, 'one offer binds two keys')

  if (before === 'a bound session' && faults === 0)
    for (const { value } of acknowledged("a thief's page view"))
      assert.equal(value, null, 'a copied session cookie is enough')

  const ends = acknowledged('a logout', 'logout everywhere', 'a login')
  if (ends.length > 0) {
    assert.deepEqual(await sessions.list(ada.id), [], 'the session outlives its end')
    const isIn = acknowledged('a login').length > 0 && !did('a logout')
    const own = await sessions.list(max.id)
    for (const info of own) assert.equal(world.library.deviceOf(info), null, 'a proof for one session binds another')
    const { challenge } = browser
    assert.equal(
      await browser.sees(),
      isIn ? max.id : own.length > 0 ? max.id : null,
      'the browser sees another session',
    )
    if (before === 'a bound session' && !isIn) {
      browser.challenge = challenge
      const told = (await (await browser.refresh()).json()) as { continue?: boolean }
      assert.equal(told.continue, false, 'the browser keeps its key for a session that is over')
    }
    return
  }
  // An end that failed may have been done, and a new ID whose answer was lost never came to the browser.
  if (isOver || actors.some(({ name, error }) => name === 'a new ID' && error !== undefined)) return

  const [session, ...more] = await sessions.list(ada.id)
  assert.ok(session !== undefined && more.length === 0, 'the session is gone, and nothing ended it')
  for (const { value } of acknowledged('a save')) assert.notEqual(value, null, 'a save finds no session')
  if (acknowledged('a save').length > 0) assert.equal(session.data.saved, 1, 'a save is lost')
  const isBound = world.library.deviceOf(session) !== null
  if (before === 'a bound session') assert.ok(isBound, 'the binding is lost')
  if (faults === 0) assert.equal(isBound, before === 'a bound session' || registered.length === 1)
  // The other key has won, and its browser alone goes on.
  if (answered('a registration of another key').some(({ status }) => status === 200)) return
  assert.equal(await browser.sees(), ada.id, 'the browser is locked out')
  if (!isBound) return
  world.advance(11 * MINUTE)
  assert.equal(await browser.sees(), ada.id, 'the browser is locked out when its value has ended')
}
