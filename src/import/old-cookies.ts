// The cookies of the other library: which of a request are genuine, and how a browser removes them.
import { MOST_VALUES } from '../visits/choose.ts'
import { SessionCookie } from '../visits/cookie.ts'
import type { VisitRequest } from '../visits/types.ts'
import type { OldCookie, OldSessionId, OldSessions } from './from.ts'

/** No library sends a longer cookie: browsers keep 4096 bytes (RFC 6265, section 6.1). */
const MAX_LENGTH = 4096
/** More pieces would not fit into a request's head: Node takes 16 KiB. */
const PIECES = [0, 1, 2, 3]

export class OldCookies {
  readonly name: string
  readonly #from: OldSessions<never>
  readonly #attributes: Pick<OldCookie, 'path' | 'domain'>

  /** @throws TypeError that quotes a malformed option */
  constructor(from: OldSessions<never>) {
    const { name, path, domain } = typeof from.cookie === 'string' ? { name: from.cookie } : from.cookie
    this.name = name
    this.#from = from
    this.#attributes = { ...(path !== undefined && { path }), ...(domain !== undefined && { domain }) }
    this.#named(name, true)
  }

  /** The sessions that a Cookie header names. A value that is not genuine does not count: anyone could plant it. */
  in(header: VisitRequest['cookie']): Required<OldSessionId>[] {
    const found = new Map<string, Required<OldSessionId>>()
    for (const value of [...this.#all(this.name, header), ...this.#joined(header)]) {
      const id = this.#parse(value, header)
      if (id !== null && !found.has(id.id)) found.set(id.id, id)
    }
    // One more than may be looked up, so that it shows.
    return [...found.values()].slice(0, MOST_VALUES + 1)
  }

  /** `Set-Cookie` values that remove the cookies. `isSecure`: cookies of this service go only over HTTPS. */
  removal(isSecure: boolean): string[] {
    const pieces = this.#from.isChunked ? PIECES.map(piece => `${this.name}.${piece}`) : []
    return [this.name, ...pieces, ...(this.#from.alsoClear ?? [])].map(name => this.#named(name, isSecure).clear())
  }

  #parse(value: string, header: VisitRequest['cookie']): Required<OldSessionId> | null {
    if (value === '') return null
    const all = (name: string) => this.#all(name, header)
    let id: OldSessionId | null
    try {
      id = this.#from.parse ? this.#from.parse(value, all) : { id: value }
    } catch {
      return null
    }
    if (typeof id?.id !== 'string' || id.id === '') return null
    return { id: id.id, secret: id.secret ?? value }
  }

  #all(name: string, header: VisitRequest['cookie']): string[] {
    return this.#named(name, true)
      .candidates(header)
      .filter(value => value.length <= MAX_LENGTH)
  }

  /** A value in pieces. Of two that claim one place, one is planted: then there is none. */
  #joined(header: VisitRequest['cookie']): string[] {
    if (!this.#from.isChunked) return []
    const pieces = PIECES.map(piece => this.#all(`${this.name}.${piece}`, header))
    const end = pieces.findIndex(found => found.length === 0)
    const used = end === -1 ? pieces : pieces.slice(0, end)
    return used.length > 0 && used.every(found => found.length === 1) ? [used.flat().join('')] : []
  }

  #named(name: string, isSecure: boolean): SessionCookie {
    // Browsers let only a secure cookie change one with such a prefix.
    const secure = isSecure || /^__(?:host|secure)-/i.test(name)
    return new SessionCookie({ ...this.#attributes, name, secure })
  }
}
