// The command line: its commands and options, and how it is read.
import { UsageError } from './errors.ts'

interface Option {
  /** The placeholder for its value in the help; `null` for a switch. */
  readonly value: string | null
  readonly text: string
  readonly short?: string
  /** The kind of stores that has it. */
  readonly only?: 'SQL stores' | 'Redis'
  /** The one command that has it. */
  readonly of?: string
}

export const OPTIONS = {
  store: { value: 'URL', text: 'where the sessions are; ps shows it to other users of the machine, with its password' },
  table: { value: 'NAME', text: "the store's option table (default: coatcheck_sessions)", only: 'SQL stores' },
  schema: { value: 'NAME', text: "the store's option schema (default: the connection's own)", only: 'SQL stores' },
  prefix: { value: 'PREFIX', text: "the store's option prefix (default: coatcheck:)", only: 'Redis' },
  'allow-eviction': { value: null, text: "the store's option allowEviction", only: 'Redis' },
  'single-slot': { value: null, text: "the store's option singleSlot", only: 'Redis' },
  namespace: { value: 'NAME', text: 'one tenant: its users alone' },
  'min-password-version': { value: 'N', text: 'refuses logins that verified an older password', of: 'invalidate-user' },
  timeout: {
    value: 'TIME',
    text: 'how long it may take in all, such as 500ms, 10s, 1m (default: 10s for each question to the store)',
  },
  yes: { value: null, short: 'y', text: 'do it without asking', of: 'invalidate-all' },
  json: { value: null, text: 'JSON on standard output, one object per line' },
  help: { value: null, short: 'h', text: 'this text' },
  version: { value: null, text: 'the release of coatcheck' },
} as const satisfies Record<string, Option>

export type OptionName = keyof typeof OPTIONS
export const OPTION_NAMES = Object.keys(OPTIONS) as OptionName[]
const optionOf = (name: OptionName): Option => OPTIONS[name]

/** The given options, each at most once; a switch is ''. */
export type Given = ReadonlyMap<OptionName, string>

const TABLES: readonly OptionName[] = ['store', 'table', 'schema', 'json']
const STORE: readonly OptionName[] = [...TABLES, 'timeout', 'prefix', 'allow-eviction', 'single-slot']
const SESSIONS: readonly OptionName[] = [...STORE, 'namespace']

interface Command {
  /** The words after the name; those in brackets may be left out. */
  readonly takes: string
  readonly text: string
  /** By default those of SESSIONS; those of its own come on top. */
  readonly options?: readonly OptionName[]
}

export const COMMANDS = {
  ddl: { takes: '', text: 'prints the DDL of the tables', options: TABLES },
  migrate: { takes: '', text: 'creates the tables if they are missing', options: STORE },
  sweep: { takes: '', text: 'removes what has been expired for 5 minutes', options: STORE },
  count: { takes: '', text: 'says how many live sessions there are' },
  list: { takes: '[USER]', text: "lists a user's live sessions, the latest seen first, or all of them" },
  revoke: { takes: 'USER KEY', text: 'ends one session of a user, and the remember tokens of that device' },
  'invalidate-user': { takes: 'USER', text: 'ends all sessions and remember tokens of a user' },
  'invalidate-all': { takes: '', text: 'ends all sessions and remember tokens of all users: everyone is logged out' },
  doctor: { takes: '[URL]', text: 'looks for what is wrong with a store, and says what to do', options: STORE },
} as const satisfies Record<string, Command>
export type CommandName = keyof typeof COMMANDS
export const COMMAND_NAMES = Object.keys(COMMANDS) as CommandName[]
const commandOf = (name: CommandName): Command => COMMANDS[name]

/** 'list [USER]' */
export const usageOf = (name: CommandName): string => `${name} ${commandOf(name).takes}`.trimEnd()

const table = (rows: readonly (readonly [string, string])[]): string[] => {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}

export const HELP = [
  'Usage: coatcheck COMMAND [options]',
  '',
  ...table(COMMAND_NAMES.map(name => [usageOf(name), commandOf(name).text])),
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
  /** USER and KEY, checked. */
  readonly user: string | null
  readonly key: string | null
  /** How long it may take, in ms; `null` if that is not given. */
  readonly timeout: number | null
  readonly minPasswordVersion: number | undefined
}

/** A word of the command line in a message, unless it may be a URL, a session ID or a key. */
const shown = (word: string) => (/^-{0,2}[A-Za-z][A-Za-z0-9_-]{0,24}$/.test(word) ? ` ${word}` : '')
const KEY = /^[A-Za-z0-9_-]{46}$/

