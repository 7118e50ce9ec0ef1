// Who is logged in, as the data of req.session says it.
import type { UserIds } from '../session/users.ts'
import { quote } from '../text/quote.ts'
import type { BridgedUser } from './options.ts'

type Members = Readonly<Record<string, unknown>>
const membersOf = (value: unknown): Members => (typeof value === 'object' && value !== null ? (value as Members) : {})

const firstText = (...values: unknown[]): string | undefined =>
  values.find((value): value is string => typeof value === 'string')

/**
 * The user whom Passport stored, as serializeUser gave it: text, a number, or an object with an `id`. Name and password
 * version are those of the object, else of `request.user`, which Passport sets before it saves.
 * @throws TypeError for anything else, which only a `userOf` of the application can read
 */
export function passportUser(data: Members, request: object): BridgedUser | null {
  const { user: stored } = membersOf(data.passport)
  // The test of Passport itself.
  if (!stored && stored !== 0) return null
  const given = membersOf(stored)
  const id = typeof stored === 'object' ? given.id : stored
  if (typeof id !== 'string' && typeof id !== 'number')
    throw new TypeError(
      `req.session.passport.user: expected text, a number or an object with an id, got ${quote(stored)}; say who that is by the option userOf: data => ({ id, name })`,
    )
  const { _userProperty: property } = request as { _userProperty?: string }
  const user = membersOf((request as Members)[property ?? 'user'])
  const { passwordVersion = user.passwordVersion } = given
  return {
    id,
    name: firstText(given.username, given.name, user.username, user.name, user.displayName),
    ...(typeof passwordVersion === 'number' && { passwordVersion }),
  }
}

/** A user of req.session as a login takes it, and the text of the ID to compare users by. */
export interface Identity {
  readonly user: { readonly id: unknown; readonly name: string; readonly passwordVersion: number | null }
  readonly text: string
}

/** @throws TypeError that quotes an answer that is no user */
export function identityOf(userIds: UserIds, answer: BridgedUser | null | undefined): Identity | null {
  if (answer === null || answer === undefined) return null
  if (answer.id === undefined || answer.id === null)
    throw new TypeError(
      `userOf: expected it to return { id, name }, or null if nobody is logged in, and no promise, got ${quote(answer)}`,
    )
  const id = converted(userIds, answer.id)
  return { user: { id, name: answer.name ?? '', passwordVersion: answer.passwordVersion ?? null }, text: String(id) }
}

const DECIMAL = /^(?:0|[1-9][0-9]{0,19})$/

/** An ID from JSON, converted for the manager. The manager refuses a value that is no ID. */
function converted(userIds: UserIds, id: unknown): unknown {
  const isDecimal = typeof id === 'string' && DECIMAL.test(id)
  if (userIds === 'bigint') return isDecimal ? BigInt(id) : id
  if (userIds === 'number') return isDecimal ? Number(id) : id
  return Number.isSafeInteger(id) ? String(id) : id
}
