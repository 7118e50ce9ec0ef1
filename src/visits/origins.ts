import { quote } from '../text/quote.ts'

// RFC 6454, section 6.2, for schemes that the URL Standard gives no origin: browser extensions, WebView shells.
const OTHER_SCHEME = /^(?!https?:)[a-z][a-z0-9+.-]*:\/\/[a-z0-9._:[\]-]+$/

function isOrigin(value: string): boolean {
  if (OTHER_SCHEME.test(value)) return true
  // URL takes '*' for part of a host name; it would match nothing here, since origins are compared exactly.
  if (value.includes('*') || !/^https?:/.test(value)) return false
  try {
    return new URL(value).origin === value
  } catch {
    return false
  }
}

/**
 * The exact origins of an option, as browsers write them in `Origin`.
 * @throws TypeError that quotes an entry with a path, a wildcard, a default port or capitals
 */
export function originSet(origins: unknown, option: string): ReadonlySet<string> {
  if (origins === undefined) return new Set()
  if (!Array.isArray(origins)) throw new TypeError(`${option}: expected an array of origins, got ${quote(origins)}`)
  for (const origin of origins)
    if (typeof origin !== 'string' || !isOrigin(origin))
      throw new TypeError(
        `${option}: expected exact origins such as 'https://app.example.com' (no path, no wildcard, no default port), got ${quote(origin)}`,
      )
  return new Set(origins)
}
