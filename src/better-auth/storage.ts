// better-auth reads a session, changes it, and writes it some time later: a session that was ended meanwhile would live again.
// It changes a user's list of sessions in the same way: of two parallel logins one would be lost. Its storage only sees keys
// and values, so their form has to tell what they are.
import type { Store } from '../contract/store.ts'
import { refuse } from '../text/check-options.ts'
import { Recent } from '../time/recent.ts'
import { Entries, type Entry, MINUTES, NOTHING } from './entries.ts'

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
const ENDED: Entry = { ...NOTHING, hasEnded: true }

/**
 * better-auth's `secondaryStorage` on a store of this package. A session that was ended stays ended, whatever is written
 * afterwards; a user's list of sessions loses no parallel login; all other keys are kept as they are.
 * @throws TypeError if `store` is no store
 */
export function secondaryStorage(store: Store): SecondaryStorage {
  for (const method of ['create', 'read', 'update'] as const)
    if (typeof store?.[method] !== 'function')
      refuse('secondaryStorage', 'a store, such as new RedisStore(client) or new PostgresStore(pool)', store)
  const entries = new Entries(store)
  /** Tokens of lists that were read here. Only one of them may end before it is stored, or strangers' tokens would leave marks. */
  const named = new Recent<true>(MINUTES)

  /** The entry of a key after a value was set; `null` if it stays as it is. */
  function afterSet(key: string, { value: before, until, hasEnded }: Entry, value: string, ttl?: number): Entry | null {
    if (hasEnded) return null
    const set = { value, until: untilOf(ttl) }
    if (before === null) return set
    if (key.startsWith(ENDED_BEFORE)) return Number(value) < Number(before) ? null : set
    if (!key.startsWith(LIST)) return { ...set, value: withLatestUser(before, value) }
    // An expired one goes by itself, an ended one by the end of its token.
    const merged = new Map(listIn(before).map(each => [each.token, each]))
    const news = listIn(value).filter(({ token, expiresAt }) => merged.get(token)?.expiresAt !== expiresAt)
    // better-auth takes a token out before it ends it: a full store must not keep it from that.
    if (news.length === 0) return null
    for (const each of news) merged.set(each.token, each)
    const latest = until === null || set.until === null ? null : Math.max(until, set.until)
    return {
      value: JSON.stringify([...merged.values()].sort((one, other) => one.expiresAt - other.expiresAt)),
      until: latest,
    }
  }

  async function remove(key: string): Promise<string | null> {
    // The sessions that it names have not ended: another login may just have begun one.
    if (key.startsWith(LIST)) return null
    const { value } = await entries.change(key, found => {
      if (found.value === null) return found.hasEnded || !named.get(key, Date.now()) ? null : ENDED
      return sessionIn(key, found.value) === undefined ? NOTHING : ENDED
    })
    const userId = sessionIn(key, value)?.userId
    if (userId !== undefined)
      await entries
        .change(LIST + userId, ({ value: list, until }) => {
          const left = listIn(list).filter(({ token }) => token !== key)
          return list === null ? null : { value: left.length === 0 ? null : JSON.stringify(left), until }
        })
        // A full store keeps the token in the list, where it does no harm.
        .catch(() => {})
    return value
  }

  /** After this write alone better-auth would end each of them. A full store refuses it, and still deletes. */
  async function endAll(userId: string): Promise<void> {
    for (const { token } of listIn((await entries.read(LIST + userId)).value)) await remove(token)
  }

  return {
    async get(key) {
      const { value } = await entries.read(key)
      if (value === null || !key.startsWith(LIST)) return value
      const list = listIn(value)
      for (const { token } of list) named.set(token, true, Date.now())
      return JSON.stringify(list)
    },
    getAndDelete: remove,
    async set(key, value, ttl) {
      const setting = entries.change(key, found => afterSet(key, found, value, ttl))
      await setting.catch(async error => {
        if (key.startsWith(ENDED_BEFORE)) await endAll(key.slice(ENDED_BEFORE.length))
        throw error
      })
    },
    async delete(key) {
      await remove(key)
    },
    async increment(key, ttl) {
      const next = ({ value }: Entry) => Number(value ?? 0) + 1
      const until = (found: Entry) => (found.value === null ? untilOf(ttl) : found.until)
      return next(await entries.change(key, found => ({ value: String(next(found)), until: until(found) })))
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

interface Stored {
  readonly session?: { readonly token?: string; readonly userId?: string }
  readonly user?: { readonly updatedAt?: string }
}
const storedIn = (text: string | null) => jsonIn(text) as Stored | null | undefined

/** The session whose token the key is: the value says so. */
function sessionIn(key: string, value: string | null): Stored['session'] {
  const session = storedIn(value)?.session
  return session?.token === key ? session : undefined
}

/** A refresh under way writes the user that it has read: a role that was taken away meanwhile stays so. */
function withLatestUser(before: string, value: string): string {
  const [was, is] = [storedIn(before), storedIn(value)]
  const isOlder = Date.parse(String(is?.user?.updatedAt)) < Date.parse(String(was?.user?.updatedAt))
  return isOlder ? JSON.stringify({ ...is, user: was!.user }) : value
}

function jsonIn(text: string | null): unknown {
  try {
    return text === null ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}
