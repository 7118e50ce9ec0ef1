import { SessionError } from '../contract/errors.ts'
import type { AnyContext, Context } from '../manager/context.ts'
import { contextOf } from '../manager/context-of.ts'
import { type AnySession, recordOf } from '../session/session.ts'
import type { UserIds } from '../session/user-id.ts'
import type { DeviceAnswer, DeviceCall, Devices, VisitDevice } from '../visits/devices.ts'
import type { VisitRequest } from '../visits/visit.ts'
import { busy, challengeHeader } from './answers.ts'
import { type Binding, CHALLENGE_LIFE, deviceIn, offerChallenge, valueIn } from './binding.ts'
import { endStolen } from './end.ts'
import type { Setup } from './options.ts'
import { Rate } from './rate.ts'
import { refresh } from './refresh.ts'
import { offerOf, register } from './register.ts'
import { type DeviceLook, DeviceOfVisit, type Looking } from './visit-device.ts'

/** How long after the registration a request may come without the value, in ms: it was on its way already. */
const SETTLING = 10_000

const UNBOUND: DeviceLook = Object.freeze({ state: 'unbound', challenge: null, isExpired: false })
const BOUND: DeviceLook = Object.freeze({ state: 'bound', challenge: null, isExpired: false })
const REQUIRED: DeviceLook = Object.freeze({ state: 'required', challenge: null, isExpired: false })
const STOLEN: DeviceLook = Object.freeze({ state: 'stolen', challenge: null, isExpired: false })

/** What the visits objects ask about devices. */
export class EdgeDevices implements Devices, Looking {
  readonly #setup: Setup
  readonly #rate: Rate

  constructor(setup: Setup) {
    this.#setup = setup
    this.#rate = new Rate(setup.maxProofs)
  }

  visit<D extends object, I extends UserIds>(context: Context<D, I>, request: VisitRequest): VisitDevice<D, I> {
    return new DeviceOfVisit(this, context, request)
  }

  get cookieName(): string {
    return this.#setup.cookie.name
  }

  get clear(): string {
    return this.#setup.cookie.clear()
  }

  hasCookie(header: VisitRequest['cookie']): boolean {
    return this.#setup.cookie.candidates(header).length > 0
  }

  requires(session: AnySession): boolean {
    return this.#setup.require(session)
  }

  look(session: AnySession, header: VisitRequest['cookie'], now: number): DeviceLook {
    const device = deviceIn(recordOf(session)!)
    if (device === 'broken') return { state: 'unproved', challenge: null, isExpired: false }
    if (device !== null && !('offer' in device)) return this.#lookAt(device, session, header, now)
    // As long as it may still be bound, it may also go on unbound.
    const isOver = now >= session.createdAt + CHALLENGE_LIFE
    return isOver && this.requires(session) ? REQUIRED : UNBOUND
  }

  offer(session: AnySession, now: number): string | null {
    const salt = offerOf({ record: recordOf(session)! }, now)
    return salt === null ? null : `${this.#setup.offered};challenge="${offerChallenge(session.secret, salt)}"`
  }

  async end(context: AnyContext, session: AnySession): Promise<void> {
    await endStolen(context, recordOf(session)!, context.deadline())
  }

  answersAt(path: string): boolean {
    return path === this.#setup.registerPath || path === this.#setup.refreshPath
  }

  async answer(sessions: object, call: DeviceCall): Promise<DeviceAnswer> {
    // A cookie that cannot be trusted is no logout, and too many proofs are none either.
    if (call.isDoubtful || (call.proof !== null && !this.#rate.take())) return busy()
    const verb = call.path === this.#setup.registerPath ? register : refresh
    try {
      return await verb(contextOf(sessions), this.#setup, call)
    } catch (error) {
      if (error instanceof SessionError && error.status === 503) return busy()
      throw error
    }
  }

  #lookAt(binding: Binding, session: AnySession, header: VisitRequest['cookie'], now: number): DeviceLook {
    // Several values may come from a sibling host that plants cookies, where the name has no prefix.
    const candidates = this.#setup.cookie.candidates(header).slice(0, 4)
    const values = candidates.map(candidate => valueIn(binding, candidate))
    if (values.some(value => value !== null && now < value.end)) return BOUND
    const isExpired = values.some(value => value !== null)
    if (!isExpired && now < binding.boundAt + SETTLING) return BOUND
    if (!isExpired && candidates.length === 1) return STOLEN
    const challenge = now < binding.challenge.end ? challengeHeader(session.secret, binding) : null
    return { state: 'unproved', challenge, isExpired }
  }
}
