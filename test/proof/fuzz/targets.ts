// What comes with a request: cookies, tokens, signatures, origins, addresses.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { SessionCookie, withCookies } from 'coatcheck/custom-server'
import { decoded, signedId } from '../../../src/import/readers/signature.ts'
import { parseSeries, parseToken } from '../../../src/manager/series.ts'
import { exactOrigins, isCrossOrigin, isToken, maskToken } from '../../../src/visits/cross-origin.ts'
import { isForwardedLocally, isLocalHost, proxyTest } from '../../../src/visits/secure.ts'
import { answerOf, BASE64URL, DIGITS, isDecimal, LETTERS, onlyOf, same, type Target } from './target.ts'

const ID = 'Zk1vX0bq7TnE-Zk1vX0bq7TnE_Zk1vX0bq7TnEabcde'
const OTHER = ID.replace('Z', 'Y')

/** Without the blanks at both ends, by a loop. */
function stripped(text: string, blanks: string): string {
  let [from, to] = [0, text.length]
  while (from < to && blanks.includes(text[from]!)) from += 1
  while (to > from && blanks.includes(text[to - 1]!)) to -= 1
  return text.slice(from, to)
}
/** What String.prototype.trim takes away (ECMA-262, 22.1.3.32). */
const WHITE =
  ' \t\n\v\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff'

// RFC 6265, section 5.4, and the processing of a pair in section 5.2: only space and tab are taken off.
const pairsOf = (header: string) =>
  header.split(';').flatMap(pair => {
    const [name, ...rest] = pair.split('=')
    return rest.length === 0 ? [] : [[pair, stripped(name!, ' \t'), stripped(rest.join('='), ' \t')] as const]
  })
// RFC 6265, section 4.1.1: a value may stand between two quotes.
const unquoted = (value: string) =>
  value.length > 1 && value.at(0) === '"' && value.at(-1) === '"' ? value.slice(1, -1) : value
const valuesOf = (header: string, name: string) => [
  ...new Set(pairsOf(header).flatMap(([, key, value]) => (key === name ? [unquoted(value)] : []))),
]

const COOKIES = [{}, { hostPrefix: true }, { name: 'a' }].map(options => new SessionCookie(options))
const cookie: Target = {
  name: 'cookie',
  corpus: [
    `session_id=${ID}`,
    `theme=dark; session_id=${ID}; a=1`,
    `session_id=${ID}; session_id=${OTHER}`,
    `a=1; a=1;a=2`,
    `\t__Host-session_id = ${ID} ;session_id="x"; =b; c`,
    `\u00a0session_id=${ID}\na=3`,
    '=session_id=x; __Host-session_id==',
  ],
  more: ['; ', '%3D', '__proto__=1'],
  check(input) {
    for (const ours of COOKIES) {
      const { name } = ours
      const lines = input.split('\n')
      for (const [header, text] of [
        [input, input],
        [lines, lines.join(';')],
      ] as const) {
        const values = valuesOf(text, name)
        same(ours.candidates(header), values, `candidates for ${name}`)
        const others = valuesOf(text, name.startsWith('__Host-') ? name.slice(7) : `__Host-${name}`)
        same(ours.valuesOfBothNames(header), [...new Set([...values, ...others])], `both names of ${name}`)
      }
      const set = withCookies(input, [{ name, value: ID }])
      same(ours.candidates(set), [ID], 'the cookie that was set')
      const removed = withCookies(input, [{ name, value: '' }])
      same(ours.candidates(removed), [], 'the cookie that was removed')
      for (const other of COOKIES)
        if (other !== ours) same(valuesOf(removed, other.name), valuesOf(input, other.name), 'another cookie')
    }
  },
}

