// The old cookie in a request, and how it is removed from the browser.
import { SessionCookie } from '../visits/cookie.ts'
import type { VisitRequest } from '../visits/visit.ts'
import type { OldCookie, OldSessionId, OldSessions } from './from.ts'

/** What a request brought under the old cookie's name: a ticket, nothing, or several values of which none is honoured. */
export type Brought = Required<OldSessionId> | 'several' | null

/** A cookie longer than this is none of any library: browsers keep 4096 bytes (RFC 6265, section 6.1). */
const MAX_LENGTH = 4096

/** The cookies of one other library. */
export class OldCookies {
  readonly name: string
  readonly #from: OldSessions<never>
  readonly #attributes: Pick<OldCookie, 'path' | 'domain'>
  readonly #cookie: SessionCookie
  readonly #lines = new Map<boolean, readonly string[]>()

  /** @throws TypeError that quotes what is malformed */
  constructor(from: OldSessions<never>) {
    const { cookie } = from
    const { name, path, domain } = typeof cookie === 'string' ? { name: cookie } : cookie
    this.name = name
    this.#from = from
    this.#attributes = { ...(path !== undefined && { path }), ...(domain !== undefined && { domain }) }
    this.#cookie = this.#named(name, true)
  }

  /** The names of all cookies that go with the session. */
  get names(): readonly string[] {
    return [this.name, ...(this.#from.alsoClear ?? [])]
  }

  /**
   * What the Cookie header names. Of several different values none is honoured, as of our own cookie: a sibling host can
   * plant one, and neither the first nor the last is safe.
   */
  in(header: VisitRequest['cookie']): Brought {
    const values = this.#cookie.candidates(header)
    const [value] = values
    if (value === undefined || value === '' || value.length > MAX_LENGTH) return null
    if (values.length > 1) return 'several'
    const ticket = this.#from.parse
      ? this.#from.parse(value, name => this.#single(header, name))
      : { id: value, secrets: [value] as const }
    if (ticket === null || ticket === undefined || typeof ticket.id !== 'string' || ticket.id === '') return null
    return { id: ticket.id, secrets: ticket.secrets ?? [value] }
  }

  /** `Set-Cookie` values that remove the cookies. `isSecure`: cookies of this service go over HTTPS alone. */
  removal(isSecure: boolean): readonly string[] {
    let lines = this.#lines.get(isSecure)
    if (lines === undefined) {
      lines = this.names.map(name => this.#named(name, isSecure).clear())
      this.#lines.set(isSecure, lines)
    }
    return lines
  }

  #single(header: VisitRequest['cookie'], name: string): string | null {
    const values = this.#named(name, true).candidates(header)
    return values.length === 1 ? values[0]! : null
  }

  #named(name: string, isSecure: boolean): SessionCookie {
    // Browsers change a cookie with such a prefix by a secure one alone.
    const secure = isSecure || /^__(?:host|secure)-/i.test(name)
    return new SessionCookie({ ...this.#attributes, name, secure })
  }
}
