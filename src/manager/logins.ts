import type { AnySession } from '../session/session.ts'
import type { Login } from '../session/users.ts'
import { Recent } from './recent.ts'

/** How long after a login another one of the same browser may still be under way: the slowest of parallel requests, in ms. */
const LIFETIME = 60_000
/** Each may keep the data that was there before, at most `maxDataBytes`. */
const MAX_LOG_INS = 1000

/** A login of this process, for those that the same browser sent beside it. */
export interface LogIn {
  session: AnySession
  readonly token: string | null
  /** What the login asked for beside user and data. */
  readonly asked: Pick<Login, 'verifiedAt' | 'idleTimeout' | 'absoluteTimeout'>
  /** What its `data` function was given; `null` where it was none. */
  readonly before: object | null
  /** By `performance.now()`. */
  readonly at: number
  /** How many requests got this session. */
  holders: number
  /** Whether its cookie is in a head: from then on the browser may hold it. */
  isSent: boolean
}

/** The latest logins, by the keys of the sessions and series that their requests came with. */
export class LogIns {
  readonly #latest = new Recent<LogIn>(LIFETIME, MAX_LOG_INS)

  of(keys: readonly string[]): LogIn | null {
    const now = performance.now()
    for (const key of keys) {
      const logIn = this.#latest.get(key, now)
      if (logIn !== undefined && now - logIn.at < LIFETIME) return logIn
    }
    return null
  }

  add(keys: readonly string[], logIn: LogIn): void {
    for (const key of keys) this.#latest.set(key, logIn, logIn.at)
  }

  delete(keys: readonly string[]): void {
    for (const key of keys) this.#latest.delete(key)
  }
}
