import { parseArgs } from 'node:util'
import { nearest } from '../src/text/check-options.ts'
import { COMMANDS, type Command, usageOf } from './commands.ts'
import { UsageError } from './exit.ts'
import { type Given, keyFrom, OPTION_NAMES, OPTIONS, type OptionName, userFrom, userKindOf } from './options.ts'

/** What a command line asks for. */
export type Asked =
  | { readonly do: 'help'; readonly command: Command | null }
  | { readonly do: 'version' }
  | {
      readonly do: 'run'
      readonly command: Command
      readonly given: Given
      readonly user: string | null
      readonly key: string | null
    }

// One key in 64 begins with -, and is no option.
const KEY_WITH_DASH = /^-[A-Za-z0-9_-]{45}$/
const MARK = '\0'

const CONFIG = Object.fromEntries(
  OPTION_NAMES.map(name => {
    const { value, short }: { value: string | null; short?: string } = OPTIONS[name]
    return [name, { type: value === null ? ('boolean' as const) : ('string' as const), ...(short && { short }) }]
  }),
)
CONFIG.version = { type: 'boolean' }

/** A word of the command line in a message: never what may be a URL, a session ID or a key. */
const shown = (word: string) => (/^-{0,2}[A-Za-z][A-Za-z0-9_-]{0,24}$/.test(word) ? ` ${word}` : '')
const meant = (name: string | null) => (name === null ? '' : `: did you mean ${name}?`)

/** @throws UsageError that says what is wrong and what would be right, and repeats no secret */
export function parseArguments(argv: readonly string[]): Asked {
  const words: string[] = []
  const given = new Map<OptionName, string>()
  let wantsVersion = false
  const { tokens } = parseArgs({
    args: argv.map(word => (KEY_WITH_DASH.test(word) ? MARK + word : word)),
    options: CONFIG,
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value.replace(MARK, ''))
    if (token.kind !== 'option') continue
    const { name, rawName, value, inlineValue } = token
    if (name === 'version') wantsVersion = true
    else if (!OPTION_NAMES.includes(name as OptionName))
      throw new UsageError(
        `there is no option${shown(rawName)}${meant(
          nearest(
            rawName,
            OPTION_NAMES.map(each => `--${each}`),
          ),
        )}`,
      )
    else given.set(name as OptionName, givenValue(name as OptionName, value, inlineValue, given))
  }
  const [name, ...rest] = words
  const command = name === undefined || name === 'help' ? null : commandOf(name)
  if (given.has('help') || name === 'help') {
    const about = name === 'help' && rest[0] !== undefined ? commandOf(rest[0]) : command
    return { do: 'help', command: about }
  }
  if (wantsVersion) return { do: 'version' }
  if (command === null) throw new UsageError(`expected a command: ${[...COMMANDS.keys()].join(', ')}`)
  for (const option of given.keys())
    if (!command.options.includes(option)) throw new UsageError(`${command.name} takes no --${option}`)
  const required = command.takes.filter(each => !each.endsWith('?'))
  if (rest.length < required.length)
    throw new UsageError(`${required[rest.length]} is missing: coatcheck ${usageOf(command)}`)
  if (rest.length > command.takes.length)
    throw new UsageError(`there is one word too many${shown(rest.at(-1)!)}: coatcheck ${usageOf(command)}`)
  const kind = userKindOf(given)
  const [user, key] = rest
  return {
    do: 'run',
    command,
    given,
    user: user === undefined ? null : userFrom(user, kind),
    key: key === undefined ? null : keyFrom(key),
  }
}

function givenValue(
  name: OptionName,
  value: string | undefined,
  isInline: boolean | undefined,
  given: ReadonlyMap<OptionName, string>,
): string {
  const { value: placeholder } = OPTIONS[name]
  if (placeholder === null) {
    if (value !== undefined) throw new UsageError(`--${name} takes no value`)
    return ''
  }
  // A word that looks like an option is one: what it was meant for is missing.
  const word = value?.replace(MARK, '')
  if (word === undefined || word === '' || (!isInline && word.startsWith('-')))
    throw new UsageError(`--${name} needs a value: --${name} ${placeholder}`)
  if (given.has(name)) throw new UsageError(`--${name} is given twice`)
  return word
}

function commandOf(name: string): Command {
  const command = COMMANDS.get(name)
  if (command !== undefined) return command
  const hint = name.includes(':') ? ': a store is named by --store URL' : meant(nearest(name, [...COMMANDS.keys()]))
  throw new UsageError(`there is no command${shown(name)}${hint || `: expected ${[...COMMANDS.keys()].join(', ')}`}`)
}
