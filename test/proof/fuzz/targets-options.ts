// What developers and operators write: user IDs, durations, store URLs.
import assert from 'node:assert/strict'
import { UsageError } from '../../../src/command/errors.ts'
import { parseStoreUrl } from '../../../src/command/store-url.ts'
import { USER_ID_FORMATS } from '../../../src/session/users.ts'
import { milliseconds } from '../../../src/text/duration.ts'
import { answerOf, DIGITS, isDecimal, MAX_U64, onlyOf, plainText, same, type Target } from './target.ts'

/** Whether text is well-formed UTF-16, by a loop over the pairs. */
function isWellFormed(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code >= 0xdc00 && code < 0xe000) return false
    if (code >= 0xd800 && code < 0xdc00) {
      at += 1
      const next = text.charCodeAt(at)
      if (!(next >= 0xdc00 && next < 0xe000)) return false
    }
  }
  return true
}

const userId: Target = {
  name: 'user-id',
  corpus: [
    '0',
    '42',
    '9007199254740991',
    '9007199254740992',
    '18446744073709551615',
    '18446744073709551616',
    '-1',
    '0x10',
    ' 12',
    '1e3',
    '007',
    'ada',
    '\u{1f36a}',
    'a\tb',
    'x'.repeat(128),
  ],
  more: ['9', '+', '.', 'n', '_', '\ud800', '\udc00', '\0', '\x7f'],
  check(input) {
    const { bigint, number, string } = USER_ID_FORMATS
    const big = isDecimal(input, 20) && BigInt(input) <= MAX_U64 ? BigInt(input) : null
    same(bigint.fromText(input), big, 'bigint')
    same(number.fromText(input), big !== null && big < 2n ** 53n ? Number(input) : null, 'number')
    const codes = [...input].map(char => char.codePointAt(0)!)
    const isText =
      input.length >= 1 && input.length <= 128 && isWellFormed(input) && !codes.some(code => code < 32 || code === 127)
    same(string.fromText(input), isText ? input : null, 'text')
    if (big !== null) {
      same(bigint.toText(big), input, 'bigint to text')
      if (big < 2n ** 53n)
        same([bigint.toText(Number(input)), number.toText(Number(input))], [input, input], 'number to text')
    }
    for (const format of [bigint, number] as const)
      assert.match(
        (answerOf(() => format.toText(input as never)) as { typeError: string }).typeError,
        /^user ID: expected /,
      )
    same('value' in answerOf(() => string.toText(input)), isText, 'text to text')
    const value = Number(input)
    same(
      'value' in answerOf(() => number.toText(value)),
      Number.isInteger(value) && value >= 0 && value < 2 ** 53,
      'a number',
    )
    return `${big !== null} ${isText} ${Number.isInteger(value)}`
  },
}

const UNITS: Record<string, number> = { ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5 }
const duration: Target = {
  name: 'duration',
  corpus: [
    '500ms',
    '30m',
    '12h',
    '1.5h',
    '0.5ms',
    '36500d',
    '36501d',
    '0s',
    '1 h',
    '1H',
    '-1m',
    '1e3s',
    '.5s',
    '5.s',
    '1',
    '١h',
  ],
  more: ['9', 'Infinity', 'NaN', '\n', '_'],
  check(input) {
    const unit = input.endsWith('ms') ? 'ms' : input.slice(-1)
    const count = input.slice(0, input.length - unit.length)
    const [whole = '', fraction, ...more] = count.split('.')
    const isSound =
      unit in UNITS &&
      Object.hasOwn(UNITS, unit) &&
      more.length === 0 &&
      [whole, fraction ?? '0'].every(digits => digits !== '' && onlyOf(digits, DIGITS))
    const ms = isSound ? Math.round(Number.parseFloat(count) * UNITS[unit]!) : 0
    const answer = answerOf(() => milliseconds(input as never, 'idleTimeout'))
    if (ms >= 1 && ms <= 36500 * 864e5) same(answer, { value: ms }, 'milliseconds')
    else assert.match((answer as { typeError: string }).typeError, /^idleTimeout: expected a duration/)
    return `${unit in UNITS ? unit : '-'} ${isSound} ${ms > 0}`
  },
}

const PASSWORD = 'hunter2-hunter2'
const storeUrl: Target = {
  name: 'store-url',
  corpus: [
    `redis://default:${PASSWORD}@127.0.0.1:6379/0`,
    'rediss://[::1]:6380',
    `redis+cluster://:${PASSWORD}@a:7000,b:7001,[::1]:7002`,
    `postgres://ada:${PASSWORD}%40@db.example.com:5432/app?sslmode=require&password=${PASSWORD}`,
    'postgresql:///app',
    `mysql://root:${PASSWORD}@localhost/test`,
    `mariadb://root:${PASSWORD}@localhost:3306/test#x`,
    'sqlite:./sessions.db',
    'sqlite:///var/lib/sessions.db',
    'memory:',
    `redis://${PASSWORD}@@@:99999/x`,
    `${PASSWORD}`,
  ],
  more: ['redis+cluster', '://', '%40', '%00', '::1', '65536', '\n', ' '],
  check(input) {
    let parsed: ReturnType<typeof parseStoreUrl>
    try {
      parsed = parseStoreUrl(input, 'STORE_URL')
    } catch (error) {
      assert.ok(error instanceof UsageError, String(error))
      assert.ok(!error.message.includes(PASSWORD), `the error shows the password: ${error.message}`)
      return 'refused'
    }
    const at = input.indexOf('@')
    const userinfo = input.slice(
      input.indexOf('://') + 3,
      input.lastIndexOf('@', input.search(/[/?#]/g) > 0 ? undefined : input.length),
    )
    if (
      at > 0 &&
      userinfo.includes(PASSWORD) &&
      input.split(PASSWORD).length === 2 &&
      parsed.password.includes(PASSWORD)
    ) {
      assert.ok(parsed.secrets.some(secret => secret.includes(PASSWORD)))
      const place = input.slice(input.lastIndexOf('@'))
      if (!place.includes(PASSWORD))
        assert.ok(!parsed.name.includes(PASSWORD), `the name shows the password: ${parsed.name}`)
    }
    for (const { host, port } of parsed.nodes) assert.ok(host !== '' && port > 0 && port < 65536)
    // The URL Standard, where it is as strict: plain letters, and a host that it leaves as it is.
    if (/^(?:redis|postgres|mysql):\/\/[a-z0-9:@%.-]+\/[a-z0-9]*$/.test(input) && URL.canParse(input)) {
      const url = new URL(input)
      same(parsed.username, plainText(url.username), 'the user name')
      same(parsed.password, plainText(url.password), 'the password')
      if (url.password === '' || !url.host.includes(PASSWORD))
        assert.ok(parsed.name.includes(url.hostname), parsed.name)
    }
    return `${parsed.kind} ${parsed.tls} ${parsed.username !== ''} ${parsed.nodes.length}`
  },
}

export const OPTIONS: readonly Target[] = [userId, duration, storeUrl]
