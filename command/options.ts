import { UsageError } from './exit.ts'

/** Every option: what its value is called in the help (`null` for a switch), one letter for it, and what it does. */
export const OPTIONS = {
  store: {
    value: 'URL',
    text: 'where the sessions are, instead of COATCHECK_STORE_URL: other users of the machine see the URL in ps, with its password',
  },
  'user-ids': { value: 'KIND', text: "the application's userIds: u64 (default), number or text" },
  table: { value: 'NAME', text: "SQL: the store's option table (default: coatcheck_sessions)" },
  schema: { value: 'NAME', text: "SQL: the store's option schema (default: the connection's own)" },
  'key-prefix': { value: 'PREFIX', text: "Redis: the store's option prefix (default: coatcheck:)" },
  'allow-eviction': { value: null, text: "Redis: the store's option allowEviction" },
  'wait-replicas': { value: 'N', text: "Redis: the store's option waitReplicas" },
  namespace: { value: 'NAME', text: 'one tenant: its users alone' },
  'password-version': {
    value: 'N',
    text: 'from now on no login begins a session that verified a password of a lower version',
  },
  timeout: { value: 'TIME', text: 'how long each call waits for the store, such as 500ms, 10s, 1m (default: 10s)' },
  yes: { value: null, short: 'y', text: 'do it without asking' },
  json: { value: null, text: 'JSON on standard output, one object per line' },
  help: { value: null, short: 'h', text: 'this text' },
} as const satisfies Record<string, { value: string | null; text: string; short?: string }>

export type OptionName = keyof typeof OPTIONS
export const OPTION_NAMES = Object.keys(OPTIONS) as OptionName[]

/** What was given, each at most once; a switch is ''. */
export type Given = ReadonlyMap<OptionName, string>

/** Options that only one kind of store has, and what the other kind has instead. */
const ONLY: readonly { readonly names: readonly OptionName[]; readonly sql: boolean; readonly instead: string }[] = [
  { names: ['table', 'schema'], sql: true, instead: 'Redis has --prefix' },
  { names: ['key-prefix'], sql: false, instead: 'SQL stores have --table and --schema' },
  { names: ['allow-eviction', 'wait-replicas'], sql: false, instead: 'SQL stores have no such option' },
]

/** @throws UsageError for an option that would do nothing with this store */
export function checkKind(given: Given, isSql: boolean): void {
  for (const { names, sql, instead } of ONLY)
    for (const name of names)
      if (given.has(name) && sql !== isSql)
        throw new UsageError(`--${name} is for ${sql ? 'SQL stores' : 'Redis'}: ${instead}`)
}

export type UserKind = 'bigint' | 'number' | 'string'

export function userKindOf(given: Given): UserKind {
  const kind = given.get('user-ids') ?? 'bigint'
  if (kind === 'bigint' || kind === 'number' || kind === 'string') return kind
  throw new UsageError("--user-ids: expected u64, number or text, as the application's option userIds")
}

const MAX_U64 = 2n ** 64n - 1n
// Control characters separate a namespace from the ID.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\u0000-\u001f\u007f]/

/** The USER of the command line, as canonical text: '042' would be no one, and end nothing. */
export function userFrom(text: string, kind: UserKind): string {
  if (kind === 'string') {
    if (text === '' || text.length > 128 || !text.isWellFormed() || CONTROL.test(text))
      throw new UsageError('USER: expected text of 1 to 128 characters without control characters')
    return text
  }
  const max = kind === 'bigint' ? MAX_U64 : BigInt(Number.MAX_SAFE_INTEGER)
  if (!/^(0|[1-9][0-9]{0,19})$/.test(text) || BigInt(text) > max)
    throw new UsageError(
      `USER: expected a whole number from 0 to ${max}, without signs and leading zeros (for other user IDs: --user-ids string)`,
    )
  return text
}

/** @throws UsageError, which does not repeat the text: it may be a session ID */
export function keyFrom(text: string): string {
  if (/^[A-Za-z0-9_-]{46}$/.test(text)) return text
  throw new UsageError(
    'KEY: expected a key of 46 characters, as list prints them (a session ID has 43, and belongs in no command line)',
  )
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** How long each call waits, in ms. */
export function timeoutOf(given: Given): number {
  const [, count = '', unit = ''] = /^(\d{1,9})(ms|s|m|h)$/.exec(given.get('timeout') ?? '10s') ?? []
  const time = Number(count) * (UNITS[unit] ?? 0)
  if (time > 0 && time <= UNITS.h!) return time
  throw new UsageError('--timeout: expected a time of at most 1h, such as 500ms, 10s or 1m')
}

/** A whole number, or `undefined` where the option is not given. */
export function numberOf(given: Given, name: OptionName, max: number): number | undefined {
  const text = given.get(name)
  if (text === undefined) return undefined
  if (/^\d{1,10}$/.test(text) && Number(text) <= max) return Number(text)
  throw new UsageError(`--${name}: expected a whole number from 0 to ${max}`)
}
