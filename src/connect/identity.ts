// Who is logged in, as the data of a session says it.
import type { Context } from '../manager/context.ts'
import { ANONYMOUS, type Owner, USER_ID_FORMATS, type UserIdInput, type UserIds } from '../session/users.ts'
import { quote } from '../text/quote.ts'
import { membersOf, type Values } from './values.ts'

/** Who is logged in, as the data of a session says it. */
export interface ConnectUser<Ids extends UserIds = UserIds> {
  /** As the manager's `userIds` has it, or as JSON has it: a decimal text or a number becomes the ID that it stands for. */
  id: UserIdInput<Ids> | string | number
  /** @default '' */
  name?: string | undefined
  /** For logout-everywhere at a password change, see `sessions.invalidateUser`. @default none */
  passwordVersion?: number | null | undefined
}

/**
 * The user whom Passport stored, as serializeUser gave it: text, a number, or an object with an `id`. Name and password
 * version are those of the object, else of the request's user, which Passport sets before it saves.
 * @throws TypeError for anything else, which only a `userOf` of the application can read
 */
export function passportUser(data: Values, request: Values): ConnectUser | null {
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
  const names = [given.username, given.name, user.username, user.name, user.displayName]
  return {
    id,
    name: names.find(name => typeof name === 'string'),
    passwordVersion: typeof passwordVersion === 'number' ? passwordVersion : null,
  }
}

/** Who that is for a record. @throws TypeError that quotes an answer that is no user */
export function ownerOf({ users, options }: Context, answer: ConnectUser | null | undefined): Owner {
  if (answer === null || answer === undefined) return ANONYMOUS
  const { id, name = '', passwordVersion } = answer
  if (id === undefined || id === null)
    throw new TypeError(
      `userOf: expected it to return { id, name }, or null if nobody is logged in, and no promise, got ${quote(answer)}`,
    )
  // As JSON has it. The manager refuses what stands for no ID.
  const text = typeof id === 'string' || Number.isSafeInteger(id) ? String(id) : ''
  const user = { id: USER_ID_FORMATS[options.userIds].fromText(text) ?? id, name, passwordVersion }
  return users.ownerOf({ user: user as never }, 0)
}
