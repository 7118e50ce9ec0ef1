// A cookie jar that knows scopes: one cookie for each name, domain, path and partition (RFC 6265, sections 5.3 and 5.4).
interface Kept {
  readonly name: string
  readonly value: string
  readonly domain: string
  readonly isHostOnly: boolean
  readonly path: string
  readonly isPartitioned: boolean
  /** On the clock of the jar, ms. */
  readonly end: number
}

const isOfOnePlace = (one: Kept, other: Kept) =>
  (['name', 'domain', 'isHostOnly', 'path', 'isPartitioned'] as const).every(key => one[key] === other[key])

export class ScopedJar {
  #kept: Kept[] = []
  readonly #clock: { readonly now: number }

  constructor(clock: { readonly now: number }) {
    this.#clock = clock
  }

  /** Takes the `Set-Cookie` lines of a response of `host`. */
  take(lines: readonly string[], host: string): void {
    for (const line of lines) {
      const [pair = '', ...rest] = line.split(/; */)
      const attributes = new Map(rest.map(each => each.split('=', 2) as [string, string]))
      const [name = '', value = ''] = pair.split('=', 2)
      const domain = attributes.get('Domain')
      const cookie: Kept = {
        name,
        value,
        domain: (domain ?? host).replace(/^\./, ''),
        isHostOnly: domain === undefined,
        path: attributes.get('Path') ?? '/',
        isPartitioned: attributes.has('Partitioned'),
        end: this.#clock.now + Number(attributes.get('Max-Age') ?? Number.POSITIVE_INFINITY) * 1000,
      }
      this.#kept = this.#kept.filter(each => !isOfOnePlace(each, cookie))
      if (cookie.end > this.#clock.now) this.#kept.push(cookie)
    }
  }

  /** The Cookie header of a request: longer paths first, then the older ones. */
  header(host: string, path: string): string {
    return this.#kept
      .filter(({ domain, isHostOnly }) => host === domain || (!isHostOnly && host.endsWith(`.${domain}`)))
      .filter(each => each.end > this.#clock.now && path.startsWith(each.path))
      .toSorted((one, other) => other.path.length - one.path.length)
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ')
  }
}
