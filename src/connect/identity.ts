// Who is logged in, as the data of a session says it.
import type { UserIdInput, UserIds } from '../session/users.ts'
import { quote } from '../text/quote.ts'

/** Who is logged in, as the data of a session says it. */
export interface ConnectUser<Ids extends UserIds = UserIds> {
  /** As the manager's `userIds` has it, or as JSON has it: a decimal text or a number becomes the ID that it stands for. */
  id: UserIdInput<Ids> | string | number
  /** @default '' */
  name?: string | undefined
  /** For logout-everywhere at a password change, see `sessions.invalidateUser`. @default none */
  passwordVersion?: number | null | undefined
}

type Members = Readonly<Record<string, unknown>>
const membersOf = (value: unknown): Members => (typeof value === 'object' && value !== null ? (value as Members) : {})

const firstText = (...values: unknown[]): string | undefined =>
  values.find((value): value is string => typeof value === 'string')

/**
 * The user whom Passport stored, as serializeUser gave it: text, a number, or an object with an `id`. Name and password
 * version are those of the object, else of the request's user, which Passport sets before it saves.
 * @throws TypeError for anything else, which only a `userOf` of the application can read
 */
export function passportUser(data: Members, request: Members): ConnectUser | null {
  const { user: stored } = membersOf(data.passport)
  // The test of Passport itself.
  if (!stored && stored !== 0) return null
  const given = membersOf(stored)
  const id = typeof stored === 'object' ? given.id : stored
  if (typeof id !== 'string' && typeof id !== 'number')
    throw new TypeError(
      `session.passport.user: expected text, a number or an object with an id, got ${quote(stored)}; say who that is by the option userOf: data => ({ id, name })`,
    )
  const { _userProperty: property = 'user', state } = request
  // koa-passport has it in the state of the context.
  const user = membersOf(request[String(property)] ?? membersOf(state)[String(property)])
  const { passwordVersion = user.passwordVersion } = given
  return {
    id,
    name: firstText(given.username, given.name, user.username, user.name, user.displayName),
    ...(typeof passwordVersion === 'number' && { passwordVersion }),
  }
}

/** A user as a login takes it. @throws TypeError that quotes an answer that is no user */
export function identityOf(userIds: UserIds, answer: ConnectUser | null | undefined) {
  if (answer === null || answer === undefined) return null
  const { id, name = '', passwordVersion = null } = answer
  if (id === undefined || id === null)
    throw new TypeError(
      `userOf: expected it to return { id, name }, or null if nobody is logged in, and no promise, got ${quote(answer)}`,
    )
  return { id: converted(userIds, id), name, passwordVersion }
}

const DECIMAL = /^(?:0|[1-9][0-9]{0,19})$/

/** An ID from JSON, converted for the manager. The manager refuses a value that is no ID. */
function converted(userIds: UserIds, id: unknown): unknown {
  const isDecimal = typeof id === 'string' && DECIMAL.test(id)
  if (userIds === 'bigint') return isDecimal ? BigInt(id) : id
  if (userIds === 'number') return isDecimal ? Number(id) : id
  return Number.isSafeInteger(id) ? String(id) : id
}
