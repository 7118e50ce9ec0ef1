// The binding of a session to its device, in the session's data under keys of our own. It helps no reader of the store: the
// key is public, values are hashed, and a challenge is derived from a salt and the session ID. So each
// node can repeat the outstanding one without a write.
import { hashOf, hmac, newSalt, newSecret } from '../session/id.ts'
import type { SessionInfo } from '../session/session.ts'
import { isSame } from './proof.ts'

/** How long a challenge is good from when it can first be answered, and how long an offer is open, in ms. */
export const CHALLENGE_LIFE = 300_000
/** How long a value that has ended is still known, in ms. */
const LATE = 300_000
/** Several values are good at once, each until its own end: a response may be lost, and the browser asks again. */
const MAX_VALUES = 8

/** The session may still be bound. The salt is random: only who gets the response of the login can take the offer. */
export interface Offer {
  readonly offer: string
  /** When the session began here, epoch ms: an imported one is older. */
  readonly at: number
}

/** A value of the bound cookie. */
interface Value {
  readonly hash: string
  /** When it ends, epoch ms. */
  readonly end: number
}

export interface Binding {
  /** The browser's name for this session: not its key, which changes with each new ID. */
  readonly id: string
  /** `createdAt` of the session: in the data of a later login that carries old data over, this is another one. */
  readonly of: number
  /** The public key of the device: both coordinates in base64url. */
  readonly device: string
  /** When the device was registered, and when it last proved itself, epoch ms. */
  readonly boundAt: number
  readonly provedAt: number
  readonly challenge: { readonly salt: string; readonly end: number }
  /** The newest first. */
  readonly values: readonly Value[]
}

/**
 * Each write has a key with the next number, and the highest one counts. An application that writes back an old copy of
 * the data, as in `update(session, { ...session.data, n: 1 })`, sets an old key again, and the binding stays.
 */
const KEY = /^~device\.(\d{1,9})$/

/** Of a session, or of the draft that its update edits. */
export type Kept = Pick<SessionInfo<object>, 'data' | 'createdAt'>

function latest(data: object): { number: number; kept: Offer | Binding | null } {
  let found: ReturnType<typeof latest> = { number: -1, kept: null }
  for (const [name, kept] of Object.entries(data)) {
    const number = Number(KEY.exec(name)?.[1] ?? -1)
    if (number > found.number) found = { number, kept }
  }
  return found
}

/** The keys of an application's data that are ours, or those that are not. */
export const keysOf = (data: object, whose: 'device' | 'application'): object =>
  Object.fromEntries(Object.entries(data).filter(([name]) => isKey(name) === (whose === 'device')))

/** Keys to set in the data of a session that begins. */
export const newOffer = (now: number): object => ({ '~device.0': { offer: newSalt(), at: now } satisfies Offer })

/** Whether this key of the data is ours. */
export const isKey = (name: string): boolean => KEY.test(name)

/** Removes our keys from a draft, and answers them: the application's function does not meet them. */
export function takeOut(draft: object): object {
  const kept = keysOf(draft, 'device')
  for (const name of Object.keys(kept)) delete (draft as Record<string, unknown>)[name]
  return kept
}

export function put(draft: Record<string, unknown>, binding: Binding): void {
  const { number } = latest(draft)
  takeOut(draft)
  draft[`~device.${number + 1}`] = binding
}

/** The offer or the binding in a session's data; `null` for neither. */
export function deviceIn({ data, createdAt }: Kept): Offer | Binding | null {
  const { kept } = latest(data)
  return kept !== null && 'of' in kept && kept.of !== createdAt ? null : kept
}

export function bindingIn(session: Kept): Binding | null {
  const device = deviceIn(session)
  return device === null || 'offer' in device ? null : device
}

/** The salt of the offer that a session still has. */
export function offerIn(session: Kept, now: number): string | null {
  const device = deviceIn(session)
  return device !== null && 'offer' in device && now < device.at + CHALLENGE_LIFE ? device.offer : null
}

export const offerChallenge = (id: string, salt: string): string => hmac(id, `device\0offer\0${salt}`)
export const refreshChallenge = (id: string, salt: string): string => hmac(id, `device\0refresh\0${salt}`)

/** Whether a proof answers the challenge of this salt, for the ID that the request came with or the one that it leads to. */
export const answers = (jti: string, ids: readonly string[], salt: string, of: typeof offerChallenge): boolean =>
  salt !== '' && ids.some(id => isSame(jti, of(id, salt)))

export function newBinding(
  device: string,
  createdAt: number,
  now: number,
  lifetime: number,
): { binding: Binding; value: string } {
  const start = { id: newSalt(), of: createdAt, device, boundAt: now, provedAt: now }
  return proved({ ...start, challenge: { salt: '', end: 0 }, values: [] }, now, lifetime)
}

/** The binding after a proof: with a new value, which only the response has, and a new challenge. */
export function proved(before: Binding, now: number, lifetime: number): { binding: Binding; value: string } {
  const value = newSecret()
  const end = now + lifetime
  // Those that ended a while ago as well, and the last one in any case: a late request must not pass for a thief's.
  const isKnown = (each: Value, at: number) => at === 0 || each.end > now - LATE
  const kept = before.values.filter(isKnown).slice(0, MAX_VALUES - 1)
  const binding = {
    ...before,
    provedAt: now,
    // Sent ahead: it can be answered when the value has to be renewed.
    challenge: { salt: newSalt(), end: end + CHALLENGE_LIFE },
    values: [{ hash: hashOf(value), end }, ...kept],
  }
  return { binding, value }
}

/** Whether one more value would take the place of one that is still good. */
export const isFull = ({ values }: Binding, now: number): boolean =>
  values.length >= MAX_VALUES && values.every(({ end }) => end > now)

/** The value of this binding that a cookie holds; `null`: it never was one, or it is long over. */
export function valueIn({ values }: Binding, presented: string): Value | null {
  const hash = hashOf(presented)
  return values.find(value => isSame(value.hash, hash)) ?? null
}

/** A challenge that can be answered at once. */
export const newChallenge = (now: number): Binding['challenge'] => ({ salt: newSalt(), end: now + CHALLENGE_LIFE })
