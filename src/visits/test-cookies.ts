import type { Session } from '../session/session.ts'
import type { UserIds } from '../session/users.ts'
import { type CookieOptions, responseCookie, SessionCookie } from './cookie.ts'

/**
 * The Cookie header of a browser that has this session, for requests of a test: `{ headers: { Cookie: cookieHeader(s) } }`.
 * `options`: the `cookie` of your `nodeVisits`, if it is not the default.
 * @throws TypeError that quotes the option
 */
export function cookieHeader<Data, Ids extends UserIds>(session: Session<Data, Ids>, options?: CookieOptions): string {
  return `${new SessionCookie(options).name}=${session.secret}`
}

/** What Playwright takes as `storageState`; its `cookies` are what `context.addCookies` takes. */
export interface StorageState {
  cookies: {
    name: string
    value: string
    domain: string
    path: string
    /** Epoch seconds; -1 for a cookie that ends with the browser. */
    expires: number
    httpOnly: boolean
    secure: boolean
    sameSite: 'Strict' | 'Lax' | 'None'
  }[]
  origins: never[]
}

const SAME_SITE = { strict: 'Strict', lax: 'Lax', none: 'None' } as const

/**
 * A browser that has this session, for Playwright: `browser.newContext({ storageState: storageState(session, url) })`.
 * `options`: the `cookie` of your `nodeVisits`, if it is not the default.
 * @throws TypeError for a URL or an option that cannot be
 */
export function storageState<Data, Ids extends UserIds>(
  session: Session<Data, Ids>,
  url: string,
  options?: CookieOptions,
): StorageState {
  const { hostname } = new URL(url)
  const cookie = new SessionCookie(options)
  const { name, value, options: attributes } = responseCookie(cookie.serialize(session))
  const { path, httpOnly, secure, sameSite, domain, maxAge } = attributes
  const expires = maxAge === undefined ? -1 : Math.ceil(session.seenAt / 1000) + maxAge
  return {
    cookies: [
      // A leading dot is how a browser's jar says that subdomains get it too.
      {
        name,
        value,
        domain: domain === undefined ? hostname : `.${domain.replace(/^\./, '')}`,
        path,
        expires,
        httpOnly,
        secure,
        sameSite: SAME_SITE[sameSite],
      },
    ],
    origins: [],
  }
}