const TOKEN = `${ID}.${OTHER}`
const rememberToken: Target = {
  name: 'remember-token',
  corpus: [
    TOKEN,
    `${TOKEN}.`,
    `${ID}..${OTHER}`,
    '{"current":"a","previous":null,"salt":"b","rotatedAt":1,"createdAt":2,"touchedAt":3,"issuedFor":4}',
    '{"current":"a","previous":"c","salt":"b","rotatedAt":1,"createdAt":2,"touchedAt":null,"issuedFor":4,"__proto__":{"isAdmin":true}}',
    'null',
    '[]',
  ],
  more: ['-1', '1e999', '"current"', '"__proto__":', '[]', '\\u0000'],
  check(input) {
    const [selector, verifier, ...rest] = input.split('.')
    const isSound =
      rest.length === 0 && [selector, verifier].every(half => half?.length === 43 && onlyOf(half, BASE64URL))
    const parsed = parseToken(null, input)
    same(parsed && [parsed.selector, parsed.verifier], isSound ? [selector, verifier] : null, 'parseToken')
    if (parsed !== null) assert.equal(parsed.key.length, 46)
    const series = parseSeries(input)
    let json: Record<string, unknown> | null = null
    try {
      json = JSON.parse(input)
    } catch {}
    const isSeries = typeof json?.current === 'string'
    same(series !== null, isSeries, 'parseSeries')
  },
}

const CSRF = ID
const csrf: Target = {
  name: 'csrf',
  corpus: [CSRF, maskToken(CSRF), maskToken(OTHER), '', `${CSRF}=`, CSRF.slice(1)],
  more: ['A', '+', '/', ' '],
  check(input) {
    // base64url of mask and masked token, read with another decoder: XOR of the halves, character by character.
    const unmasked = () => {
      if (input.length !== 115) return null
      const bytes = atob(
        [...input]
          .map(char => ({ '-': '+', _: '/' })[char] ?? char)
          .join('')
          .padEnd(116, '='),
      )
      return Array.from({ length: 43 }, (_, at) =>
        String.fromCharCode(bytes.charCodeAt(at) ^ bytes.charCodeAt(43 + at)),
      ).join('')
    }
    // What is not base64url is decoded leniently by us; the reference has nothing to say there but for the plain token.
    const isStrict = onlyOf(input, BASE64URL)
    const expected = input === CSRF || (isStrict && unmasked() === CSRF)
    const ours = isToken(CSRF, input)
    if (isStrict || input.length === 43) same(ours, expected, 'isToken')
    for (const odd of [undefined, null, 1, [input], { length: input.length }])
      same(isToken(CSRF, odd), false, 'isToken')
  },
}

