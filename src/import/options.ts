import type { UserIds } from '../session/user-id.ts'
import type { Login } from '../session/users.ts'
import { aBoolean, aFunction, type OptionPlace, refuse } from '../text/check-options.ts'
import { isObject, type OldSession, type OldSessions } from './from.ts'

/** Whose session an old one is: a login, as `logIn` takes it, but that no password was verified for it. */
export type OldLogin<
  D extends object = Record<string, unknown>,
  I extends UserIds = 'bigint',
  In extends object = D,
> = Login<D, I, In> & {
  /**
   * When the user logged in, epoch ms: the session goes on to be as old as it is. Where neither you nor the library knows,
   * it counts from the last visit that the old record tells of.
   */
  createdAt?: number | null | undefined
}

/** The session of a visitor, such as one with a cart. */
export interface OldVisitor<In extends object = Record<string, unknown>> {
  /** First data of the anonymous session that takes its place. */
  data: Partial<In>
  /** As in `OldLogin`. */
  createdAt?: number | null | undefined
}

/** What `adopt` takes. */
export interface SessionImporterOptions<
  D extends object = Record<string, unknown>,
  I extends UserIds = 'bigint',
  In extends object = D,
  T = Record<string, unknown>,
> {
  /** The other library: `fromExpressSession(…)`, `fromFastifySession(…)`, `fromKoaSession(…)`, or a reader of your own. */
  from: OldSessions<T>
  /**
   * Whose session it is, by the application's data in it; `{ data }` for a visitor's, whose data you keep; `null`: one without
   * a user, or with one that you do not know. Such a session is left alone, and its browser is not logged in. `verifiedAt` is `null` unless you say when the password was
   * verified, so that `isFresh` refuses.
   */
  toLogin(
    data: T,
    session: OldSession<T>,
  ):
    | OldLogin<D, I, In>
    | OldVisitor<In>
    | null
    | undefined
    | Promise<OldLogin<D, I, In> | OldVisitor<In> | null | undefined>
  /** While nodes of the old service run beside: the old record and its cookie stay, and logout at either side ends both. @default false */
  keepOld?: boolean
  /** Hears of what is no reason to refuse a request: an old record that cannot be read, or could not be removed. @default a process warning, once */
  onError?: (error: Error) => void
}

export const OPTIONS: OptionPlace<SessionImporterOptions> = {
  where: 'sessionImporter',
  required: ['from', 'toLogin'],
  rules: {
    from: (value, name) => {
      const { cookie, read } = (isObject(value) ? value : {}) as Partial<OldSessions>
      if (cookie === undefined || typeof read !== 'function')
        refuse(name, "a reader such as fromExpressSession({ secret, store }) of 'coatcheck/import'", value)
    },
    toLogin: aFunction,
    keepOld: aBoolean,
    onError: aFunction,
  },
}
