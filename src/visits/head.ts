// The headers that a response needs because of its session, and how they are merged with those that it already has.

/** Asked for when the head of the response is written. */
export interface HeadRules {
  /** Whole `Set-Cookie` values. Nothing else may set cookies of these names in this response: the browser keeps the last one. */
  readonly cookies: readonly string[]
  /** Request headers that the response depends on. */
  readonly vary: readonly string[]
  readonly noStore: boolean
  /** Headers that the response gets unless it has them. */
  readonly others: readonly (readonly [name: string, value: string])[]
}

export const NO_RULES: HeadRules = { cookies: [], vary: [], noStore: false, others: [] }
/** For a request whose cookie was read. */
export const COOKIE_READ: HeadRules = { ...NO_RULES, vary: ['Cookie'] }
/** For a request whose response may depend on a session. */
export const PERSONAL: HeadRules = { ...COOKIE_READ, noStore: true }

/** The head of a response, of whichever server. */
export interface Head {
  get(name: string): string | null
  cookies(): readonly string[]
  set(name: string, value: string | readonly string[]): void
}

/** Writes the rules into a head. Writing them again changes nothing. */
export function writeRules({ cookies, vary, noStore, others }: HeadRules, head: Head): void {
  for (const name of vary) head.set('Vary', withVary(head.get('Vary'), name))
  if (noStore && !isNoStore(head.get('Cache-Control'))) head.set('Cache-Control', 'no-store')
  if (cookies.length > 0) {
    const names = cookies.map(nameOf)
    head.set('Set-Cookie', [...head.cookies().filter(cookie => !names.includes(nameOf(cookie))), ...cookies])
  }
  for (const [name, value] of others) if (head.get(name) === null) head.set(name, value)
}

/** Whether a Cache-Control forbids to keep the response: such a value stays (RFC 9111, section 5.2.2.5). */
const isNoStore = (value: string | null): boolean => value !== null && /(?:^|[\s,])no-store(?:[\s,]|$)/i.test(value)

/** Vary with one more field name (RFC 9110, section 12.5.5). */
function withVary(value: string | null, name: string): string {
  if (value === null || value.trim() === '') return name
  const names = value.split(',').map(each => each.trim().toLowerCase())
  return names.includes('*') || names.includes(name.toLowerCase()) ? value : `${value}, ${name}`
}

const nameOf = (cookie: string): string => cookie.split('=', 1)[0]!.trim()

/** The head of a `Response`. */
export class FetchHead implements Head {
  readonly #headers: Headers

  constructor(headers: Headers) {
    this.#headers = headers
  }

  get(name: string): string | null {
    return this.#headers.get(name)
  }

  cookies(): readonly string[] {
    return this.#headers.getSetCookie()
  }

  set(name: string, value: string | readonly string[]): void {
    this.#headers.delete(name)
    for (const each of typeof value === 'string' ? [value] : value) this.#headers.append(name, each)
  }
}
