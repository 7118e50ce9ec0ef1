import { channel } from 'node:diagnostics_channel'
import type { SessionStoreError } from '../contract/errors.ts'
import { quote } from '../text/quote.ts'
import { isThenable } from '../time/within.ts'
import type { SessionKey } from './id.ts'
import type { UserId, UserIds } from './users.ts'

/** Something that happened. It holds keys, never session IDs. */
export type SessionEvent<Ids extends UserIds = UserIds> = {
  /** The namespace, if the manager was made by `namespace`. A failure of the store belongs to no namespace. */
  readonly namespace?: string
} & (
  | {
      type: 'created'
      key: SessionKey
      userId: UserId<Ids> | null
      /** A remember token began it, not a password. */
      remembered: boolean
    }
  /** `expired`: a session that a caller still held was found past its time. `remember-theft`: `key` is the series. */
  | { type: 'expired' | 'remember-theft'; key: SessionKey; userId: UserId<Ids> | null }
  /** `device-bound`: a browser bound the session to its device. `device-theft`: another key has signed, and the session has ended. */
  | { type: 'device-bound' | 'device-theft'; key: SessionKey; userId: UserId<Ids> | null }
  | { type: 'regenerated'; key: SessionKey; oldKey: SessionKey; userId: UserId<Ids> | null }
  | {
      type: 'destroyed'
      key: SessionKey
      /** `null` also if only the ID was known. */
      userId: UserId<Ids> | null
      reason: 'logout' | 'revoked' | 'invalidated' | 'limit' | 'theft'
    }
  | { type: 'invalidated'; userId: UserId<Ids>; count: number }
  | {
      type: 'request-refused'
      /**
       * `insecure`: a cookie that came without HTTPS was not honoured, or nothing may begin without HTTPS. `device`: the
       * session is bound to a device, or has to be, and the request brought no proof of it.
       */
      reason: 'cross-origin' | 'csrf' | 'insecure' | 'device'
      /** Of the session that was found; `null` if none was, or none was looked for. */
      key: SessionKey | null
      userId: UserId<Ids> | null
      /** As the client wrote it, so it may be anything: at most 200 characters of each. */
      method: string
      origin: string | null
      host: string | null
    }
  | {
      type: 'write-refused'
      reason: 'limit' | 'stale-login' | 'conflict'
      /** The session that was to be written to, or to end at a login. */
      key: SessionKey | null
      /** Who was to log in, or whose session it is. */
      userId: UserId<Ids> | null
    }
  /** Cookies of one request lead to live sessions of different visitors, or there are more than four: it has no session. */
  | { type: 'ambiguous-cookie' }
  /** No response carries the cookie of a session that began, or that got a new ID or expiry. */
  | { type: 'unsent-cookie'; key: SessionKey }
  /** A record that no store of ours wrote: removed, reads as absent. One whose user ID is of another kind stays. */
  | { type: 'corrupt-record'; key: SessionKey; cause: string }
  /** Stored data that no longer fits the schema was replaced by the start value; the session stays. */
  | { type: 'data-reset'; key: SessionKey; cause: Error }
  | { type: 'store-error'; error: SessionStoreError }
)

/** Why a visit refused a request. */
export type RequestRefusal = Extract<SessionEvent, { type: 'request-refused' }>['reason']
/** Why a login or a write was refused. */
export type WriteRefusal = Extract<SessionEvent, { type: 'write-refused' }>['reason']

const published = channel('coatcheck')

function warn(event: SessionEvent, error: unknown): void {
  const reason = error instanceof Error ? String(error.message) : quote(error)
  process.emitWarning(`onEvent threw at '${event.type}': ${reason}`, { type: 'CoatcheckWarning' })
}

/** Tells the listener and `node:diagnostics_channel` 'coatcheck'. An error thrown by a listener becomes a process warning. */
export function emitTo<Ids extends UserIds>(
  listener: ((event: SessionEvent<Ids>) => void) | undefined,
  event: SessionEvent<Ids>,
): void {
  if (listener) {
    try {
      const result: unknown = listener(event)
      // An asynchronous listener must not end the process either.
      if (isThenable(result)) Promise.resolve(result).catch(error => warn(event, error))
    } catch (error) {
      warn(event, error)
    }
  }
  if (published.hasSubscribers) published.publish(event)
}
