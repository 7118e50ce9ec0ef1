import type { OptionsOf } from '../../text/check-options.ts'
import { instant, isObject, lastUse, type OldCookie, type OldSessions } from '../from.ts'
import { aCookie, aSecret, aStore, checkReader } from './callback-store.ts'
import { heldIn, keygripCookie } from './keygrip.ts'
import type { Secret } from './signature.ts'

/** A store of koa-session, by the two methods that are used. */
export interface KoaStore {
  get(key: string, maxAge: number, options: { rolling: boolean; ctx: undefined }): unknown
  destroy(key: string, options: { ctx: undefined }): unknown
}

/** The store of koa-session's sessions, and the keys of their cookies. */
export interface FromKoaSessionOptions {
  /** `app.keys`: all that still count, the newest first. */
  keys: Secret | readonly Secret[]
  /** Its `store`. Without one the cookie holds the whole session. @default none */
  store?: KoaStore
  /** Its `key`, with `path` and `domain` if it sets them. @default 'koa.sess' */
  cookie?: string | OldCookie
}

const OPTIONS: OptionsOf<FromKoaSessionOptions> = {
  where: 'fromKoaSession',
  required: ['keys'],
  hints: { key: 'it is called cookie', secret: "they are called keys, as Koa's app.keys" },
  rules: { keys: aSecret, store: aStore, cookie: aCookie },
}

/** Keys of koa-session among those of the application. */
const OWN = ['_expire', '_maxAge', '_session', '_requireSave']

/**
 * The sessions of koa-session, for `sessionImporter`, in a store or only in the cookie. The cookie beside it, `koa.sess.sig`, must
 * hold its signature by one of the keys; otherwise it is refused, and the store is not asked.
 * @throws TypeError that names the option
 */
export function fromKoaSession<T = Record<string, unknown>>(options: FromKoaSessionOptions): OldSessions<T> {
  checkReader(OPTIONS, options)
  const { store, cookie = 'koa.sess', keys } = options
  return {
    ...keygripCookie(cookie, keys),
    async read(id) {
      const content = store === undefined ? heldIn(id) : await store.get(id, 0, { rolling: false, ctx: undefined })
      if (!isObject(content)) return null
      const expiresAt = instant('_expire', content._expire)
      const data = Object.fromEntries(Object.entries(content).filter(([name]) => !OWN.includes(name)))
      return { data: data as T, seenAt: lastUse(expiresAt, content._maxAge), expiresAt }
    },
    ...(store !== undefined && { destroy: async (id: string) => void (await store.destroy(id, { ctx: undefined })) }),
  }
}
