// The cookies of the other library: what in a request is genuine, and how a browser removes them.
import { SessionCookie } from '../visits/cookie.ts'
import type { VisitRequest } from '../visits/types.ts'
import type { OldCookie, OldSessionId, OldSessions } from './from.ts'

/** No library sends a longer cookie: browsers keep 4096 bytes (RFC 6265, section 6.1). */
const MAX_LENGTH = 4096

export class OldCookies {
  readonly name: string
  readonly #from: OldSessions<never>
  readonly #attributes: Pick<OldCookie, 'path' | 'domain'>
  readonly #cookie: SessionCookie

  /** @throws TypeError that quotes what is malformed */
  constructor(from: OldSessions<never>) {
    const { name, path, domain } = typeof from.cookie === 'string' ? { name: from.cookie } : from.cookie
    this.name = name
    this.#from = from
    this.#attributes = { ...(path !== undefined && { path }), ...(domain !== undefined && { domain }) }
    this.#cookie = this.#named(name, true)
  }

  /** The sessions that a Cookie header names. A value that is not genuine does not count: anyone could plant it. */
  in(header: VisitRequest['cookie']): Required<OldSessionId>[] {
    const found = new Map<string, Required<OldSessionId>>()
    for (const value of this.#cookie.candidates(header)) {
      const id = this.#parse(value, header)
      if (id !== null && !found.has(id.id)) found.set(id.id, id)
    }
    return [...found.values()]
  }

  /** `Set-Cookie` values that remove the cookies. `isSecure`: cookies of this service go over HTTPS alone. */
  removal(isSecure: boolean): string[] {
    return [this.name, ...(this.#from.alsoClear ?? [])].map(name => this.#named(name, isSecure).clear())
  }

  #parse(value: string, header: VisitRequest['cookie']): Required<OldSessionId> | null {
    if (value === '' || value.length > MAX_LENGTH) return null
    const all = (name: string) => this.#named(name, true).candidates(header)
    let id: OldSessionId | null
    try {
      id = this.#from.parse ? this.#from.parse(value, all) : { id: value }
    } catch {
      return null
    }
    if (typeof id?.id !== 'string' || id.id === '') return null
    return { id: id.id, secret: id.secret ?? value }
  }

  #named(name: string, isSecure: boolean): SessionCookie {
    // Browsers let only a secure cookie change one with such a prefix.
    const secure = isSecure || /^__(?:host|secure)-/i.test(name)
    return new SessionCookie({ ...this.#attributes, name, secure })
  }
}
