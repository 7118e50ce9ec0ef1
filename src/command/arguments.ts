// The command line: its commands and options, and how it is read.
import { parseArgs } from 'node:util'
import { UsageError } from './errors.ts'

interface Option {
  /** The placeholder for its value in the help; `null` for a switch. */
  readonly value: string | null
  readonly text: string
  readonly short?: string
  /** The kind of stores that has it. */
  readonly only?: 'SQL stores' | 'Redis'
}

export const OPTIONS = {
  store: { value: 'URL', text: 'where the sessions are; ps shows it to other users of the machine, with its password' },
  table: { value: 'NAME', text: "the store's option table (default: coatcheck_sessions)", only: 'SQL stores' },
  schema: { value: 'NAME', text: "the store's option schema (default: the connection's own)", only: 'SQL stores' },
  prefix: { value: 'PREFIX', text: "the store's option prefix (default: coatcheck:)", only: 'Redis' },
  'allow-eviction': { value: null, text: "the store's option allowEviction", only: 'Redis' },
  'single-slot': { value: null, text: "the store's option singleSlot", only: 'Redis' },
  namespace: { value: 'NAME', text: 'one tenant: its users alone' },
  'min-password-version': { value: 'N', text: 'refuses logins that verified a password of a lower version' },
  timeout: { value: 'TIME', text: 'how long each call waits for the store, such as 500ms, 10s, 1m (default: 10s)' },
  yes: { value: null, short: 'y', text: 'do it without asking' },
  json: { value: null, text: 'JSON on standard output, one object per line' },
  help: { value: null, short: 'h', text: 'this text' },
} as const satisfies Record<string, Option>

export type OptionName = keyof typeof OPTIONS
export const OPTION_NAMES = Object.keys(OPTIONS) as OptionName[]
const optionOf = (name: OptionName): Option => OPTIONS[name]

/** The given options, each at most once; a switch is ''. */
export type Given = ReadonlyMap<OptionName, string>

const TABLES = ['store', 'table', 'schema', 'json'] as const
const STORE = [...TABLES, 'timeout', 'prefix', 'allow-eviction', 'single-slot'] as const
const SESSIONS = [...STORE, 'namespace'] as const

interface Command {
  /** The words after the name; `?` at the end: may be left out. */
  readonly takes: readonly string[]
  readonly summary: string
  readonly options: readonly OptionName[]
}

export const COMMANDS = {
  ddl: { takes: [], summary: 'prints the DDL of the tables', options: TABLES },
  migrate: { takes: [], summary: 'creates the tables if they are missing', options: STORE },
  sweep: { takes: [], summary: 'removes what has been expired for 5 minutes', options: STORE },
  count: { takes: [], summary: 'says how many live sessions there are', options: SESSIONS },
  list: {
    takes: ['USER?'],
    summary: "lists a user's live sessions, the latest seen first, or all of them",
    options: SESSIONS,
  },
  revoke: {
    takes: ['USER', 'KEY'],
    summary: 'ends one session of a user, and the remember tokens of that device',
    options: SESSIONS,
  },
  'invalidate-user': {
    takes: ['USER'],
    summary: 'ends all sessions and remember tokens of a user',
    options: [...SESSIONS, 'min-password-version'],
  },
  'invalidate-all': {
    takes: [],
    summary: 'ends all sessions and remember tokens of all users: everyone is logged out',
    options: [...SESSIONS, 'yes'],
  },
  doctor: { takes: ['URL?'], summary: 'looks for what is wrong with a store, and says what to do', options: STORE },
} as const satisfies Record<string, Command>
export type CommandName = keyof typeof COMMANDS
export const COMMAND_NAMES = Object.keys(COMMANDS) as CommandName[]
const commandOf = (name: CommandName): Command => COMMANDS[name]

/** 'list [USER]' */
export const usageOf = (name: CommandName): string =>
  [name, ...commandOf(name).takes.map(each => (each.endsWith('?') ? `[${each.slice(0, -1)}]` : each))].join(' ')

const table = (rows: readonly (readonly [string, string])[]): string[] => {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}

export const HELP = [
  'Usage: coatcheck COMMAND [options]',
  '',
  ...table(COMMAND_NAMES.map(name => [usageOf(name), commandOf(name).summary])),
  '',
  ...table(
    OPTION_NAMES.map(name => {
      const { value, text, short, only } = optionOf(name)
      const usage = `${short === undefined ? '' : `-${short}, `}--${name}${value === null ? '' : ` ${value}`}`
      return [usage, only === undefined ? text : `${only}: ${text}`]
    }),
  ),
  '',
  'The store is named by COATCHECK_STORE_URL, or by --store:',
  '  redis://  rediss://  redis+cluster://  rediss+cluster://  postgres://  mysql://  mariadb://  sqlite:FILE',
  'Its driver (redis or ioredis; pg; mysql2; better-sqlite3 or libsql) is the one installed in this folder.',
  'A USER that begins with - comes last, after --. KEY is what list prints.',
  'It ends with 0: done, 1: failed, 2: wrong usage, 130 or 143: interrupted.',
].join('\n')

