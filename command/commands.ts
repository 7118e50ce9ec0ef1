import type { Ending } from './exit.ts'
import type { OptionName } from './options.ts'
import type { Task } from './task.ts'
import { count } from './verbs/count.ts'
import { endUser, revoke } from './verbs/end.ts'
import { invalidateAll } from './verbs/invalidate-all.ts'
import { list } from './verbs/list.ts'
import { migrate } from './verbs/migrate.ts'
import { sweep } from './verbs/sweep.ts'

export interface Command {
  readonly name: string
  /** What follows the name; `?` at the end: may be left out. */
  readonly takes: readonly ('USER' | 'USER?' | 'KEY')[]
  readonly summary: string
  /** More lines of its help. */
  readonly about: readonly string[]
  readonly options: readonly OptionName[]
  /** What it finds in place: nothing (only the kind of store counts), the database, or the tables too. */
  readonly needs: 'kind' | 'database' | 'tables'
  run?(task: Task): Promise<Ending>
}

const TABLES = ['store', 'user-ids', 'table', 'schema', 'json', 'help'] as const
const STORE = [...TABLES, 'timeout', 'key-prefix', 'allow-eviction'] as const
const ENDING = [...STORE, 'namespace', 'wait-replicas'] as const

const COMMANDS_: readonly Command[] = [
  {
    name: 'schema',
    takes: [],
    summary: 'prints the DDL of the tables',
    about: ['Connects to nothing: --store postgres: is enough. Redis needs no schema.'],
    options: TABLES,
    needs: 'kind',
  },
  {
    name: 'migrate',
    takes: [],
    summary: 'creates the tables where they are missing',
    about: ['Where they are there it compares them, and fails if they have another schema.'],
    options: STORE,
    needs: 'database',
    run: migrate,
  },
  {
    name: 'sweep',
    takes: [],
    summary: 'removes what has been expired for 5 minutes',
    about: ['Redis removes it by itself.'],
    options: STORE,
    needs: 'tables',
    run: sweep,
  },
  {
    name: 'count',
    takes: [],
    summary: 'says how many live sessions there are',
    about: ['Anonymous ones count; with --namespace, those of its users alone.'],
    options: [...STORE, 'namespace'],
    needs: 'tables',
    run: count,
  },
  {
    name: 'list',
    takes: ['USER?'],
    summary: "lists a user's live sessions, the latest seen first, or all of them",
    about: ['Keys are no session IDs: sent as a cookie they find nothing. Data is never shown.'],
    options: [...STORE, 'namespace'],
    needs: 'tables',
    run: list,
  },
  {
    name: 'revoke',
    takes: ['USER', 'KEY'],
    summary: 'ends one session of a user, and the remember tokens of that device',
    about: ['KEY is what list prints.'],
    options: ENDING,
    needs: 'tables',
    run: revoke,
  },
  {
    name: 'invalidate-user',
    takes: ['USER'],
    summary: 'ends all sessions and remember tokens of a user',
    about: ['With --min-password-version also logins under way that verified an older password.'],
    options: [...ENDING, 'password-version'],
    needs: 'tables',
    run: endUser,
  },
  {
    name: 'invalidate-all',
    takes: [],
    summary: 'ends all sessions and remember tokens of all users: everyone is logged out',
    about: ['Asks first. Where no one can be asked, as in a script, it needs --yes.'],
    options: [...ENDING, 'yes'],
    needs: 'tables',
    run: invalidateAll,
  },
]
export const COMMANDS: ReadonlyMap<string, Command> = new Map(COMMANDS_.map(command => [command.name, command]))

/** 'list [USER]' */
export const usageOf = ({ name, takes }: Command): string =>
  [name, ...takes.map(each => (each.endsWith('?') ? `[${each.slice(0, -1)}]` : each))].join(' ')
