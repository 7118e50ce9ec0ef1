// better-auth reads a session, changes it, and writes it some time later: a session that was ended meanwhile would live again.
// It changes a user's list of sessions in the same way: of two parallel logins one would be lost. Its storage only sees keys
// and values, so their form has to tell what they are.
import type { Store } from '../contract/store.ts'
import { quote } from '../text/quote.ts'
import { Entries, type Entry } from './entries.ts'

/** better-auth's interface of that name. `ttl` is in seconds. */
export interface SecondaryStorage {
  get(key: string): Promise<string | null>
  getAndDelete(key: string): Promise<string | null>
  set(key: string, value: string, ttl?: number): Promise<void>
  delete(key: string): Promise<void>
  increment(key: string, ttl: number): Promise<number>
}

const LIST = 'active-sessions-'
const ENDED_BEFORE = 'revoked-sessions-before-'
const EMPTY: Entry = { value: null, until: null }
const ENDED: Entry = { ...EMPTY, hasEnded: true }

/**
 * better-auth's `secondaryStorage` on a store of this package. A session that was ended stays ended, whatever is written
 * afterwards; a user's list of sessions loses no parallel login; all other keys are kept as they are.
 * @throws TypeError if `store` is no store
 */
export function secondaryStorage(store: Store): SecondaryStorage {
  for (const method of ['create', 'read', 'update'] as const)
    if (typeof store?.[method] !== 'function')
      throw new TypeError(
        `secondaryStorage: expected a store, such as new RedisStore(client) or new PostgresStore(pool), got ${quote(store)}`,
      )
  const entries = new Entries(store)

  /** The entry of a key after a value was set; `null` if it stays as it is. */
  function afterSet(key: string, { value: before, until, hasEnded }: Entry, value: string, ttl?: number): Entry | null {
    if (hasEnded) return null
    const set = { value, until: untilOf(ttl) }
    if (before === null) return set
    if (key.startsWith(ENDED_BEFORE)) return Number(value) < Number(before) ? null : set
    if (!key.startsWith(LIST)) return set
    // An expired one goes by itself, an ended one by the end of its token.
    const merged = new Map([...listIn(before), ...listIn(value)].map(each => [each.token, each]))
    const latest = until === null || set.until === null ? null : Math.max(until, set.until)
    return { value: JSON.stringify(sorted([...merged.values()])), until: latest }
  }

  async function remove(key: string): Promise<string | null> {
    // The sessions that it names have not ended: another login may just have begun one.
    if (key.startsWith(LIST)) return null
    const { value } = await entries.change(key, found => {
      if (isSession(key, found.value)) return found.hasEnded ? null : ENDED
      return found.value === null ? null : EMPTY
    })
    const userId = isSession(key, value) ? (jsonIn(value) as Stored)?.session?.userId : undefined
    if (userId !== undefined)
      await entries.change(`${LIST}${userId}`, ({ value: list, until }) => {
        const left = listIn(list).filter(({ token }) => token !== key)
        return list === null ? null : { value: left.length === 0 ? null : JSON.stringify(left), until }
      })
    return value
  }

  return {
    get: async key => (await entries.read(key)).value,
    getAndDelete: remove,
    async set(key, value, ttl) {
      await entries.change(key, found => afterSet(key, found, value, ttl))
    },
    async delete(key) {
      await remove(key)
    },
    async increment(key, ttl) {
      let count = 0
      await entries.change(key, ({ value, until }) => {
        count = Number(value ?? 0) + 1
        return { value: String(count), until: value === null ? untilOf(ttl) : until }
      })
      return count
    },
  }
}

const untilOf = (ttl?: number) => (ttl === undefined ? null : Date.now() + ttl * 1000)

interface Listed {
  readonly token: string
  readonly expiresAt: number
}
/** The sessions in a list that have not expired. */
const listIn = (text: string | null): Listed[] => {
  const list = jsonIn(text)
  return Array.isArray(list) ? list.filter(each => each?.expiresAt > Date.now()) : []
}
const sorted = (list: Listed[]) => list.sort((one, other) => one.expiresAt - other.expiresAt)

/** Whether the key is a session's token. The stored value says so; if there is none, the form of the key does, since a late login may still come. */
const isSession = (key: string, value: string | null) =>
  value === null ? /^[a-zA-Z0-9]{32}$/.test(key) : (jsonIn(value) as Stored)?.session?.token === key

type Stored = { session?: { token?: string; userId?: string } } | undefined

function jsonIn(text: string | null): unknown {
  try {
    return text === null ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}
