// Who is logged in, as the data of a session says it.
import { membersOf } from '../import/from.ts'
import type { Context } from '../manager/context.ts'
import { ANONYMOUS, type Owner, USER_ID_FORMATS, type UserIdInput, type UserIds } from '../session/users.ts'
import { quote } from '../text/quote.ts'
import { warnOnce } from '../text/warn-once.ts'
import type { Values } from './values.ts'

/** Who is logged in, as the data of a session says it. */
export interface ConnectUser<Ids extends UserIds = UserIds> {
  /** As the manager's `userIds` has it, or as JSON has it: a decimal text or a number becomes the ID that it stands for. */
  id: UserIdInput<Ids> | string | number
  /** @default '' */
  name?: string | undefined
  /**
   * For logout-everywhere at a password change, see `sessions.invalidateUser`. Required at a login, and for old data, if the
   * manager has `getPasswordVersion`: `null` for a user who has none. @default none
   */
  passwordVersion?: number | null | undefined
}

const isId = (value: unknown): value is string | number => typeof value === 'string' || typeof value === 'number'

/**
 * The user whom Passport or @fastify/passport stored, as serializeUser gave it: text, a number, or an object with an `id`. Name and password
 * version are those of the object, else of the request's user, which Passport sets before it saves.
 * @throws TypeError for anything else, which only a `userOf` of the application can read
 */
export function passportUser(data: Values, request: Values): ConnectUser | null {
  const { passport } = data
  const { user: around, ...others } = membersOf(passport)
  // @fastify/passport has the user itself there, Passport an object around it.
  const stored = [passport, others.id].some(isId) ? passport : around
  // The test of Passport itself.
  if (!stored && stored !== 0) {
    if (passport && (typeof passport !== 'object' || Object.keys(others).length > 0))
      warnOnce(
        'COATCHECK_UNKNOWN_PASSPORT',
        'connectStore: nobody is found in session.passport, so that these sessions are in no list and invalidateUser ends none; say who that is by the option userOf: data => ({ id, name })',
      )
    return null
  }
  const given = membersOf(stored)
  const id = typeof stored === 'object' ? given.id : stored
  if (!isId(id))
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
    passwordVersion: passwordVersion === null || typeof passwordVersion === 'number' ? passwordVersion : undefined,
  }
}

/**
 * Who that is for a record. `before`: the user of the record so far, who does not log in and need not say a password version.
 * @throws TypeError that quotes an answer that is no user
 */
export function ownerOf(
  { users, options }: Context,
  answer: ConnectUser | null | undefined,
  before: string | null = null,
): Owner {
  if (answer === null || answer === undefined) return ANONYMOUS
  const { id, name = '', passwordVersion } = answer
  if (id === undefined || id === null)
    throw new TypeError(
      `userOf: expected it to return { id, name }, or null if nobody is logged in, and no promise, got ${quote(answer)}`,
    )
  // As JSON has it. The manager refuses what stands for no ID.
  const text = typeof id === 'string' || Number.isSafeInteger(id) ? String(id) : ''
  const known = (USER_ID_FORMATS[options.userIds].fromText(text) ?? id) as never
  const isBefore = passwordVersion === undefined && users.toText(known) === before
  return users.ownerOf({ user: { id: known, name, passwordVersion: isBefore ? null : passwordVersion } }, 0)
}
