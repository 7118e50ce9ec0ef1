import { createRequire } from 'node:module'
import { setTimeout as wait } from 'node:timers/promises'
import { SessionManager } from 'coatcheck'
import { checkKind, HELP, minPasswordVersionOf, parseArguments, type Run, timeoutOf } from './arguments.ts'
import { RUN } from './commands.ts'
import { doctor } from './doctor.ts'
import { EXIT, type ExitCode, Failure, plain, safeMessageOf, UsageError } from './errors.ts'
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
    else if (asked === 'version') await output.result(versionOf(), {})
    else {
      output.json = asked.given.has('json')
      await (asked.command === 'ddl' ? ddl(asked, output, io) : work(asked.command, asked, output, io))
    }
    return EXIT.done
  } catch (error) {
    // The reader has all it wants.
    if (error instanceof OutputClosed) return EXIT.done
    const isOurs = error instanceof UsageError || error instanceof Failure
    output.say(`coatcheck: ${isOurs ? error.message : safeMessageOf(error, [])}`)
    if (!(error instanceof UsageError)) return EXIT.failed
    output.say('See coatcheck --help.')
    return EXIT.usage
  }
}

const versionOf = (): string => createRequire(import.meta.url)('coatcheck/package.json').version

function storeNamed({ given }: Run, { env }: Io): { text: string; source: string } {
  const option = given.get('store')
  if (option !== undefined) return { text: option, source: '--store' }
  const text = env.COATCHECK_STORE_URL
  if (text) return { text, source: 'COATCHECK_STORE_URL' }
  throw new UsageError('no store is named: set COATCHECK_STORE_URL, or give --store URL')
}

const kindOf = (kind: string) => (kind.startsWith('redis') ? 'Redis' : 'SQL stores')

/** Prints the DDL, for which no store is opened. */
async function ddl(run: Run, output: Output, io: Io): Promise<void> {
  const { text, source } = storeNamed(run, io)
  const kind = kindIn(text, source)
  checkKind(run.given, kindOf(kind))
  const printed = ddlOf(kind, run.given)
  if (printed === null && !output.json) output.say('Redis needs no tables.')
  else await output.result((printed ?? '').trimEnd(), { ddl: printed })
}

/** Opens the store, runs the command, and closes the store again. */
async function work(command: keyof typeof RUN | 'doctor', run: Run, output: Output, io: Io): Promise<void> {
  const { given, user, key } = run
  const { text, source } = storeNamed(run, io)
  const url = parseStoreUrl(text, source, { schema: given.get('schema') ?? '', env: io.env })
  checkKind(given, kindOf(url.kind))
  const timeout = timeoutOf(given)
  const minPasswordVersion = minPasswordVersionOf(given)
  if (command === 'invalidate-all' && !given.has('yes') && io.ask === null)
    throw new UsageError(`${command} logs users out, and no one is here to be asked: give --yes`)
  const name = plain(url.name)
  const opened: OpenStore[] = []
  try {
    const open = async () => {
      opened.push(await openStore({ url, given, timeout, makes: command === 'migrate' }))
      return opened[0]!
    }
    if (command === 'doctor')
      return await doctor({ url, given, output, open, managerOf: ({ store }) => managerOf(store, timeout, undefined) })
    const { store, sql } = await open()
    if (command !== 'migrate' && sql !== null && !(await sql.isMigrated()))
      throw new Failure('the tables are not there: coatcheck migrate creates them; --table and --schema name others')
    const sessions = managerOf(store, timeout, given.get('namespace'))
    const ask = async (question: string) => (await io.ask?.(question)) ?? ''
    await RUN[command]({ given, user, key, name, sql, sessions, minPasswordVersion, output, ask })
  } catch (error) {
    if (error instanceof UsageError || error instanceof OutputClosed || error instanceof OutputFailed) throw error
    const message = safeMessageOf(error, url.secrets).replaceAll(/pass allowEviction: true/g, 'give --allow-eviction')
    const isUnknown = (error as { outcome?: unknown }).outcome === 'unknown'
    throw new Failure(
      `${name}: ${message}${isUnknown ? ' (it may have been done in part: run the command again)' : ''}`,
    )
  } finally {
    if (opened[0] !== undefined) await close(opened[0])
  }
}

function managerOf(store: OpenStore['store'], timeout: number, namespace: string | undefined): Sessions {
  const sessions: Sessions = new SessionManager({
    store,
    userIds: 'string',
    storeTimeout: `${timeout}ms`,
    sweepInterval: false,
    // With it, revoke ends the remember tokens of the device, whatever lifetime the application gives them.
    rememberFor: '400d',
  })
  try {
    return namespace === undefined ? sessions : sessions.namespace(namespace)
  } catch (error) {
    throw new UsageError(`--${(error as Error).message}`)
  }
}

/** A database that does not answer must not keep the command. */
const close = (opened: OpenStore): Promise<unknown> =>
  Promise.race([(async () => opened.close())().catch(() => {}), wait(CLOSING, undefined, { ref: false })])