/** Words and options, in any order; after `--` all are words. One key in 64 begins with -, and is no option. */
function split(argv: readonly string[]): { words: string[]; given: Map<OptionName, string> } {
  const words: string[] = []
  const given = new Map<OptionName, string>()
  const left = [...argv]
  for (let word = left.shift(); word !== undefined; word = left.shift()) {
    if (word === '--') return { words: [...words, ...left], given }
    const [, option, inline] = KEY.test(word) ? [] : (/^(-[^=]*)(?:=(.*))?$/s.exec(word) ?? [])
    if (option === undefined) words.push(word)
    else {
      const name = OPTION_NAMES.find(each => option === `--${each}` || option === `-${optionOf(each).short}`)
      if (name === undefined)
        throw new UsageError(`there is no option${shown(option)}: expected --${OPTION_NAMES.join(', --')}`)
      const placeholder = optionOf(name).value
      if (placeholder === null) {
        if (inline !== undefined) throw new UsageError(`--${name} takes no value`)
        given.set(name, '')
        continue
      }
      if (given.has(name)) throw new UsageError(`--${name} is given twice`)
      // A word that looks like an option is one: the value is missing.
      const value = inline ?? (left[0]?.startsWith('-') ? '' : left.shift())
      if (!value) throw new UsageError(`--${name} needs a value: --${name} ${placeholder}`)
      given.set(name, value)
    }
  }
  return { words, given }
}

/** @throws UsageError that says what is wrong and what would be right, and repeats no secret */
export function parseArguments(argv: readonly string[]): Run | 'help' | 'version' {
  const { words, given } = split(argv)
  const [name, ...rest] = words
  if (given.has('help') || name === 'help') return 'help'
  if (given.has('version')) return 'version'
  const command = COMMAND_NAMES.find(each => each === name)
  if (command === undefined)
    throw new UsageError(
      `${name === undefined ? 'expected a command' : `there is no command${shown(name)}: expected one`} of ${COMMAND_NAMES.join(', ')}; a store is named by --store URL`,
    )
  const { takes, options = SESSIONS } = commandOf(command)
  // The URL of doctor is a store's: it takes none beside --store.
  const taken = takes === '' || (command === 'doctor' && given.has('store')) ? [] : takes.split(' ')
  for (const option of given.keys())
    if (optionOf(option).of !== command && !options.includes(option))
      throw new UsageError(`${command} takes no --${option}`)
  const missing = taken[rest.length]
  if (missing !== undefined && !missing.startsWith('['))
    throw new UsageError(`${missing} is missing: coatcheck ${usageOf(command)}`)
  if (rest.length > taken.length)
    throw new UsageError(`there is one word too many${shown(rest.at(-1)!)}: coatcheck ${usageOf(command)}`)
  if (command === 'doctor' && rest.length > 0) given.set('store', rest.pop()!)
  const [user = null, key = null] = rest
  // Characters as the manager counts them: most emoji are two.
  if (user !== null && !(user.length <= 128 && /^\P{Cc}+$/u.test(user)))
    throw new UsageError('USER: expected text of 1 to 128 characters without control characters')
  // Not repeated: it may be a session ID.
  if (key !== null && !KEY.test(key))
    throw new UsageError(
      'KEY: expected a key of 46 characters, as list prints them (a session ID has 43, and belongs in no command line)',
    )
  return { command, given, user, key, timeout: timeoutOf(given), minPasswordVersion: minPasswordVersionOf(given) }
}

/** @throws UsageError for an option that would do nothing with this store */
export function checkKind(given: Given, kind: 'SQL stores' | 'Redis'): void {
  for (const name of given.keys()) {
    const { only = kind } = optionOf(name)
    if (only !== kind) throw new UsageError(`--${name} is for ${only} alone`)
  }
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

function timeoutOf(given: Given): number | null {
  const text = given.get('timeout')
  if (text === undefined) return null
  const [, count = '', unit = ''] = /^(\d{1,9})(ms|s|m|h)$/.exec(text) ?? []
  const time = Number(count) * (UNITS[unit] ?? 0)
  if (time > 0 && time <= UNITS.h!) return time
  throw new UsageError('--timeout: expected a time of at most 1h, such as 500ms, 10s or 1m')
}

function minPasswordVersionOf(given: Given): number | undefined {
  const text = given.get('min-password-version')
  if (text === undefined) return undefined
  if (/^\d{1,10}$/.test(text) && Number(text) <= 0xffff_ffff) return Number(text)
  throw new UsageError(`--min-password-version: expected a whole number from 0 to ${0xffff_ffff}`)
}
