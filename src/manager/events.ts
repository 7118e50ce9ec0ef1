import { channel } from 'node:diagnostics_channel'
import type { SessionStoreError } from '../contract/errors.ts'
import type { SessionKey } from '../session/id.ts'
import type { UserId, UserIds } from '../session/user-id.ts'

/** What happened, with keys, never IDs. */
export type SessionEvent<I extends UserIds = UserIds> =
  /** `expired`: a session that a caller still held was found past its time. `remember-theft`: `key` is the series. */
  | { type: 'created' | 'expired' | 'remember-theft'; key: SessionKey; userId: UserId<I> | null }
  | { type: 'regenerated'; key: SessionKey; oldKey: SessionKey; userId: UserId<I> | null }
  | {
      type: 'destroyed'
      key: SessionKey
      /** `null` also where only the ID was known. */
      userId: UserId<I> | null
      reason: 'logout' | 'revoked' | 'invalidated' | 'limit' | 'theft'
    }
  | { type: 'invalidated'; userId: UserId<I>; count: number }
  | { type: 'ambiguous-cookie' }
  /** No response carries the cookie of a session that began, or that got a new ID or expiry. `isEnded`: no browser can hold it, so it was ended. */
  | { type: 'unsent-cookie'; key: SessionKey; isEnded: boolean }
  /** A record that no store of ours wrote: removed, reads as absent. */
  | { type: 'corrupt-record'; key: SessionKey; cause: string }
  /** Stored data that no longer fits the schema was replaced by the start value; the session stays. */
  | { type: 'data-reset'; key: SessionKey; cause: Error }
  | { type: 'store-error'; error: SessionStoreError }

const published = channel('coatcheck')

function warn(event: SessionEvent, error: unknown): void {
  const reason = error instanceof Error ? error.message : String(error)
  process.emitWarning(`onEvent threw at '${event.type}': ${reason}`, { type: 'CoatcheckWarning' })
}

/** Tells the listener and `node:diagnostics_channel` 'coatcheck'; what a listener throws becomes a process warning. */
export function emitTo<I extends UserIds>(
  listener: ((event: SessionEvent<I>) => void) | undefined,
  event: SessionEvent<I>,
): void {
  if (listener) {
    try {
      const result: unknown = listener(event)
      // An asynchronous listener must not end the process either.
      if (result instanceof Promise) result.catch(error => warn(event, error))
    } catch (error) {
      warn(event, error)
    }
  }
  if (published.hasSubscribers) published.publish(event)
}
