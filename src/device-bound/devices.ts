import type { SessionManager } from '../manager/manager.ts'
import type { ManagerOptions } from '../manager/options.ts'
import type { AnySession } from '../session/session.ts'
import type { UserIds } from '../session/users.ts'
import { IS_DEBUG, noSession } from '../text/debug.ts'
import { type Choice, choose } from '../visits/choose.ts'
import { challengeHeader } from './answers.ts'
import { type Asked, headerOf, hostOf } from './asked.ts'
import { CHALLENGE_LIFE, deviceIn, offerChallenge, offerIn, valueIn } from './binding.ts'
import type { Setup } from './options.ts'

/** How long after the registration a request may come without the value, in ms: it was on its way already. */
const SETTLING = 10_000

/**
 * Whether a request proves the device of its session. `unbound`: there is nothing to prove; `bound`: it came with a current
 * bound value; `unproved`: it did not; `required`: the session is bound to no device, and has to be; `stolen`: it came with
 * a value that was never this session's.
 */
export type DeviceState = 'unbound' | 'bound' | 'unproved' | 'required' | 'stolen'

/** The state of a request's session, and the headers that tell the browser. */
export interface Look {
  readonly state: DeviceState
  /** `Secure-Session-Challenge`, if the browser has to prove itself and a challenge is outstanding. */
  readonly challenge?: string | null
  /** Whether the browser holds a value that has expired: it refreshes as soon as it has none. */
  readonly isExpired?: boolean
}

// biome-ignore lint/suspicious/noExplicitAny: of whichever data and user IDs
export type AnyManager = SessionManager<any, any, any>

/** The devices of one manager's sessions. */
export class Devices {
  readonly sessions: AnyManager
  readonly setup: Setup
  readonly #options: ManagerOptions<object, UserIds>

  constructor(sessions: AnyManager, setup: Setup) {
    this.sessions = sessions
    this.setup = setup
    this.#options = sessions.options
  }

  now(): number {
    return this.#options.now()
  }

  /** The session that the cookies of a request lead to. */
  chosen(request: Asked): Promise<Choice<AnySession>> {
    return choose<AnySession>(this.sessions, this.setup.sessionCookie.candidates(headerOf(request, 'cookie')))
  }

  look(session: AnySession, request: Asked): Look {
    const now = this.now()
    const device = deviceIn(session)
    if (device === null || 'offer' in device) {
      // As long as it may still be bound, it may also go on unbound.
      const isOver = now >= (device?.at ?? session.createdAt) + CHALLENGE_LIFE
      return { state: isOver && this.setup.requires(session) ? 'required' : 'unbound' }
    }
    const { cookie } = this.setup
    // Several values may come from a sibling host that plants cookies, if the name has no prefix.
    const candidates = cookie.candidates(headerOf(request, 'cookie')).slice(0, 4)
    const values = candidates.map(candidate => valueIn(device, candidate))
    if (values.some(value => value !== null && now < value.end)) return { state: 'bound' }
    const isExpired = values.some(value => value !== null)
    if (!isExpired && now < device.boundAt + SETTLING) return { state: 'bound' }
    if (!isExpired && candidates.length === 1 && cookie.name.startsWith('__Host-')) return { state: 'stolen' }
    const challenge = now < device.challenge.end ? challengeHeader(session.secret, device) : null
    return { state: 'unproved', challenge, isExpired }
  }

  /** `Secure-Session-Registration`, if this session may still be bound. */
  offer(session: AnySession): string | null {
    const salt = offerIn(session, this.now())
    return salt === null ? null : `${this.setup.offered};challenge="${offerChallenge(session.secret, salt)}"`
  }

  tell(type: 'device-bound' | 'device-theft', { key, user }: AnySession): void {
    this.#options.onEvent({ type, key, userId: user?.id ?? null })
  }

  /** A request came without the proof that its session needs. */
  tellRefused({ key, user }: AnySession, request: Asked): void {
    // Anyone can write them, and events are logged.
    const told = (written: string | null | undefined) => written?.slice(0, 200) || null
    if (IS_DEBUG) noSession('refused by its device', key)
    this.#options.onEvent({
      type: 'request-refused',
      reason: 'device',
      key,
      userId: user?.id ?? null,
      method: told(request.method) ?? '',
      origin: told(headerOf(request, 'origin')),
      host: told(hostOf(request)),
    })
  }

  /**
   * A wrong proof came: the cookies of this session are in other hands, and so may be the remember token of its device. The
   * session ends last: if the store fails before, a repeated request shows the theft again.
   */
  async endStolen(session: AnySession): Promise<void> {
    const { key, user } = session
    if (user === null) return
    if (this.setup.onTheft === 'invalidate-user') await this.sessions.invalidateUser(user.id, { except: session })
    // Parallel requests with one stolen cookie are one theft.
    if (await this.sessions.revoke(user.id, key)) this.tell('device-theft', session)
  }
}
