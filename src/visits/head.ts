// The headers that a response needs because of its session, and how they are merged with those that it already has.

/** Asked for when the head of the response is written. */
export interface HeadRules {
  /** Whole `Set-Cookie` values. Nothing else may set cookies of these names in this response: the browser keeps the last one. */
  readonly cookies: readonly string[]
  /** Request headers that the response depends on. */
  readonly vary: readonly string[]
  readonly noStore: boolean
}

/** With other headers, which the response gets unless it has them. */
export interface MoreRules extends HeadRules {
  readonly others?: readonly (readonly [name: string, value: string])[]
}

export const NO_RULES: HeadRules = { cookies: [], vary: [], noStore: false }
/** For a request whose cookie was read. */
export const COOKIE_READ: HeadRules = { ...NO_RULES, vary: ['Cookie'] }
/** For a request whose response may depend on a session. */
export const PERSONAL: HeadRules = { ...COOKIE_READ, noStore: true }

/** Whether a request asks for another protocol, such as a WebSocket: its answer has no head that could carry cookies. */
export const isHandshake = (upgrade: string | null | undefined): boolean =>
  // HTTP/2 and TLS are offered with ordinary requests (curl --http2, clients in Java).
  upgrade != null && !upgrade.split(',').every(protocol => /^(?:h2c|tls\/.*)$/i.test(protocol.trim()))

export type HeaderValue = number | string | readonly string[] | undefined

/** The head of a response, of any kind of server. */
export interface Head {
  getHeader(name: string): HeaderValue
  setHeader(name: string, value: string | readonly string[]): unknown
}

export const linesOf = (value: HeaderValue): string[] => (value === undefined ? [] : [value].flat().map(String))

const textOf = (value: HeaderValue): string => linesOf(value).join(', ')

/** Writes the rules into a head. Writing them again changes nothing. */
export function writeRules({ cookies, vary, noStore, others = [] }: MoreRules, head: Head): void {
  for (const name of vary) head.setHeader('Vary', withVary(textOf(head.getHeader('Vary')), name))
  if (noStore && !NO_STORE.test(textOf(head.getHeader('Cache-Control')))) head.setHeader('Cache-Control', 'no-store')
  if (cookies.length > 0) {
    const names = cookies.map(nameOf)
    const kept = linesOf(head.getHeader('Set-Cookie')).filter(line => !names.includes(nameOf(line)))
    head.setHeader('Set-Cookie', [...kept, ...cookies])
  }
  for (const [name, value] of others) if (head.getHeader(name) === undefined) head.setHeader(name, value)
}

/** A Cache-Control that already forbids storing the response (RFC 9111, section 5.2.2.5). */
const NO_STORE = /(?:^|[\s,])no-store(?:[\s,]|$)/i

/** Vary with one more field name (RFC 9110, section 12.5.5). */
function withVary(value: string, name: string): string {
  if (value.trim() === '') return name
  const names = value.split(',').map(each => each.trim().toLowerCase())
  return names.includes('*') || names.includes(name.toLowerCase()) ? value : `${value}, ${name}`
}

const nameOf = (cookie: string): string => cookie.split('=', 1)[0]!.trim()

/** Writes the rules into the headers of a `Response`, and returns those. */
export function writeHeaders(rules: MoreRules, headers: Headers): Headers {
  writeRules(rules, {
    getHeader: name => (name === 'Set-Cookie' ? headers.getSetCookie() : (headers.get(name) ?? undefined)),
    setHeader(name, value) {
      headers.delete(name)
      for (const each of linesOf(value)) headers.append(name, each)
    },
  })
  return headers
}

/** The rules as headers, with those that are there `before`. */
export const headersOf = (rules: HeadRules, before?: Headers): Headers => writeHeaders(rules, new Headers(before))
