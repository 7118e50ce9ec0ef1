import type { Login, UserIds } from '../session/users.ts'
import { aFunction, type OptionsOf, refuse } from '../text/check-options.ts'
import { isObject, type OldSession, type OldSessions } from './from.ts'

/** Whose session an old one is: a login as `logIn` takes it, except that no password was verified for it. */
export type OldLogin<
  Data extends object = Record<string, unknown>,
  Ids extends UserIds = 'bigint',
  Input extends object = Data,
> = Login<Data, Ids, Input> & {
  /**
   * When the user logged in, epoch ms: the session stays as old as it is. If neither you nor the library knows, its age
   * counts from the last use in the old record.
   */
  createdAt?: number | null | undefined
}

/** The session of a visitor, such as one with a cart. */
export interface OldVisitor<Input extends object = Record<string, unknown>> {
  /** First data of the anonymous session that takes its place. */
  data: Partial<Input>
  /** As in `OldLogin`. */
  createdAt?: number | null | undefined
}

/** Whose session an old one is, as `toLogin` answers it: a login, a visitor with data, or nobody's. */
export type WhoseSession<Data extends object, Ids extends UserIds, Input extends object> =
  | OldLogin<Data, Ids, Input>
  | OldVisitor<Input>
  | null
  | undefined

/** Options of `sessionImporter`. */
export interface SessionImporterOptions<
  Data extends object = Record<string, unknown>,
  Ids extends UserIds = 'bigint',
  Input extends object = Data,
  T = Record<string, unknown>,
> {
  /** The other library: `fromExpressSession(…)`, `fromNextAuth(…)` and the like, or a reader of your own. */
  from: OldSessions<T>
  /**
   * Says whose session it is, by the application's data in it. Return `{ data }` for a visitor whose data you keep, and
   * `null` for one without a user, or with a user that you do not know: that session is left alone, and its browser is not
   * logged in. `verifiedAt` is `null` unless you say when the password was verified: then `isFresh` refuses.
   */
  toLogin(data: T, session: OldSession<T>): WhoseSession<Data, Ids, Input> | Promise<WhoseSession<Data, Ids, Input>>
}

export const OPTIONS: OptionsOf<SessionImporterOptions> = {
  where: 'sessionImporter',
  required: ['from', 'toLogin'],
  rules: {
    from: (value, name) => {
      const { cookie, read } = (isObject(value) ? value : {}) as Partial<OldSessions>
      if (cookie === undefined || typeof read !== 'function')
        refuse(name, "a reader such as fromExpressSession({ secret, store }) of 'coatcheck/import'", value)
    },
    toLogin: aFunction,
  },
}
