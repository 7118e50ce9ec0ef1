import { createRequire } from 'node:module'
import { SessionManager } from 'coatcheck'
import { checkKind, HELP, parseArguments, type Run } from './arguments.ts'
import { runCommand } from './commands.ts'
import { doctor } from './doctor.ts'
import { EXIT, type ExitCode, Failure, plain, safeMessageOf, UsageError, usageIn } from './errors.ts'
import { Output, OutputFailed, type Stream } from './output.ts'
import { kindIn, parseStoreUrl } from './store-url.ts'
import { ddlOf, type OpenStore, openStore, type Sessions } from './stores.ts'
import { TimeLimit } from './time-limit.ts'

/** The surroundings of the command: the process, or a test. */
export interface Io {
  readonly stdout: Stream
  readonly stderr: Stream
  readonly env: Readonly<Record<string, string | undefined>>
  /** Asks a person; `null` if no one is there. */
  readonly ask: ((question: string) => Promise<string>) | null
}

/** How long a database may take to say goodbye, in ms. */
const CLOSING = 2000

/** Runs one command line; answers the exit code. */
export async function main(argv: readonly string[], io: Io): Promise<ExitCode> {
  const output = new Output(io.stdout, io.stderr)
  // Of the store, once its URL is read.
  const named = { name: '', secrets: [] as readonly string[] }
  try {
    const asked = parseArguments(argv)
    if (asked === 'help') await output.result(HELP, {})
    else if (asked === 'version')
      await output.result(createRequire(import.meta.url)('coatcheck/package.json').version, {})
    else await run(asked, output, io, named)
    return EXIT.done
  } catch (error) {
    const usage = usageIn(error)
    if (usage !== null) {
      output.say(`coatcheck: ${usage}\nSee coatcheck --help.`)
      return EXIT.usage
    }
    const message = safeMessageOf(error, named.secrets)
      .replaceAll('pass allowEviction: true', 'give --allow-eviction')
      .replaceAll('storeTimeout', '--timeout')
    const about = error instanceof OutputFailed ? '' : named.name
    const isUnknown = (error as { outcome?: unknown }).outcome === 'unknown'
    const hint = isUnknown ? ' (it may have been done in part: run the command again)' : ''
    output.say(`coatcheck: ${about}${message}${hint}`)
    return EXIT.failed
  }
}

/** Opens the store, runs the command, and closes the store again. */
async function run(asked: Run, output: Output, io: Io, named: { name: string; secrets: readonly string[] }) {
  const { command, given } = asked
  output.json = given.has('json')
  const text = given.get('store') ?? io.env.COATCHECK_STORE_URL
  if (!text) throw new UsageError('no store is named: set COATCHECK_STORE_URL, or give --store URL')
  const source = given.has('store') ? '--store' : 'COATCHECK_STORE_URL'
  const kind = kindIn(text, source)
  checkKind(given, kind.startsWith('redis') ? 'Redis' : 'SQL stores')
  if (command === 'ddl') {
    const ddl = ddlOf(kind, given)
    if (ddl === null && !output.json) return output.say('Redis needs no tables.')
    return output.result((ddl ?? '').trimEnd(), { ddl })
  }
  const url = parseStoreUrl(text, source, { schema: given.get('schema') ?? '', env: io.env })
  const limit = new TimeLimit(asked.timeout)
  if (command === 'invalidate-all' && !given.has('yes') && io.ask === null)
    throw new UsageError(`${command} logs users out, and no one is here to be asked: give --yes`)
  const name = plain(url.name)
  Object.assign(named, { name: `${name}: `, secrets: url.secrets })
  let opened: OpenStore | undefined
  const open = async () => {
    opened = await openStore({ url, given, limit, makes: command === 'migrate' })
    return opened
  }
  const managerOf = ({ store }: OpenStore): Sessions => {
    const sessions: Sessions = new SessionManager({
      store,
      userIds: 'string',
      storeTimeout: `${limit.left}ms`,
      sweepInterval: false,
      // The limits of the application are not known here, and shorter ones would hide sessions that live.
      idleTimeout: '400d',
      absoluteTimeout: '400d',
    })
    const namespace = given.get('namespace')
    return namespace === undefined ? sessions : sessions.namespace(namespace)
  }
  try {
    if (command === 'doctor') return await doctor({ url, given, output, limit, open, managerOf })
    const connected = await open()
    const { sql } = connected
    if (command !== 'migrate' && sql !== null && !(await limit.ask('tables', sql.isMigrated())))
      throw new Failure('the tables are not there: coatcheck migrate creates them; --table and --schema name others')
    const task = { ...asked, name, sql, sessions: managerOf(connected), output, ask: io.ask }
    await limit.ask(command, runCommand(command, task), 'unknown')
  } finally {
    const close = async () => opened?.close()
    // A database that does not answer must not keep the command.
    await new TimeLimit(Math.min(CLOSING, limit.left)).ask('close', close()).catch(() => {})
  }
}