/** A command line that was read. */
export interface Run {
  readonly command: CommandName
  readonly given: Given
  readonly user: string | null
  readonly key: string | null
}

// One key in 64 begins with -, and is no option.
const KEY_WITH_DASH = /^-[A-Za-z0-9_-]{45}$/
const MARK = '\0'
const CONFIG = Object.fromEntries(
  OPTION_NAMES.map(name => {
    const { value, short } = optionOf(name)
    return [name, { type: value === null ? ('boolean' as const) : ('string' as const), ...(short && { short }) }]
  }),
)
/** A word of the command line in a message, unless it may be a URL, a session ID or a key. */
const shown = (word: string) => (/^-{0,2}[A-Za-z][A-Za-z0-9_-]{0,24}$/.test(word) ? ` ${word}` : '')

/** @throws UsageError that says what is wrong and what would be right, and repeats no secret */
export function parseArguments(argv: readonly string[]): Run | 'help' | 'version' {
  const words: string[] = []
  const given = new Map<OptionName, string>()
  const { tokens, values } = parseArgs({
    args: argv.map(word => (KEY_WITH_DASH.test(word) ? MARK + word : word)),
    options: { ...CONFIG, version: { type: 'boolean' } },
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value.replace(MARK, ''))
    if (token.kind !== 'option' || token.name === 'version') continue
    const name = OPTION_NAMES.find(each => each === token.name)
    if (name === undefined)
      throw new UsageError(`there is no option${shown(token.rawName)}: expected --${OPTION_NAMES.join(', --')}`)
    if (given.has(name) && optionOf(name).value !== null) throw new UsageError(`--${name} is given twice`)
    given.set(name, valueFor(name, token.value, token.inlineValue))
  }
  const [name, ...rest] = words
  if (given.has('help') || name === 'help') return 'help'
  if (values.version) return 'version'
  const command = COMMAND_NAMES.find(each => each === name)
  if (command === undefined)
    throw new UsageError(
      `${name === undefined ? 'expected a command' : `there is no command${shown(name)}: expected one`} of ${COMMAND_NAMES.join(', ')}; a store is named by --store URL`,
    )
  const { takes, options } = commandOf(command)
  for (const option of given.keys())
    if (!options.includes(option)) throw new UsageError(`${command} takes no --${option}`)
  const missing = takes[rest.length]
  if (missing !== undefined && !missing.endsWith('?'))
    throw new UsageError(`${missing} is missing: coatcheck ${usageOf(command)}`)
  if (rest.length > takes.length)
    throw new UsageError(`there is one word too many${shown(rest.at(-1)!)}: coatcheck ${usageOf(command)}`)
  if (command === 'doctor')
    return { command, given: rest[0] === undefined ? given : given.set('store', rest[0]), user: null, key: null }
  const [user = null, key = null] = rest
  if (user !== null && !/^[^\p{Cc}]{1,128}$/u.test(user))
    throw new UsageError('USER: expected text of 1 to 128 characters without control characters')
  // Not repeated: it may be a session ID.
  if (key !== null && !/^[A-Za-z0-9_-]{46}$/.test(key))
    throw new UsageError(
      'KEY: expected a key of 46 characters, as list prints them (a session ID has 43, and belongs in no command line)',
    )
  return { command, given, user, key }
}

function valueFor(name: OptionName, value: string | undefined, isInline: boolean | undefined): string {
  const { value: placeholder } = optionOf(name)
  if (placeholder === null && value !== undefined) throw new UsageError(`--${name} takes no value`)
  if (placeholder === null) return ''
  const word = value?.replace(MARK, '')
  // A word that looks like an option is one: the value is missing.
  if (word === undefined || word === '' || (!isInline && word.startsWith('-')))
    throw new UsageError(`--${name} needs a value: --${name} ${placeholder}`)
  return word
}

/** @throws UsageError for an option that would do nothing with this store */
export function checkKind(given: Given, kind: 'SQL stores' | 'Redis'): void {
  for (const name of given.keys()) {
    const { only = kind } = optionOf(name)
    if (only !== kind) throw new UsageError(`--${name} is for ${only} alone`)
  }
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** How long each call waits, in ms. */
export function timeoutOf(given: Given): number {
  const [, count = '', unit = ''] = /^(\d{1,9})(ms|s|m|h)$/.exec(given.get('timeout') ?? '10s') ?? []
  const time = Number(count) * (UNITS[unit] ?? 0)
  if (time > 0 && time <= UNITS.h!) return time
  throw new UsageError('--timeout: expected a time of at most 1h, such as 500ms, 10s or 1m')
}

export function minPasswordVersionOf(given: Given): number | undefined {
  const text = given.get('min-password-version')
  if (text === undefined) return undefined
  if (/^\d{1,10}$/.test(text) && Number(text) <= 0xffff_ffff) return Number(text)
  throw new UsageError(`--min-password-version: expected a whole number from 0 to ${0xffff_ffff}`)
}
