import type { IncomingMessage } from 'node:http'
import type { UserIdInput, UserIds } from '../session/users.ts'
import { aFunction, checkOptionNames } from '../text/check-options.ts'
import type { Duration } from '../text/duration.ts'
import { OPTION_HINTS } from '../text/option-hints.ts'
import type { NodeVisitsOptions } from '../visits/node.ts'

/** Who is logged in, as the data of req.session says it. */
export interface BridgedUser<Ids extends UserIds = UserIds> {
  /** As the manager's `userIds` has it, or as JSON has it: a decimal text or a number becomes the ID that it stands for. */
  id: UserIdInput<Ids> | string | number
  /** @default '' */
  name?: string | undefined
  /** For logout-everywhere at a password change, see `sessions.invalidateUser`. @default none */
  passwordVersion?: number | null | undefined
}

/** Options of a login beside its user, as `visit.logIn` takes them. */
export interface LoginOptions {
  /** Gives the browser a remember token; needs `remember` of the SessionManager. @default false */
  remember?: boolean | undefined
  /** How long the session may be idle, such as `'5m'`; at most the manager's idleTimeout. @default idleTimeout */
  idleTimeout?: Duration | undefined
  /** How long the session may live in all, at most the manager's absoluteTimeout. @default absoluteTimeout */
  absoluteTimeout?: Duration | undefined
  /** When the password was verified, epoch ms; `null`: never. @default now */
  verifiedAt?: number | null | undefined
}

/** The data of req.session: its values have the application's types. */
// biome-ignore lint/suspicious/noExplicitAny: as in the types of express-session, so that a userOf needs no casts
export type BridgedData = Record<string, any>

/** Of `expressSession`: those of `nodeVisits`, and how a user is found in the data of req.session. */
export interface ExpressSessionOptions<Ids extends UserIds = UserIds> extends NodeVisitsOptions {
  /**
   * Who is logged in, by the data of req.session; `null` if nobody is. If a request changes the answer, that is a
   * login or a logout. Synchronous. @default Passport's user: `passport.user`, its name from `request.user`
   */
  userOf?: (data: BridgedData, request: IncomingMessage) => BridgedUser<Ids> | null | undefined
  /** Terms of the login that this request makes, such as `{ idleTimeout: '5m' }`. Synchronous. @default none */
  logIn?: (request: IncomingMessage, data: BridgedData) => LoginOptions
}

const OWN = ['userOf', 'logIn'] as const
const OPTIONS = ['cookie', 'rememberCookie', 'trustedOrigins', 'trustedProxies', 'isSecure'] as const
// For those who bring the options of express-session along as they were.
const HINTS = {
  ...OPTION_HINTS,
  name: 'the cookie has its name from cookie: { name }, and is no connect.sid',
  store: "it belongs to the manager: new SessionManager({ store }), with a store of 'coatcheck/stores/…'",
  resave: 'only the keys that changed are written',
  saveUninitialized: 'a session begins when req.session gets its first value or a user, and visitors store nothing',
  unset: 'req.session = null always ends the session',
}

/** @throws TypeError that names the option, and says what to do in place of one of express-session */
export function splitOptions<Ids extends UserIds>(
  options: ExpressSessionOptions<Ids>,
): { own: Pick<ExpressSessionOptions<Ids>, (typeof OWN)[number]>; forVisits: NodeVisitsOptions } {
  checkOptionNames('expressSession', options, [...OWN, ...OPTIONS], HINTS)
  for (const name of OWN) if (options[name] !== undefined) aFunction(options[name], name)
  const { userOf, logIn, ...forVisits } = options
  return { own: { ...(userOf && { userOf }), ...(logIn && { logIn }) }, forVisits }
}
