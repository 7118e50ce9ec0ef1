import { COMMANDS, type Command, usageOf } from './commands.ts'
import { OPTION_NAMES, OPTIONS, type OptionName } from './options.ts'

const table = (rows: readonly (readonly [string, string])[]): string[] => {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}

function optionLine(name: OptionName): [string, string] {
  const option: { value: string | null; text: string; short?: string } = OPTIONS[name]
  const short = option.short === undefined ? '' : `-${option.short}, `
  return [`${short}--${name}${option.value === null ? '' : ` ${option.value}`}`, option.text]
}

const STORES = [
  'The store is named by COATCHECK_STORE_URL, or by --store:',
  '  redis://  rediss://  redis+cluster://  rediss+cluster://  postgres://  mysql://  mariadb://  sqlite:FILE',
  'Its driver (redis or ioredis; pg; mysql2; better-sqlite3 or libsql) is the one installed in this folder.',
]

export const helpOf = (command: Command | null): string => {
  if (command === null)
    return [
      'Usage: coatcheck COMMAND [options]',
      '',
      ...table([...COMMANDS.values()].map(each => [usageOf(each), each.summary])),
      '',
      ...STORES,
      '',
      'coatcheck COMMAND --help says more, coatcheck --version which release this is.',
      'It ends with 0: done, 1: failed, 2: wrong usage, 130 or 143: interrupted.',
    ].join('\n')
  return [
    `Usage: coatcheck ${usageOf(command)} [options]`,
    '',
    `${command.summary[0]!.toUpperCase()}${command.summary.slice(1)}.`,
    ...command.about,
    '',
    ...table(OPTION_NAMES.filter(name => command.options.includes(name)).map(optionLine)),
    '',
    ...STORES,
    ...(command.takes.length === 0 ? [] : ['A USER that begins with - comes last, after --.']),
  ].join('\n')
}
