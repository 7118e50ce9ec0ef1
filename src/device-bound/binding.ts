// What the record of a session keeps about its device. Nothing of it is of use to who reads the store: the key is public,
// values are hashed, and a challenge is derived from a salt by who has the session ID, so that each node can repeat the
// one that is outstanding without writing anything.
import type { SessionRecord } from '../contract/store.ts'
import { OFFER, seal, unseal } from '../data/meta.ts'
import { hashOf, hmac, newSalt, newSecret } from '../session/id.ts'
import { type DeviceKey, isSame } from './proof.ts'

/** How long a challenge is good from when it can be answered first, and an offer from the login, in ms. */
export const CHALLENGE_LIFE = 300_000
/** Values are good each until its own end. As many at a time: a response may be lost, and the browser asks again. */
const MAX_VALUES = 8

/** A value of the bound cookie. */
interface Value {
  readonly hash: string
  /** When it ends, epoch ms. */
  readonly end: number
}

export interface Binding {
  /** What the browser calls this session: not its key, which changes with each new ID. */
  readonly id: string
  readonly device: DeviceKey
  /** When the device was registered, and when it proved itself last, epoch ms. */
  readonly boundAt: number
  readonly provedAt: number
  readonly challenge: { readonly salt: string; readonly end: number }
  /** The salt of the challenge that was answered last; `''`: none. */
  readonly spent: string
  /** The newest first. */
  readonly values: readonly Value[]
}

const SALT = /^[A-Za-z0-9_-]{16}$/
const HASH = /^[A-Za-z0-9_-]{43}$/
const TIME = /^[0-9a-z]{1,11}$/
const KEYS = { E: /^[A-Za-z0-9_-]{86}$/, R: /^[A-Za-z0-9_-]{342,683}$/ } as const
const BOUND = 'b'
const SEPARATOR = '.'

/** The text of a binding: its parts, instants in base 36. */
export function format({ id, device, boundAt, provedAt, challenge, spent, values }: Binding): string {
  const time = (instant: number) => instant.toString(36)
  return [
    BOUND,
    id,
    device.algorithm[0],
    device.key,
    time(boundAt),
    time(provedAt),
    challenge.salt,
    time(challenge.end),
    spent,
    ...values.flatMap(({ hash, end }) => [hash, time(end)]),
  ].join(SEPARATOR)
}

function parse(text: string): Binding | null {
  const [mark, id = '', kind, key = '', boundAt = '', provedAt = '', salt = '', end = '', spent = '', ...rest] =
    text.split(SEPARATOR)
  const times = [boundAt, provedAt, end, ...rest.filter((_, at) => at % 2 === 1)]
  const isSound =
    mark === BOUND &&
    (kind === 'E' || kind === 'R') &&
    KEYS[kind].test(key) &&
    [id, salt].every(each => SALT.test(each)) &&
    (spent === '' || SALT.test(spent)) &&
    times.every(each => TIME.test(each)) &&
    rest.length % 2 === 0 &&
    rest.every((each, at) => at % 2 === 1 || HASH.test(each))
  if (!isSound) return null
  const instant = (digits: string) => Number.parseInt(digits, 36)
  const values: Value[] = []
  for (let at = 0; at < rest.length; at += 2) values.push({ hash: rest[at]!, end: instant(rest[at + 1]!) })
  return {
    id,
    device: { algorithm: kind === 'E' ? 'ES256' : 'RS256', key },
    boundAt: instant(boundAt),
    provedAt: instant(provedAt),
    challenge: { salt, end: instant(end) },
    spent,
    values,
  }
}

/**
 * What a record says of its device: the salt of an offer, a binding, `null` for neither. `'broken'`: it is bound, and none can
 * prove it.
 */
export function deviceIn({
  data,
}: Pick<SessionRecord, 'data'>): Binding | { readonly offer: string } | 'broken' | null {
  const { device } = unseal(data).meta
  if (device === undefined) return null
  if (device.startsWith(OFFER) && SALT.test(device.slice(OFFER.length))) return { offer: device.slice(OFFER.length) }
  return parse(device) ?? 'broken'
}

/** The binding in a record, where there is one that can be read. */
export function bindingIn(record: Pick<SessionRecord, 'data'>): Binding | null {
  const device = deviceIn(record)
  return device === null || device === 'broken' || 'offer' in device ? null : device
}

/** The record's data with this binding beside it. */
export function withBinding({ data }: Pick<SessionRecord, 'data'>, binding: Binding): string {
  const { meta, text } = unseal(data)
  return seal({ ...meta, device: format(binding) }, text)
}

export const offerChallenge = (id: string, salt: string): string => hmac(id, `device\0offer\0${salt}`)
export const refreshChallenge = (id: string, salt: string): string => hmac(id, `device\0refresh\0${salt}`)

/** Whether a proof answers the challenge of this salt, for the ID that the request came with or the one that it leads to. */
export const answers = (jti: string, ids: readonly string[], salt: string, of: typeof offerChallenge): boolean =>
  salt !== '' && ids.some(id => isSame(jti, of(id, salt)))

export function newBinding(device: DeviceKey, now: number, lifetime: number): { binding: Binding; value: string } {
  const start = { id: newSalt(), device, boundAt: now, spent: '', challenge: { salt: '', end: 0 }, provedAt: now }
  return proved({ ...start, values: [] }, now, lifetime)
}

/** The binding after a proof: with a new value, which only the response has, and a new challenge. */
export function proved(before: Binding, now: number, lifetime: number): { binding: Binding; value: string } {
  const value = newSecret()
  const end = now + lifetime
  // The last one also where it has ended: a late request must not pass for a thief's.
  const kept = before.values.filter((each, at) => at === 0 || each.end > now).slice(0, MAX_VALUES - 1)
  const binding = {
    ...before,
    provedAt: now,
    spent: before.challenge.salt,
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
