// What a response has to carry, and how that goes together with what it carries already.

/** What a response has to carry, asked for when its head is written. */
export interface HeadDemands {
  /** Whole `Set-Cookie` values. */
  readonly cookies: readonly string[]
  /** Names of cookies that nobody else sets in a response that sets them here. */
  readonly cookieNames: readonly string[]
  readonly vary: readonly string[]
  readonly noStore: boolean
  readonly others: readonly (readonly [name: string, value: string])[]
}

/** Cache-Control that lets nobody keep the response; stays as it is where it says so already (RFC 9111, 5.2.2.5). */
export const withNoStore = (value: string | null): string =>
  value !== null && /(?:^|[\s,])no-store(?:[\s,]|$)/i.test(value) ? value : 'no-store'

/** Vary with one more field name (RFC 9110, section 12.5.5). */
export function withVary(value: string | null, name: string): string {
  if (value === null || value.trim() === '') return name
  const names = value.split(',').map(each => each.trim().toLowerCase())
  return names.includes('*') || names.includes(name.toLowerCase()) ? value : `${value}, ${name}`
}

/** The other party's cookies, then ours; theirs of our name are left out, because the last one would win. */
export function withCookies(existing: readonly string[], { cookies, cookieNames }: HeadDemands): string[] {
  const nameOf = (cookie: string) => cookie.slice(0, (cookie.indexOf('=') + 1 || cookie.length + 1) - 1).trim()
  return [...existing.filter(cookie => !cookieNames.includes(nameOf(cookie))), ...cookies]
}
