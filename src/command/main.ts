import { createRequire } from 'node:module'
import { setTimeout as wait } from 'node:timers/promises'
import { SessionManager } from 'coatcheck'
import { checkKind, HELP, minPasswordVersionOf, parseArguments, type Run, timeoutOf } from './arguments.ts'
import { RUN } from './commands.ts'
import { doctor } from './doctor.ts'
import { EXIT, type ExitCode, Failure, plain, safeMessageOf, UsageError, usageIn } from './errors.ts'
import { Output, OutputClosed, OutputFailed, type Stream } from './output.ts'
import { kindIn, parseStoreUrl } from './store-url.ts'
import { ddlOf, type OpenStore, openStore, type Sessions } from './stores.ts'

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
  try {
    const asked = parseArguments(argv)
    if (asked === 'help') await output.result(HELP, {})
    else if (asked === 'version')
      await output.result(createRequire(import.meta.url)('coatcheck/package.json').version, {})
    else await run(asked, output, io)
    return EXIT.done
  } catch (error) {
    // The reader has all it wants.
    if (error instanceof OutputClosed) return EXIT.done
    const usage = usageIn(error)
    output.say(`coatcheck: ${usage ?? (error instanceof Failure ? error.message : safeMessageOf(error, []))}`)
    if (usage === null) return EXIT.failed
    output.say('See coatcheck --help.')
    return EXIT.usage
  }
}

/** Opens the store, runs the command, and closes the store again. */
async function run(asked: Run, output: Output, io: Io): Promise<void> {
  const { command, given } = asked
  output.json = given.has('json')
  const text = given.get('store') ?? io.env.COATCHECK_STORE_URL
  if (!text) throw new UsageError('no store is named: set COATCHECK_STORE_URL, or give --store URL')
  const source = given.has('store') ? '--store' : 'COATCHECK_STORE_URL'
  const kind = kindIn(text, source)
  checkKind(given, kind.startsWith('redis') ? 'Redis' : 'SQL stores')
  if (command === 'ddl') return printDdl(ddlOf(kind, given), output)
  const url = parseStoreUrl(text, source, { schema: given.get('schema') ?? '', env: io.env })
  const timeout = timeoutOf(given)
  const minPasswordVersion = minPasswordVersionOf(given)
  if (command === 'invalidate-all' && !given.has('yes') && io.ask === null)
    throw new UsageError(`${command} logs users out, and no one is here to be asked: give --yes`)
  const name = plain(url.name)
  let opened: OpenStore | undefined
  const open = async () => {
    opened = await openStore({ url, given, timeout, makes: command === 'migrate' })
    return opened
  }
  const managerOf = ({ store }: OpenStore): Sessions => {
    const sessions: Sessions = new SessionManager({
      store,
      userIds: 'string',
      storeTimeout: `${timeout}ms`,
      sweepInterval: false,
      // The limits of the application are not known here, and shorter ones would hide sessions that live.
      idleTimeout: '400d',
      absoluteTimeout: '400d',
    })
    const namespace = given.get('namespace')
    return namespace === undefined ? sessions : sessions.namespace(namespace)
  }
  try {
    if (command === 'doctor') return await doctor({ url, given, output, open, managerOf })
    const connected = await open()
    const { sql } = connected
    if (command !== 'migrate' && sql !== null && !(await sql.isMigrated()))
      throw new Failure('the tables are not there: coatcheck migrate creates them; --table and --schema name others')
    const ask = async (question: string) => (await io.ask?.(question)) ?? ''
    const sessions = managerOf(connected)
    await RUN[command]({ ...asked, name, sql, sessions, minPasswordVersion, output, ask })
  } catch (error) {
    if (usageIn(error) !== null || error instanceof OutputFailed) throw error
    const message = safeMessageOf(error, url.secrets).replaceAll(/pass allowEviction: true/g, 'give --allow-eviction')
    const isUnknown = (error as { outcome?: unknown }).outcome === 'unknown'
    const hint = isUnknown ? ' (it may have been done in part: run the command again)' : ''
    throw new Failure(`${name}: ${message}${hint}`)
  } finally {
    if (opened !== undefined) await close(opened)
  }
}

/** For which no store is opened. */
async function printDdl(ddl: string | null, output: Output): Promise<void> {
  if (ddl === null && !output.json) output.say('Redis needs no tables.')
  else await output.result((ddl ?? '').trimEnd(), { ddl })
}

/** A database that does not answer must not keep the command. */
const close = (opened: OpenStore): Promise<unknown> =>
  Promise.race([(async () => opened.close())().catch(() => {}), wait(CLOSING, undefined, { ref: false })])
