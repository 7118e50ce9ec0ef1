// What a request proves of its session's device, what is written down of it, and what is told.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { AnySession } from '../session/session.ts'
import { IS_DEBUG, noSession } from '../text/debug.ts'
import { MOST_VALUES } from '../visits/choose.ts'
import { type Binding, bindingIn, isMade, isOpen, packed, valueFor } from './binding.ts'
import type { Setup } from './options.ts'

/** A request of node:http, or of the Fetch API. */
export type Asked = Pick<IncomingMessage, 'method' | 'headers'> | Pick<Request, 'method' | 'headers' | 'url'>

export const headerOf = ({ headers }: Asked, name: string): string | null | undefined =>
  typeof headers.get === 'function'
    ? (headers as Headers).get(name)
    : ((headers as IncomingHttpHeaders)[name] as string | undefined)

/** HTTP/2 has a pseudo-header in place of `Host` (RFC 9113, section 8.3.1), a `Request` its URL. */
export const hostOf = (request: Asked): string | null | undefined =>
  headerOf(request, 'host') ??
  (typeof request.headers.get === 'function' ? new URL((request as Request).url).host : headerOf(request, ':authority'))

/**
 * Whether a request proves the device of its session. `unbound`: there is nothing to prove yet; `bound`: it came with a good
 * bound value; `unproved`: it did not; `required`: the session is bound to no device, and has to be.
 */
export type DeviceState = 'unbound' | 'bound' | 'unproved' | 'required'

/** The state of a request's session. `late`: unbound, and its browser has the value of another session in place of its first one. */
export async function look(setup: Setup, session: AnySession, request: Asked): Promise<DeviceState | 'late'> {
  const now = setup.now()
  const binding = bindingIn(session)
  // As long as it may still be bound, it may also go on unbound.
  const isRequired = !isOpen(binding ?? { at: session.createdAt }, now) && setup.requires(session)
  const unbound = isRequired ? 'required' : 'unbound'
  if (!binding?.device) return unbound
  // Several values may come from a sibling host that plants cookies, if the name has no prefix.
  const values = setup.cookie.candidates(headerOf(request, 'cookie')).slice(0, MOST_VALUES)
  const hasValue = (device: string, life: number) =>
    values.some(value => isMade(value, time => valueFor(session, binding, device, time), life, now))
  if (hasValue(binding.device, setup.lifetime)) {
    const held = (before: Binding | null) => (before?.device && !before.isHeld ? { ...before, isHeld: true } : before)
    // From now on each request needs a value. If the store cannot write, it has told so, and the next request tries again.
    if (!binding.isHeld) await write(setup, session, held).catch(() => {})
    return 'bound'
  }
  // The first value is for requests that were under way at the registration.
  const hasFirst = hasValue('', binding.isHeld ? setup.lifetime : Number.POSITIVE_INFINITY)
  if (binding.isHeld) return hasFirst ? 'bound' : 'unproved'
  // If the answer to the registration was lost, the browser has no other value than the first one.
  if (values.length === 0) return 'unproved'
  return hasFirst || isRequired ? unbound : 'late'
}

type Change = (before: Binding | null) => Binding | null

/** Writes what `change` makes of the current binding, unless that is the same, and answers it. `null`: the session has gone. */
export async function write({ sessions }: Setup, session: AnySession, change: Change): Promise<Binding | null> {
  const nothing = new Error('nothing is written')
  let binding: Binding | null = null
  const edit = (draft: object) => {
    const before = bindingIn({ data: draft, createdAt: session.createdAt })
    binding = change(before)
    if (binding === null || binding === before) throw nothing
    Object.assign(draft, packed(binding))
  }
  const isUnchanged = (error: unknown) => error === nothing || Promise.reject(error)
  return (await sessions.update(session, edit).catch(isUnchanged)) ? binding : null
}

export const tell = ({ sessions }: Setup, type: 'device-bound' | 'device-theft', { key, user }: AnySession): void =>
  sessions.options.onEvent({ type, key, userId: user?.id ?? null })

/** A request came without the proof that its session needs. */
export function tellRefused({ sessions }: Setup, { key, user }: AnySession, request: Asked): void {
  if (IS_DEBUG) noSession('refused by its device', key)
  // Anyone can write them, and events are logged.
  const told = (written: string | null | undefined) => written?.slice(0, 200) || null
  const [origin, host] = [told(headerOf(request, 'origin')), told(hostOf(request))]
  const event = { key, userId: user?.id ?? null, method: told(request.method) ?? '', origin, host }
  sessions.options.onEvent({ type: 'request-refused', reason: 'device', ...event })
}

/**
 * Another key has signed: the cookies of this session are in other hands, and so may be the remember token of its device.
 * The session ends last: if the store fails before, a repeated request shows the theft again.
 */
export async function endStolen(setup: Setup, session: AnySession): Promise<void> {
  const { key, user } = session
  if (setup.onTheft === 'invalidate-user') await setup.sessions.invalidateUser(user!.id, { except: session })
  // Parallel requests with one stolen cookie are one theft.
  if (await setup.sessions.revoke(user!.id, key)) tell(setup, 'device-theft', session)
}
