// The cookies of the other library: which of a request are genuine, and how a browser removes them.
import { quote } from '../text/quote.ts'
import { MOST_VALUES } from '../visits/choose.ts'
import { SessionCookie, trimmed, unquoted } from '../visits/cookie.ts'
import type { VisitRequest } from '../visits/types.ts'
import type { OldCookie, OldSessionId, OldSessions } from './from.ts'

/** No library sends a longer cookie: browsers keep 4096 bytes (RFC 6265, section 6.1). */
const MAX_LENGTH = 4096
/** Of more values under one name most were planted, and each costs a signature. */
const MAX_VALUES = 8
/** What browsers take (RFC 6265bis, section 5.6), such as `koa:sess`. */
const NAME = /^[!-:<>-~]+$/

/** The values of a name. */
type Values = (name: string) => readonly string[]

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
    if (!NAME.test(name)) throw new TypeError(`cookie.name: expected a name such as 'connect.sid', got ${quote(name)}`)
    // Refuses malformed attributes.
    this.removal('', true)
  }

  /** The sessions that a Cookie header names. A value that is not genuine does not count: anyone could plant it. */
  in(header: VisitRequest['cookie']): Required<OldSessionId>[] {
    const values = valuesIn(header)
    const found = new Map<string, Required<OldSessionId>>()
    const pieces = this.#pieces(values).map(values)
    // Of two that claim one place, one is planted: then there is none.
    const joined = pieces.length > 0 && pieces.every(each => each.length === 1) ? [pieces.join('')] : []
    for (const value of [...values(this.name), ...joined]) {
      const id = this.#parse(value, values)
      if (id !== null && !found.has(id.id)) found.set(id.id, id)
    }
    // One more than may be looked up, so that it shows.
    return [...found.values()].slice(0, MOST_VALUES + 1)
  }

  /** `Set-Cookie` values that remove the cookies of a request. `isSecure`: cookies of this service go only over HTTPS. */
  removal(header: VisitRequest['cookie'], isSecure: boolean): string[] {
    return [this.name, ...this.#pieces(valuesIn(header)), ...(this.#from.alsoClear ?? [])].map(name => {
      // Browsers let only a secure cookie change one with such a prefix.
      const secure = isSecure || /^__(?:host|secure)-/i.test(name)
      return name + new SessionCookie({ ...this.#attributes, name: 'x', secure }).clear().slice(1)
    })
  }

  #pieces(values: Values): string[] {
    const names: string[] = []
    const next = () => `${this.name}.${names.length}`
    while (this.#from.isChunked && values(next()).length > 0) names.push(next())
    return names
  }

  #parse(value: string, values: Values): Required<OldSessionId> | null {
    if (value === '') return null
    let id: OldSessionId | null
    try {
      id = this.#from.parse ? this.#from.parse(value, values) : { id: value }
    } catch {
      return null
    }
    if (typeof id?.id !== 'string' || id.id === '') return null
    return { id: id.id, secret: id.secret ?? value }
  }
}

/** Reads a header once. */
function valuesIn(header: VisitRequest['cookie']): Values {
  const all = new Map<string, Set<string>>()
  for (const pair of [header ?? []].flat().flatMap(line => line.split(';'))) {
    const at = pair.indexOf('=')
    const value = unquoted(trimmed(pair.slice(at + 1)))
    if (at === -1 || value.length > MAX_LENGTH) continue
    const name = trimmed(pair.slice(0, at))
    all.set(name, (all.get(name) ?? new Set<string>()).add(value))
  }
  return name => [...(all.get(name) ?? [])].slice(0, MAX_VALUES)
}
