// The binding of a session to a device: one text in the session's data, as long at the login as it will ever be, so that no
// later step fails for want of room. It helps no reader of the store: the key of the device is public, and what browsers get
// is made with the session's secret too.
import { timingSafeEqual } from 'node:crypto'
import { CLOCK_TOLERANCE } from '../contract/store.ts'
import { hashOf, hmac, newSalt } from '../session/id.ts'
import type { AnySession, SessionInfo } from '../session/session.ts'

/** How long an offer is open, in ms: a minute for the slowest browser, plus the tolerance of clocks. */
export const OFFER_LIFE = 60_000 + CLOCK_TOLERANCE

export interface Binding {
  /** Random, and only in the store: values and challenges are made with it. */
  readonly key: string
  /** When the session began here, epoch ms: an imported one is older. */
  readonly at: number
  /** `createdAt` of the session that is bound: in the data of a later login that carries old data over, this is another one. */
  readonly of: number
  /** When the device was registered, epoch ms. */
  readonly boundAt: number
  /** The public key of the device: both coordinates in base64url. `''`: none, the session may still be bound. */
  readonly device: string
  /** Whether a value for this device has come: only then is it known that the answer to its registration arrived. */
  readonly isHeld: boolean
}

/** The key of the data that is ours. */
export const KEY = '~device'
const TEXT = /^([\w-]{16})(\d{13})(\d{13})(\d{13})([01])([\w-]{86})$/
const NO_DEVICE = '-'.repeat(86)

/** What the data keeps. */
export function packed({ key, at, of, boundAt, device, isHeld }: Binding): { [KEY]: string } {
  const times = [at, of, boundAt].map(time => `${time}`.padStart(13, '0')).join('')
  return { [KEY]: `${key}${times}${Number(isHeld)}${device || NO_DEVICE}` }
}

/** The same of a session that begins now and may be bound. */
export const newOffer = (now: number): { [KEY]: string } =>
  packed({ key: newSalt(), at: now, of: 0, boundAt: 0, device: '', isHeld: false })

/** The offer or the binding in the data of a session, or of the draft that its update edits; `null` for neither. */
export function bindingIn({ data, createdAt }: Pick<SessionInfo<object>, 'data' | 'createdAt'>): Binding | null {
  const [, key, ...rest] = TEXT.exec(String((data as Record<string, unknown>)[KEY])) ?? []
  if (key === undefined) return null
  const [at, of, boundAt, isHeld] = rest.map(Number) as [number, number, number, number]
  const device = rest[4] === NO_DEVICE ? '' : rest[4]!
  return device !== '' && of !== createdAt ? null : { key, at, of, boundAt, device, isHeld: isHeld === 1 }
}

export const isOpen = ({ at }: Pick<Binding, 'at'>, now: number): boolean => now < at + OFFER_LIFE

/** What the browser calls this session: not by its key, which changes with each new ID. */
export const nameOf = ({ key }: Binding): string => hashOf(`device\0${key}`).slice(0, 16)

/**
 * A text that nobody else can make, with the time at which it was made. `csrfToken` stands for the session's secret: it is
 * derived from the first ID, is not stored, and stays the same with a new ID.
 */
const stamp = (session: AnySession, { key }: Binding, device: string, purpose: string, time: number): string =>
  `${time.toString(36)}.${hmac(session.csrfToken, ['device', purpose, key, device, time].join('\0'))}`

/** What a proof has to sign. Without a device it is that of the offer, made when the session begins: it goes into that response alone. */
export const challengeFor = (session: AnySession, binding: Binding, device: string, time: number): string =>
  stamp(session, binding, device, 'challenge', time)

/** A value of the bound cookie: which binding it is of, and when it was made. Without a device it is that of the offer. */
export const valueFor = (session: AnySession, binding: Binding, device: string, time: number): string =>
  `${nameOf(binding)}.${stamp(session, binding, device, 'value', time)}`

/** Whether a text is what `make` makes, and at most so old, in ms. Clocks of nodes differ. */
export function isMade(text: string, make: (time: number) => string, lifetime: number, now: number): boolean {
  const time = Number.parseInt(text.split('.').at(-2) ?? '', 36)
  const isInTime = now >= time - CLOCK_TOLERANCE && now < time + lifetime + CLOCK_TOLERANCE
  const [given, made] = [Buffer.from(text), Buffer.from(make(time))]
  return isInTime && given.length === made.length && timingSafeEqual(given, made)
}
