import { createHash } from 'node:crypto'
import { aBoolean, type OptionsOf } from '../../text/check-options.ts'
import type { OldCookie, OldSessions } from '../from.ts'
import { aCookie, checkReader, withMethods } from './callback-store.ts'
import { byAdapter } from './next-auth.ts'

/** An adapter of Lucia 3, or queries of your own, by the two methods that are used. */
export interface LuciaAdapter<S, U> {
  getSessionAndUser(id: string): Promise<[session: S | null, user: U | null]>
  deleteSession(id: string): unknown
}

/** The adapter of Lucia's sessions. */
export interface FromLuciaOptions<S, U> {
  /** Its adapter. */
  adapter: LuciaAdapter<S, U>
  /** Its `sessionCookie.name`, with `path` and `domain` of its attributes if it sets them. @default 'auth_session' */
  cookie?: string | OldCookie
  /** Whether the ID of a session is the SHA-256 of the cookie, in hex, as in the code that Lucia's site teaches. @default false */
  hashed?: boolean
}

const OPTIONS: OptionsOf<FromLuciaOptions<unknown, unknown>> = {
  where: 'fromLucia',
  required: ['adapter'],
  rules: {
    adapter: withMethods(
      'an adapter with getSessionAndUser(id) and deleteSession(id)',
      'getSessionAndUser',
      'deleteSession',
    ),
    cookie: aCookie,
    hashed: aBoolean,
  },
}

/**
 * The sessions of Lucia 3, for `sessionImporter`; with `hashed`, of code after its site. `toLogin` gets the session and the user
 * as the adapter has them.
 * @throws TypeError that names the option
 */
export function fromLucia<S extends object, U>(options: FromLuciaOptions<S, U>): OldSessions<{ session: S; user: U }> {
  checkReader(OPTIONS, options)
  const { adapter, cookie = 'auth_session', hashed = false } = options
  const find = async (id: string) => {
    const [session, user] = await adapter.getSessionAndUser(id)
    return session && user ? { session, user } : null
  }
  const idOf = (token: string) => (hashed ? createHash('sha256').update(token).digest('hex') : token)
  return byAdapter(cookie, 'id', find, id => adapter.deleteSession(id), idOf)
}