/** Percent-decoding with an UTF-8 decoder of its own (RFC 3629), as `decodeURIComponent` has it; `null` where it refuses. */
function percentDecoded(text: string): string | null {
  let out = ''
  for (let at = 0; at < text.length; ) {
    if (text[at] !== '%') {
      out += text[at]
      at += 1
      continue
    }
    const byteAt = (place: number) => {
      const hex = text.slice(place + 1, place + 3)
      return text[place] === '%' && hex.length === 2 && onlyOf(hex.toLowerCase(), `${DIGITS}abcdef`)
        ? Number.parseInt(hex, 16)
        : -1
    }
    const first = byteAt(at)
    if (first < 0) return null
    const more = first < 0x80 ? 0 : first >> 5 === 6 ? 1 : first >> 4 === 14 ? 2 : first >> 3 === 30 ? 3 : -1
    if (more < 0) return null
    let point = more === 0 ? first : first & (0x3f >> more)
    for (let i = 1; i <= more; i += 1) {
      const next = byteAt(at + 3 * i)
      if (next >> 6 !== 2) return null
      point = point * 64 + (next & 63)
    }
    const least = [0, 0x80, 0x800, 0x10000][more]!
    if (point < least || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return null
    out += String.fromCodePoint(point)
    at += 3 * (more + 1)
  }
  return out
}

const SECRETS = ['keyboard cat', 'older'] as const
const signed = (text: string, secret: string) =>
  `${text}.${createHmac('sha256', secret).update(text).digest('base64').split('=')[0]}`
const signature: Target = {
  name: 'signature',
  corpus: [
    signed('Zk1vX0bq7TnE', SECRETS[0]),
    `${signed('Zk1vX0bq7TnE', SECRETS[1])}=`,
    signed('a.b.c', SECRETS[0]),
    encodeURIComponent(signed('é ;', SECRETS[0])),
    '"%C3%A9"',
    '%F0%9F%8D%AA%ED%A0%80%C0%80%',
    '.x',
  ],
  more: ['==', '%2E', '%C3%A9', '%FF', '%c0%80', signed('a', SECRETS[0]), signed('', SECRETS[0])],
  check(input) {
    const isQuoted = input.length > 1 && input[0] === '"' && input[input.length - 1] === '"'
    same(decoded(input), percentDecoded(isQuoted ? input.slice(1, input.length - 1) : input), 'decoded')
    const parts = input.split('.')
    const last = parts.pop()!
    const text = parts.join('.')
    const isGenuine =
      text !== '' &&
      SECRETS.some(secret => ['', '=', '=='].some(padding => `${text}.${last}` === signed(text, secret) + padding))
    const ticket = signedId(input, SECRETS)
    same(ticket?.id ?? null, isGenuine ? text : null, 'signedId')
    if (ticket !== null)
      same(
        ticket.secret,
        SECRETS.map(secret => signed(text, secret)).find(each => input.startsWith(each)),
        'secret',
      )
  },
}

const isLabel = (text: string) => text !== '' && text.length <= 63 && onlyOf(text, `${LETTERS}${DIGITS}-`)
/** Whether an http origin is exact; `null` where only the URL Standard could tell (IPv4, IPv6, punycode, odd characters). */
function isPlainOrigin(text: string): boolean | null {
  const scheme = text.startsWith('https://') ? 'https://' : text.startsWith('http://') ? 'http://' : null
  if (scheme === null) return null
  const [host = '', port, ...more] = text.slice(scheme.length).split(':')
  const labels = host.split('.')
  if (!labels.every(isLabel) || host.length > 253 || labels.some(label => label.startsWith('xn--') || label[2] === '-'))
    return null
  if (![...labels.at(-1)!].some(char => LETTERS.includes(char)) || labels.at(-1)!.startsWith('0x')) return null
  if (more.length > 0) return false
  if (port === undefined) return true
  return isDecimal(port, 5) && Number(port) <= 65535 && Number(port) !== (scheme === 'https://' ? 443 : 80)
}

const origins: Target = {
  name: 'origins',
  corpus: [
    'https://app.example.com',
    'http://localhost:3000',
    'https://app.example.com:443',
    'https://APP.example.com/',
    'chrome-extension://abcdefgh',
    'https://*.example.com',
    'https://1.2.3.4:80',
    'http://[::1]:3000',
    'https://user@app.example.com',
    'null',
    'https://app.example.com\nsame-site\napp.example.com\nPOST',
    'https://app.example.com\n\nexample.com\nPOST',
    'http://app.example.com:8080\n\napp.example.com:8080\nDELETE',
    '\ncross-site\na\nGET',
  ],
  more: ['https://', 'http://', 'example.com', '?', '#', '\\', 'xn--', '%2e', '\t', 'same-origin', 'none'],
  check(input) {
    const [origin = '', site = '', host = '', method = ''] = input.split('\n')
    const answer = answerOf(() => exactOrigins([origin], 'origins'))
    const isAccepted = 'value' in answer
    if (isAccepted) {
      // RFC 6454: scheme, host and port, and nothing else; what could hide another host is in none.
      assert.match(origin, /^[a-z][a-z0-9+.-]*:\/\/[^/?#@\s\\*A-Z]+$/)
      assert.ok(!/^https?:/.test(origin) || new URL(origin).href === `${origin}/`)
    } else assert.match(answer.typeError, /^origins: expected exact origins/)
    const known = isPlainOrigin(origin)
    if (known !== null) same(isAccepted, known, 'exactOrigins')
    // Go 1.25's http.CrossOriginProtection, as a table.
    const headers = { origin: origin || null, 'sec-fetch-site': site || null, host: host || null }
    for (const upgrade of [false, true])
      for (const allowed of [new Set<string>(), new Set([origin])]) {
        const ours = isCrossOrigin({ method, upgrade, header: name => headers[name] }, allowed)
        const isRead = ['GET', 'HEAD', 'OPTIONS'].includes(method) && !upgrade
        const isOwn = ['same-origin', 'none'].includes(site)
        const isListed = origin !== '' && allowed.has(origin)
        const after = origin.split('://').slice(1).join('://')
        const scheme = origin.split('://')[0]!.toLowerCase()
        const port = { http: ':80', https: ':443' }[scheme]
        const written = (text: string) => {
          const low = text.toLowerCase()
          return port !== undefined && low.endsWith(port) ? low.slice(0, -port.length) : low
        }
        const isSame =
          origin === '' || (host !== '' && after !== '' && port !== undefined && written(after) === written(host))
        const expected = !isRead && !isOwn && !isListed && (site !== '' || !isSame)
        same(ours, expected, 'isCrossOrigin')
      }
  },
}

/** An address as a number of 128 bits, an IPv4 address as its mapped form (RFC 4291, section 2.5.5.2); `null`: none. */
function numberOf(text: string): { value: bigint; bits: 32 | 128 } | null {
  const v4 = (part: string) => {
    const bytes = part.split('.')
    if (bytes.length !== 4 || !bytes.every(byte => isDecimal(byte, 3) && Number(byte) < 256)) return null
    return bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n)
  }
  const plain = v4(text)
  if (plain !== null) return { value: 0xffff_0000_0000n + plain, bits: 32 }
  const halves = text.split('::')
  if (halves.length > 2) return null
  const groupsOf = (half: string, isLast: boolean): bigint[] | null => {
    if (half === '') return []
    const groups: bigint[] = []
    const parts = half.split(':')
    for (const [at, part] of parts.entries()) {
      if (isLast && at === parts.length - 1 && part.includes('.')) {
        const embedded = v4(part)
        if (embedded === null) return null
        groups.push(embedded >> 16n, embedded & 0xffffn)
      } else if (part !== '' && part.length <= 4 && onlyOf(part.toLowerCase(), `${DIGITS}abcdef`))
        groups.push(BigInt(`0x${part}`))
      else return null
    }
    return groups
  }
  const [head, tail] =
    halves.length === 1 ? [groupsOf(text, true), []] : [groupsOf(halves[0]!, false), groupsOf(halves[1]!, true)]
  if (head === null || tail === null) return null
  const count = head.length + tail.length
  if (halves.length === 1 ? count !== 8 : count > 7) return null
  const all = [...head, ...Array<bigint>(8 - count).fill(0n), ...tail]
  return { value: all.reduce((sum, group) => sum * 65536n + group, 0n), bits: 128 }
}

const proxies: Target = {
  name: 'proxies',
  corpus: [
    '10.0.0.0/8\n10.1.2.3',
    '127.0.0.1\n::ffff:127.0.0.1',
    'fd00::/8\nfd12:3456::1',
    '::ffff:10.0.0.0/104\n10.200.0.1',
    '2001:db8::1\n2001:DB8:0:0:0:0:0:1',
    'fe80::/10\nfe80::1%eth0',
    '0.0.0.0/0\n1.2.3.4',
    '::/0\n1.2.3.4',
    '1:2:3:4:5:6:7::/33\n1:2:3:4:5:6:7:8',
    '192.168.1.1/31\n192.168.1.0',
  ],
  more: ['32', '128', '129', '::', '::ffff:', '255', '256', '01', '%eth0', '-1', '1e1'],
  check(input) {
    const [entry = '', peer = ''] = input.split('\n')
    const [text = '', prefix, ...more] = entry.split('/')
    const base = numberOf(text)
    const width = base?.bits ?? 0
    const isSound =
      base !== null && more.length === 0 && (prefix === undefined || (isDecimal(prefix, 3) && Number(prefix) <= width))
    const answer = answerOf(() => proxyTest([entry]))
    same('value' in answer, isSound, 'proxyTest')
    if (!('value' in answer)) {
      assert.match(answer.typeError, /^trustedProxies: expected addresses and ranges/)
      return
    }
    const zone = peer.indexOf('%')
    const isZone = zone === -1 || (peer.slice(0, zone).includes(':') && /^[0-9a-zA-Z.:-]+$/.test(peer.slice(zone + 1)))
    const address = isZone ? numberOf(zone === -1 ? peer : peer.slice(0, zone)) : null
    const bits = prefix === undefined ? width : Number(prefix)
    const shift = BigInt(width - bits)
    const isIn = address !== null && base !== null && address.value >> shift === base.value >> shift
    same(answer.value(peer), isIn, 'a peer among the proxies')
    same(answer.value(undefined), false, 'a peer without an address')
  },
}

const isLoopbackAddress = (text: string) => {
  const low = text.toLowerCase()
  if (low === '::1') return true
  const bytes = (low.startsWith('::ffff:') ? low.slice(7) : low).split('.')
  return (
    bytes.length === 4 &&
    bytes[0] === '127' &&
    bytes.every(byte => byte !== '' && byte.length <= 3 && onlyOf(byte, DIGITS))
  )
}
function isLocalName(text: string): boolean {
  const low = text.toLowerCase()
  const at = low.startsWith('[') ? low.indexOf(']') + 1 : low.includes(':') ? low.indexOf(':') : low.length
  const port = low.slice(at)
  if (port !== '' && !(port[0] === ':' && port.length > 1 && port.length <= 6 && onlyOf(port.slice(1), DIGITS)))
    return false
  const host = low.slice(0, at)
  if (host === '[::1]' || (isLoopbackAddress(host) && !host.includes(':'))) return true
  const labels = (host.endsWith('.') ? host.slice(0, -1) : host).split('.')
  return (
    labels.at(-1) === 'localhost' &&
    labels.slice(0, -1).every(label => label !== '' && onlyOf(label, `${LETTERS}${DIGITS}-`))
  )
}
const NAMES = [
  'x-forwarded-for',
  'x-real-ip',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-port',
  'via',
] as const
const https: Target = {
  name: 'https',
  corpus: [
    'localhost:3000',
    'app.localhost.',
    '127.0.0.1:80',
    '[::1]:8080',
    'localhost.example.com',
    '127.0.0.1.example.com',
    'localhost\n127.0.0.1\n\nlocalhost:3000\nhttp\n3000',
    'localhost\n::ffff:127.0.0.1, ::1\n127.0.0.1\nlocalhost, a.localhost\nhttp,http',
    'localhost\n203.0.113.9',
    'localhost\n\n\n\n\n\n1.1 nginx',
  ],
  more: ['127.0.0.1', '::1', '::ffff:', ', ', 'https', 'HTTP', '-', '_', '\t', '127.1'],
  check(input) {
    const [host = '', ...values] = input.split('\n')
    same(isLocalHost(host), isLocalName(host), 'isLocalHost')
    const header = (name: string) => values[NAMES.indexOf(name as never)] || undefined
    const ours = isForwardedLocally(header)
    const [addresses, real, hosts, schemes, port, via] = NAMES.map(header)
    const all = (value: string | undefined, test: (part: string) => boolean) =>
      value
        ?.split(',')
        .map(part => stripped(part, WHITE))
        .every(test)
    const isNone = [addresses, real, hosts, schemes, port].every(each => each === undefined)
    const expected =
      via === undefined &&
      (isNone ||
        (all(addresses, isLoopbackAddress) === true &&
          all(real, isLoopbackAddress) !== false &&
          all(hosts, isLocalName) !== false &&
          all(schemes, scheme => scheme.toLowerCase() === 'http') !== false))
    same(ours, expected, 'isForwardedLocally')
    for (const odd of [['127.0.0.1'], 1, {}])
      same(
        isForwardedLocally(name => (name === 'x-forwarded-for' ? odd : undefined)),
        false,
        'a header that is no text',
      )
  },
}

export const TARGETS: readonly Target[] = [cookie, rememberToken, csrf, signature, origins, proxies, https]
